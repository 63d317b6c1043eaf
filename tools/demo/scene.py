"""What there is to see at one moment, without any thought of how it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tools.demo.setting import SERVICES


class Freshness(Enum):
    """How discovery knows a location at the moment."""

    UNKNOWN = "unknown"
    FRESH = "fresh"
    STALE = "stale"
    SILENT = "silent"


class Ready(NamedTuple):
    """How many instances are ready, and of how many."""

    ready: int
    total: int

    def __str__(self) -> str:
        return f"{self.ready}/{self.total}"


@dataclass(frozen=True, slots=True)
class LocationScene:
    """One location.

    Attributes:
        stopped: etcd and all replicas, by order.
        up: how many of its replicas serve.
        age_s: how old discovery's knowledge can be; None: unknown.
        ready: by service, as discovery sees it; that of a silent location is the last it saw.
        silent_agents: how many of its agents say nothing.
        guard: what its guard says while it holds expiries back; empty: it does not.
    """

    name: str
    stopped: bool
    up: int
    replicas: int
    freshness: Freshness
    age_s: float | None
    ready: Mapping[str, Ready]
    silent_agents: int
    agents: int
    guard: str

    @property
    def all(self) -> Ready:
        return added(self.ready.values())

    def notes(self) -> list[str]:
        """What is unusual about it."""
        found = []
        if self.stopped:
            found.append("stopped")
        if self.silent_agents:
            found.append(f"{self.silent_agents} of {self.agents} agents silent")
        if self.guard:
            found.append(f"guard {self.guard}")
        return found


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything.

    Attributes:
        gateway: the address of its gRPC; empty: it does not serve.
        fault: why there is no answer from the gateway; empty: there is.
        took_s: how long its last answer took.
        revisions: ready instances by service and revision.
    """

    elapsed_s: float
    gateway: str
    fault: str
    took_s: float
    locations: tuple[LocationScene, ...]
    revisions: Mapping[str, Counter[str]]

    def total(self, service: str) -> Ready:
        return added(location.ready[service] for location in self.locations)

    @property
    def all(self) -> Ready:
        return added(location.all for location in self.locations)

    def revision_words(self, service: str) -> str:
        """Such as `r1 48 r2 12`."""
        return " ".join(f"{name} {count}" for name, count in sorted(self.revisions[service].items()))


def added(parts: Iterable[Ready]) -> Ready:
    """All of them together."""
    listed = list(parts)
    return Ready(sum(one.ready for one in listed), sum(one.total for one in listed))


def no_counts() -> dict[str, Ready]:
    """Before anything was seen."""
    return dict.fromkeys(SERVICES, Ready(0, 0))
