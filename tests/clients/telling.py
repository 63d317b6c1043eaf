"""Replicas that tell a history as HQ would, to follow what of it arrives."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

from hqclient.discovery import EndpointChanges
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.clients.deeds import Context
from tests.clients.fake_hq import FakeReplica, Stored

Step = frozenset[tuple[str, str, str]]
"""(+ - or ~, instance id, mark) of one version."""


class History:
    """What was written, version by version, and what each version must look like to who follows."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.version = 1
        self.compacted = 0
        self.instances: dict[str, instance_pb2.Instance] = {}
        self.steps: list[Step] = []
        self._events: list[tuple[int, list[pb.WatchEvent]]] = []
        self._more = asyncio.Event()

    def write(self, *ids: str, gone: bool = False) -> None:
        """One version that puts these instances with a mark of its own, or takes them away."""
        self.version += 1
        step = [self._one(id_, gone and id_ in self.instances) for id_ in ids]
        self.steps.append(frozenset(sign for sign, _ in step))
        self._wrote([event for _, event in step])

    def _wrote(self, events: list[pb.WatchEvent]) -> None:
        self._events.append((self.version, events))
        more, self._more = self._more, asyncio.Event()
        more.set()

    def _one(self, id_: str, gone: bool) -> tuple[tuple[str, str, str], pb.WatchEvent]:
        if gone:
            mark = self.instances.pop(id_).meta.labels["mark"]
            ref = pb.InstanceRef(id=id_, cluster="c")
            left = pb.WatchEvent(version=self.version, left=ref)
            deleted = pb.WatchEvent(version=self.version, delete=ref)
            return ("-", id_, mark), self.rng.choice([left, deleted])
        sign = "~" if id_ in self.instances else "+"
        made = self.instances[id_] = serving(id_, mark=str(self.version))
        return (sign, id_, str(self.version)), pb.WatchEvent(version=self.version, put=made)

    def write_serving(self, made: instance_pb2.Instance) -> None:
        """One version that puts this very instance."""
        self.version += 1
        made.meta.labels["mark"] = str(self.version)
        self.instances[made.meta.id] = made
        self._wrote([pb.WatchEvent(version=self.version, put=made)])

    def write_at_random(self) -> None:
        names = self.rng.sample([f"web-{n}" for n in range(12)], self.rng.choice([1, 1, 1, 3]))
        self.write(*names, gone=self.rng.random() < 0.3)

    def compact(self) -> None:
        """Forget what came before now."""
        self.compacted = self.version

    async def tell(self, token: str) -> AsyncIterator[pb.WatchInstancesResponse]:
        """A stream as HQ's: resumed, or from a snapshot; a reader that falls behind the compaction gets RESYNC."""
        at = int(token or 0)
        if at and at >= self.compacted:
            yield pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SYNCED, resume_token=token)
        else:
            if at:
                yield pb.WatchInstancesResponse(kind=pb.WATCH_KIND_RESYNC, reason="behind the history")
            at = self.version
            async for message in self._snapshot(at):
                yield message
        while True:
            more = self._more
            for version, events in [entry for entry in self._events if entry[0] > at]:
                for message in self._messages(version, events):
                    yield message
                at = version
            yield pb.WatchInstancesResponse(kind=pb.WATCH_KIND_BOOKMARK, resume_token=str(at))
            await more.wait()

    async def _snapshot(self, at: int) -> AsyncIterator[pb.WatchInstancesResponse]:
        events = [pb.WatchEvent(version=at, put=found) for found in self.instances.values()]
        for begin in range(0, len(events), 3):
            yield pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SNAPSHOT, events=events[begin : begin + 3])
            await asyncio.sleep(self.rng.random() * 0.003)
        yield pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SYNCED, resume_token=str(at))

    def _messages(self, version: int, events: list[pb.WatchEvent]) -> list[pb.WatchInstancesResponse]:
        """A version in one message or in two; only the last has the token."""
        cut = self.rng.randint(0, len(events) - 1)
        parts = [part for part in (events[:cut], events[cut:]) if part]
        said = [pb.WatchInstancesResponse(kind=pb.WATCH_KIND_EVENTS, events=part) for part in parts]
        said[-1].resume_token = str(version)
        return said


class TellingReplica(FakeReplica):
    """A replica that tells a history."""

    def __init__(self, history: History, name: str) -> None:
        super().__init__(Stored(), name)
        self.history = history
        self.streams = 0  # open at this moment

    async def WatchInstances(self, request: Any, context: Context) -> AsyncIterator[Any]:  # noqa: N802
        await self._arrived("WatchInstances", request, context)
        self.streams += 1
        try:
            async for message in self.history.tell(request.resume_token):
                yield message
        finally:
            self.streams -= 1


def telling_replica(history: History, name: str = "fake-1") -> TellingReplica:
    """A replica, not started."""
    return TellingReplica(history, name)


def serving(
    id_: str, *, service: str = "web", port: int = 80, host: str = "127.0.0.1", node: str = "node-1", mark: str = ""
) -> instance_pb2.Instance:
    """An instance that is ready."""
    made = instance_pb2.Instance()
    made.meta.id, made.meta.service_id, made.meta.cluster, made.meta.uid = id_, service, "c", 1
    if mark:
        made.meta.labels["mark"] = mark
    made.spec.node_name, made.spec.allocation.host = node, host
    made.spec.allocation.port.add(name="http", number=port)
    made.status.ready.status = instance_pb2.CONDITION_STATUS_TRUE
    return made


def as_step(changes: EndpointChanges) -> Step:
    """What a subscriber was told, to compare with what was written."""
    told = [("+", e) for e in changes.added] + [("-", e) for e in changes.removed]
    told += [("~", after) for _, after in changes.changed]
    return frozenset((sign, e.instance_id, e.labels["mark"]) for sign, e in told)
