"""Files that are read again when they change. One that cannot be used changes nothing but the alarm."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")


class BadSecurity(Exception):
    """A setting of security, or a file that it names, cannot be used; str() names the flag and says why."""


class WatchedFiles(Generic[T]):
    """Files that are used together, such as a certificate and its key, and what was last made from them.

    Attributes:
        name: of the flag that names them, for messages and metrics.
        current: what is in force.
        fault: why the files as they are now are not; empty: they are.
    """

    def __init__(self, name: str, paths: Sequence[Path], make: Callable[[Sequence[bytes]], T]) -> None:
        """`make` raises BadSecurity for contents that are of no use; so does this constructor."""
        self.name, self._paths, self._make = name, tuple(paths), make
        self.fault, self._places = "", ", ".join(map(str, paths))
        self._refused: tuple[bytes, ...] | None = None
        try:
            self._contents = self._read_files()
            self.current = self._parse_contents(self._contents)
        except BadSecurity as error:
            raise BadSecurity(f"--{name} {self._places}: {error}") from error

    def reread(self) -> bool:
        """Read the files again; return whether `current` has changed."""
        contents: tuple[bytes, ...] = ()
        try:
            contents = self._read_files()
            if contents == self._contents:
                self._blame("")
                return False
            self.current = self._parse_contents(contents)
        except BadSecurity as error:
            # Files that belong together are put in place one after the other: halfway is not a fault yet.
            is_halfway = len(self._paths) > 1 and contents != self._refused
            self._refused = contents
            if not is_halfway:
                self._blame(str(error))
            return False
        self._contents = contents
        self._blame("")
        log.info("--%s: %s is loaded and in force", self.name, self._places)
        return True

    def _parse_contents(self, contents: Sequence[bytes]) -> T:
        try:
            return self._make(contents)
        except BadSecurity:
            raise
        except Exception as error:  # a library that fails on a file must not end a running replica
            raise BadSecurity(f"cannot be parsed ({type(error).__name__})") from error

    def _read_files(self) -> tuple[bytes, ...]:
        try:
            return tuple(path.read_bytes() for path in self._paths)
        except OSError as error:
            raise BadSecurity(f"cannot be read: {error.strerror}: give one that this user can read") from error

    def _blame(self, fault: str) -> None:
        if fault and fault != self.fault:
            said = "--%s: cannot load the file, its previous contents remain in force: %s: %s"
            log.error(said, self.name, self._places, fault)
        self.fault = fault
