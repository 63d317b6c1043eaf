"""An instance as the CMS knows it, and whether it can be counted on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class InstanceKey(NamedTuple):
    """An instance; ids are unique within a location."""

    location: str
    id: str

    def __str__(self) -> str:
        return f"{self.location}/{self.id}"


class Standing(StrEnum):
    """Whether an instance can be counted on."""

    AVAILABLE = "available"
    DOWN = "down"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance as HQ shows it.

    Attributes:
        host: the node; empty: it is not placed.
        is_wanted: some revision of it is wanted READY.
        is_ready: None: never reported.
        was_ready: it was ready once, as far as is known; otherwise it does not count yet.
        reason: why it is not ready, as its agent or HQ says.
        is_silent: HQ says that its agent was heard before, and is not any more.
        uid: HQ's number of it: whoever has its id after a deletion has another one; 0: unknown, as in a replay.
    """

    key: InstanceKey
    service: str
    host: str
    is_wanted: bool = True
    is_ready: bool | None = True
    was_ready: bool = True
    cluster: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    is_silent: bool = False
    uid: int = 0

    @property
    def counts(self) -> bool:
        """Whether it counts towards the total that shares refer to."""
        return self.is_wanted and self.was_ready
