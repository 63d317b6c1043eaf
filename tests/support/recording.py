"""What clients of replicas in the test's own loop did and were told: a history for tests/checker.

recording_client.py has the clients that write it, recording_agent.py the agents, recording_watch.py the watches.
"""

from __future__ import annotations

import asyncio

from hq.memory import frames
from hq.memory.entry import Entry
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.checker import marks
from tests.checker.history import Event, Item


class Diary:
    """What happened, in order. `events` is the history."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._number = 0

    @staticmethod
    def now_ns() -> int:
        return round(asyncio.get_running_loop().time() * 1e9)

    def number(self) -> int:
        self._number += 1
        return self._number


def item_of(entry: Entry) -> Item:
    return marks.item_of(model.Instance.FromString(frames.body(entry.frame())))


def filter_of(wanted: dict[str, str]) -> pb.InstanceFilter:
    """The filter that tests/checker means by these words."""
    filtered = pb.InstanceFilter()
    for name, word in wanted.items():
        if name == "ready":
            filtered.readiness = pb.READINESS_FILTER_READY if word == "T" else pb.READINESS_FILTER_NOT_READY
        else:
            getattr(filtered, name).append(word)
    return filtered
