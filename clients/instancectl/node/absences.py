"""Many instances that HQ lists no longer do not end at once: it may be a mistake, in HQ or of a person."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection
from pathlib import Path

from instancectl.files import write_atomically
from instancectl.processes import procfs

_WINDOW_S = 60.0
_WAIT_S = 600.0
_AT_LEAST = 3
_SHARE = 0.2

log = logging.getLogger(__name__)


def seconds_since_boot() -> float:
    """A clock that no step of the wall's moves, and that a restart of the agent does not reset."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class AbsenceGate:
    """Says whether an instance that HQ does not know any more may end now.

    If more than a fifth of the node's instances vanish within a minute, and at least three, they wait for `confirm`, or
    for ten minutes, except those that have ended by then. Since when they wait is on disk, for this boot.

    Args:
        instances: those supervised now.
        listed: those that HQ's newest list of the node has; None: there is no list yet.
    """

    def __init__(
        self,
        path: Path,
        instances: Callable[[], Collection[str]],
        listed: Callable[[], Collection[str] | None],
        now: Callable[[], float] = seconds_since_boot,
    ) -> None:
        self._path = path
        self._instances = instances
        self._listed = listed
        self._now = now
        self._absent_since = _load(path)
        self._held: set[str] = set()
        self._confirmed_at = -_WAIT_S

    @property
    def held(self) -> list[str]:
        """Instances that wait."""
        return sorted(self._held)

    def confirm(self) -> None:
        """Let the instances that wait end, and those that vanish in the next minute."""
        self._confirmed_at = self._now()
        self._held.clear()

    def admit(self, instance_id: str) -> str:
        """Why an absent instance has to wait; empty: it may end."""
        now = self._now()
        if instance_id not in self._absent_since:
            self._absent_since[instance_id] = now
            self._save()
        since = self._absent_since[instance_id]
        is_due = now - since >= _WAIT_S or now - self._confirmed_at < _WINDOW_S
        if is_due or not self._is_mass(instance_id, now):
            self._held.discard(instance_id)
            return ""
        self._held.add(instance_id)
        left_s = _WAIT_S - (now - since)
        return (
            f"HQ knows {len(self._held)} of this node's instances no longer: it runs on for {left_s:.0f} s; "
            "if that is meant, run instancectl confirm"
        )

    def note_presence(self, instance_id: str) -> None:
        """Forget its absence: HQ knows it."""
        self._held.discard(instance_id)
        if self._absent_since.pop(instance_id, None) is not None:
            self._save()

    def _is_mass(self, instance_id: str, now: float) -> bool:
        if instance_id in self._held and self._listed() is not None and len(self._held) >= _AT_LEAST:
            return True  # it was held as part of a mass, which may have begun before the window
        supervised, listed = frozenset(self._instances()), self._listed()
        if listed is None:  # how many are absent is not known yet
            return True
        recent = {each for each, since in self._absent_since.items() if now - since < _WINDOW_S}
        recent |= supervised.difference(listed)
        total = len(recent | supervised)
        return len(recent) >= _AT_LEAST and len(recent) > _SHARE * total

    def _save(self) -> None:
        kept = {each: since for each, since in self._absent_since.items() if self._now() - since < 2 * _WAIT_S}
        self._absent_since = kept
        try:
            document = {"boot_id": procfs.boot_id(), "absent_since": kept}
            write_atomically(self._path, json.dumps(document, indent=1).encode())
        except OSError as error:
            log.warning("%s cannot be written: %s; a restart would begin the waiting anew", self._path, error.strerror)


def _load(path: Path) -> dict[str, float]:
    """Load the entries that were written in this boot."""
    try:
        document = json.loads(path.read_text())
        return dict(document["absent_since"]) if document["boot_id"] == procfs.boot_id() else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
