"""A bounded window of events: what a watch can go on from."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from hq import frames
from hq.cache import Event
from hq.entry import Traits


class WatchedEvent:
    """An event as watches need it: who passed the filter before and after, and its encoded forms, made once.

    Attributes:
        before, after: the indexed fields; None where the instance did not exist.
    """

    __slots__ = ("_body", "_gone", "_put", "after", "before", "version")

    def __init__(self, event: Event) -> None:
        self.version = event.version
        self.before: Traits | None = event.before.traits if event.before else None
        self.after: Traits | None = event.after.traits if event.after else None
        self._body = frames.body(event.after.frame()) if event.after else b""
        self._put = b""
        self._gone: dict[bytes, bytes] = {}

    def put(self) -> bytes:
        """As `events = 2` of WatchInstancesResponse: created or changed."""
        if not self._put:
            self._put = put_event(self.version, self._body)
        return self._put

    def delete(self) -> bytes:
        """As `events = 2`: deleted."""
        return self._mention(b"\x1a")

    def left(self) -> bytes:
        """As `events = 2`: no longer passes the filter."""
        return self._mention(b"\x22")

    def size_bytes(self) -> int:
        """What the window pays for it, roughly."""
        return len(self._body) + 300

    def _mention(self, tag: bytes) -> bytes:
        traits = self.after or self.before
        assert traits is not None
        if tag not in self._gone:
            ref = frames.delimited(b"\x0a", traits.id.encode()) + b"\x10" + frames.varint(traits.uid)
            ref += frames.delimited(b"\x1a", traits.cluster.encode()) if traits.cluster else b""
            change = frames.delimited(tag, ref)
            self._gone[tag] = frames.delimited(b"\x12", b"\x08" + frames.varint(self.version) + change)
        return self._gone[tag]


def put_event(version: int, instance: bytes) -> bytes:
    """A put as `events = 2` of WatchInstancesResponse, from an encoded Instance."""
    return frames.delimited(b"\x12", b"\x08" + frames.varint(version), b"\x12" + frames.varint(len(instance)), instance)


class Step(NamedTuple):
    """All events of one version. Collapsed: they are a difference over versions that this replica missed."""

    version: int
    events: Sequence[WatchedEvent]
    collapsed: bool = False


class History:
    """The newest steps, whole versions, within a bound of bytes.

    Attributes:
        complete_after: every step with a greater version is here (or never was).
    """

    def __init__(self, max_bytes: int) -> None:
        self._steps: deque[Step] = deque()
        self._max_bytes = max_bytes
        self._bytes = 0
        self.complete_after = 0

    def __len__(self) -> int:
        return len(self._steps)

    def reset(self, version: int) -> None:
        """Nothing before this version is known."""
        self._steps.clear()
        self._bytes = 0
        self.complete_after = version

    def add(self, step: Step) -> None:
        """Add the newest step. A collapsed one cuts off what was before: nobody may resume from inside the gap."""
        if step.collapsed:
            self.reset(step.version)
            return
        self._steps.append(step)
        self._bytes += _size(step)
        while self._bytes > self._max_bytes and len(self._steps) > 1:
            oldest = self._steps.popleft()
            self._bytes -= _size(oldest)
            self.complete_after = oldest.version

    def since(self, version: int) -> list[Step] | None:
        """The steps after a version; None if some of them are no longer known."""
        if version < self.complete_after:
            return None
        steps = list(self._steps)
        return steps[bisect.bisect_right(steps, version, key=lambda step: step.version) :]


def _size(step: Step) -> int:
    return sum(event.size_bytes() for event in step.events) + 100
