"""A user for each service of the node: numbers from a range, kept in a file, never given twice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from instancectl.files import write_atomically
from instancectl.processes.confinement import ProcessUser
from instancectl.settings import UidRange


class NoUserLeft(Exception):
    """Every number of the range has been given."""


class ServiceUsers:
    """The users of the services that have or had instances here.

    Args:
        owners: uids of files of instances: even if the file of uids is lost, no other service is given one of these.
    """

    def __init__(self, path: Path, uids: UidRange, owners: Iterable[int]) -> None:
        """Raises OSError, ValueError: the file cannot be read."""
        self._path = path
        self._range = uids
        self._uids: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
        used = [uid for uid in (*self._uids.values(), *owners) if uid in uids]
        self._next = max(used, default=uids.first - 1) + 1

    def uid_of(self, service: str) -> int | None:
        """Return the uid that the service was given; None: none yet."""
        return self._uids.get(service)

    def user_of(self, service: str, owner: int | None) -> ProcessUser:
        """The user of a service; `owner`: uid of the files that an instance of it has here already, if any.

        Raises:
            NoUserLeft: the range is used up.
            OSError: it cannot be recorded.
        """
        if service not in self._uids:
            self._give(service, owner)
        return ProcessUser(self._uids[service], self._uids[service])

    def _give(self, service: str, owner: int | None) -> None:
        if owner is not None and owner in self._range and owner not in self._uids.values():
            uid = owner
        elif self._next in self._range:
            uid = self._next
        else:
            raise NoUserLeft(f"all uids from {self._range.first} to {self._range.last} are given: widen --uids")
        known = {**self._uids, service: uid}
        write_atomically(self._path, json.dumps(known, indent=1).encode())
        self._uids, self._next = known, max(self._next, uid + 1)
