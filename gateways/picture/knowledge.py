"""The rule that a gateway never makes things worse, as one pure function.

    instances are known                           -> PRESENT: they are shown, however old the list is
    none, and every location has said so          -> ABSENT: the only case of an empty answer
    none, and somebody has not said what it has   -> UNKNOWN: no answer, never an empty one

A location's last state stays valid while it or HQ is away. The saved state of an
earlier process is valid, too, except for absences: it lacks services created since.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Knowledge(Enum):
    """How a gateway may answer about a service."""

    PRESENT = "it has instances, ready or not"
    ABSENT = "nobody has any"
    UNKNOWN = "nobody knows yet"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far the list reaches.

    Attributes:
        is_known: there is a list: from a file, or from all locations that answer.
        heard: locations that have sent this process a complete snapshot.
        unheard: locations that exist and have not: away since before it started, or still to come.
    """

    is_known: bool = False
    heard: frozenset[str] = frozenset()
    unheard: frozenset[str] = frozenset()

    @property
    def locations(self) -> frozenset[str]:
        """All that are known to exist."""
        return self.heard | self.unheard

    @property
    def is_complete(self) -> bool:
        """Whether all locations have sent a complete snapshot."""
        return self.is_known and bool(self.heard) and not self.unheard


def knowledge(coverage: Coverage, instances: int, location: str = "") -> Knowledge:
    """Decide the answer about a service with this many known instances, in one location or (empty) in all.

    Nothing may be answered while the first list is loading: parts of it would replace another gateway's complete
    answers.
    """
    if not coverage.is_known:
        return Knowledge.UNKNOWN
    if instances:
        return Knowledge.PRESENT
    is_told = location in coverage.heard if location in coverage.locations else coverage.is_complete
    return Knowledge.ABSENT if is_told else Knowledge.UNKNOWN
