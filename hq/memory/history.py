"""A bounded window of events that watches can resume from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from hq.memory import frames
from hq.memory.entry import Event
from hq.memory.record import Traits

_EVENT_BYTES = 500  # of an event besides its encoded form, and of a step
_STEP_BYTES = 150
_PART = 500  # steps


class WatchedEvent:
    """An event as watches need it: what filters match, before and after, and its encoded forms, made once.

    Attributes:
        id: of the instance.
        before, after: the indexed fields; None where the instance did not exist.
        put: as `events = 2` of WatchInstancesResponse: created or changed; empty if it was deleted.
    """

    __slots__ = ("_gone", "after", "before", "id", "put", "version")

    def __init__(self, event: Event) -> None:
        self.version = event.version
        self.id = event.traits.id
        self.before: Traits | None = event.before.traits if event.before else None
        self.after: Traits | None = event.after.traits if event.after else None
        self.put = put_event(event.version, event.after.frame()) if event.after else b""
        self._gone = b""

    def as_tuple(self) -> tuple[Any, ...]:
        """The whole event, from which `recall` makes it again."""
        before, after = (tuple(traits) if traits is not None else None for traits in (self.before, self.after))
        return self.version, self.id, before, after, self.put

    def recall(self, kept: tuple[Any, ...]) -> WatchedEvent:
        """Become the event that `as_tuple` described, in another process. Call it on a bare `WatchedEvent.__new__`."""
        self.version, self.id, before, after, self.put = kept
        self.before = Traits(*before) if before is not None else None
        self.after = Traits(*after) if after is not None else None
        self._gone = b""
        return self

    def encoded_removal(self) -> bytes:
        """The removal encoded for `events = 2`: deleted, or still there but no longer passing the filter."""
        if not self._gone:
            self._gone = self._mention(b"\x22" if self.after else b"\x1a")
        return self._gone

    def size_bytes(self) -> int:
        """About how much of the window it uses."""
        return len(self.put) + _EVENT_BYTES

    def _mention(self, tag: bytes) -> bytes:
        # The instance as the watcher knew it: the one that is there now may have another uid.
        traits = self.before or self.after
        assert traits is not None
        ref = frames.delimited_field(b"\x0a", traits.id.encode()) + b"\x10" + frames.varint(traits.uid)
        ref += frames.delimited_field(b"\x1a", traits.cluster.encode()) if traits.cluster else b""
        return frames.delimited_field(b"\x12", b"\x08", frames.varint(self.version), frames.delimited_field(tag, ref))


def put_event(version: int, frame: bytes) -> bytes:
    """A put as `events = 2` of WatchInstancesResponse, from an instance's frame."""
    return frames.delimited_field(b"\x12", b"\x08", frames.varint(version), b"\x12", frame[1:])  # without its tag


class VersionEvents(NamedTuple):
    """All events of one version. Collapsed: they are a difference over versions that this replica missed."""

    version: int
    events: Sequence[WatchedEvent]
    collapsed: bool = False


def steps_from_tuples(kept: Iterable[tuple[Any, ...]]) -> list[VersionEvents]:
    """The steps that `History.step_tuples` described, in another process."""
    new = WatchedEvent.__new__
    return [VersionEvents(version, [new(WatchedEvent).recall(event) for event in events]) for version, events in kept]


class History:
    """The newest steps, whole versions, within a bound of bytes.

    Attributes:
        complete_after: every step with a greater version is here (or never was).
    """

    def __init__(self, max_bytes: int) -> None:
        self._steps: list[VersionEvents] = []
        self._first = 0  # those before it are gone
        self._max_bytes = max_bytes
        self._bytes = 0
        self.complete_after = 0

    def __len__(self) -> int:
        return len(self._steps) - self._first

    def reset(self, version: int) -> None:
        """Note that nothing before this version is known."""
        self._steps, self._first, self._bytes = [], 0, 0
        self.complete_after = version

    def add(self, step: VersionEvents) -> None:
        """Add the newest step. A collapsed one cuts off what was before: nobody may resume from inside the gap."""
        if step.collapsed:
            self.reset(step.version)
            return
        self._steps.append(step)
        self._bytes += _size(step)
        while self._bytes > self._max_bytes and len(self) > 1:
            self._drop_oldest()

    def since(self, version: int, size_bytes: int) -> list[VersionEvents] | None:
        """The next steps after a version, until they have about this size; None if they are no longer known."""
        if version < self.complete_after:
            return None
        at = bisect_right(self._steps, version, lo=self._first, key=_version_of)
        steps: list[VersionEvents] = []
        while at < len(self._steps) and size_bytes > 0:
            steps.append(self._steps[at])
            size_bytes -= _size(self._steps[at])
            at += 1
        return steps

    def step_tuples(self) -> Iterator[list[tuple[Any, ...]]]:
        """All steps, part by part, as plain tuples, from which `recall` makes them again."""
        steps = iter(self._steps[self._first :])
        while part := list(islice(steps, _PART)):
            yield [(step.version, [event.as_tuple() for event in step.events]) for step in part]

    def recall(self, complete_after: int, steps: Iterable[VersionEvents]) -> None:
        """Begin with the steps that another process held, which are complete up to now."""
        self.reset(complete_after)
        for step in steps:
            self.add(step)

    def _drop_oldest(self) -> None:
        oldest = self._steps[self._first]
        self._steps[self._first] = _GONE
        self._first += 1
        self._bytes -= _size(oldest)
        self.complete_after = oldest.version
        if self._first > len(self._steps) // 2:
            del self._steps[: self._first]
            self._first = 0


_GONE = VersionEvents(0, ())


def _version_of(step: VersionEvents) -> int:
    return step.version


def _size(step: VersionEvents) -> int:
    return sum(event.size_bytes() for event in step.events) + _STEP_BYTES
