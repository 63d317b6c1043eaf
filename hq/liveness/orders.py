"""Operators' orders, as this replica learned of them: to the guard, about the epoch, and for nodes under planned work.

They are stored, so that every replica obeys. An order's end is measured on the replica's own clock from when it learned
of the order; after a restart or a compacted gap, from the recorded wall time, but never for longer than was ordered.
"""

from __future__ import annotations

from typing import NamedTuple

from hq.liveness.guard import GuardCommand
from hqpb.storage.v1 import storage_pb2
from serving.clock import Clock

_LAST_MS = 253_402_300_799_999  # the year 9999


class GuardWord(NamedTuple):
    """An order to the guard. Times in milliseconds of Unix time, for display; `ends` on the injected clock."""

    order: GuardCommand
    by: str
    reason: str
    since_ms: int
    until_ms: int
    ends: float


class Suspended(NamedTuple):
    """Planned work on a node. Times as in GuardWord."""

    node: str
    by: str
    reason: str
    since_ms: int
    until_ms: int
    ends: float


class Orders:
    """The orders in force.

    Attributes:
        confirmed: the epoch whose contents are to be trusted, however few they are.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard: GuardWord | None = None
        self.confirmed = storage_pb2.EpochConfirmation()
        self._suspended: dict[str, Suspended] = {}

    def reset(self) -> None:
        self._guard = None
        self.confirmed = storage_pb2.EpochConfirmation()
        self._suspended.clear()

    def take(self, rest: str, value: bytes | None, *, live: bool) -> None:
        """Take in a record under `ops/`: `guard`, `epoch` or `suspend/<node>`; None: deleted. Raises DecodeError.

        `live`: it came through the watch as it was made, so the order is new, whatever any wall clock says.
        """
        kind, _, node = rest.partition("/")
        if kind == "guard":
            self._guard = self._guard_word(value, live) if value is not None else None
        elif kind == "epoch":
            self.confirmed = storage_pb2.EpochConfirmation.FromString(value or b"")
        elif kind == "suspend" and value is None:
            self._suspended.pop(node, None)
        elif kind == "suspend" and value is not None:
            record = storage_pb2.NodeSuspension.FromString(value)
            since, duration = record.since_unix_ms, record.duration_ms
            ends = self._ends(since, duration, live)
            self._suspended[node] = Suspended(node, record.by, record.reason, *_clamped_span(since, duration), ends)

    def names(self) -> list[str]:
        """The orders stored under `ops/`, in force or over: "guard", "epoch", "suspend/<node>"."""
        ours = [*(["guard"] if self._guard else []), *(["epoch"] if self.confirmed.epoch else [])]
        return [*ours, *(f"suspend/{node}" for node in self._suspended)]

    def guard(self) -> GuardWord | None:
        """The order to the guard that is in force."""
        word = self._guard
        if word is None or word.order is GuardCommand.NONE:  # of a kind that this version does not know
            return None
        return word if word.ends > self._clock.now() else None

    def order(self) -> GuardCommand:
        word = self.guard()
        return word.order if word else GuardCommand.NONE

    def suspension(self, node: str) -> Suspended | None:
        """The planned work on a node that is in force."""
        found = self._suspended.get(node) if self._suspended else None
        return found if found is not None and found.ends > self._clock.now() else None

    def suspensions(self) -> list[Suspended]:
        """All in force, in order of nodes."""
        return [s for node in sorted(self._suspended) if (s := self.suspension(node))]

    def _guard_word(self, value: bytes, live: bool) -> GuardWord:
        record = storage_pb2.GuardOrder.FromString(value)
        order = {1: GuardCommand.RELEASE, 2: GuardCommand.FORCE}.get(record.kind, GuardCommand.NONE)
        since, duration = record.since_unix_ms, record.duration_ms
        ends = self._ends(since, duration, live)
        return GuardWord(order, record.by, record.reason, *_clamped_span(since, duration), ends)

    def _ends(self, since_ms: int, duration_ms: int, live: bool) -> float:
        left_ms = duration_ms if live else since_ms + duration_ms - self._clock.wall_ms()
        return self._clock.now() + min(max(left_ms, 0), duration_ms) / 1000


def _clamped_span(since_ms: int, duration_ms: int) -> tuple[int, int]:
    """Beginning and end, limited to what a Timestamp can hold, whatever somebody wrote into the store."""
    return within(since_ms), within(since_ms + duration_ms)


def within(unix_ms: int) -> int:
    """A time, limited to what a Timestamp can hold, whatever somebody wrote into the store."""
    return max(0, min(unix_ms, _LAST_MS))
