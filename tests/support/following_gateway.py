"""What a federation gateway follows of a replica in the test's own loop, written down for tests/checker."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any, cast

from federated.calls.lists import compile_find
from federated.errors import NoAnswer
from federated.followed.demand import Bounds
from federated.followed.followed import FollowedFilters
from federated.locations.locations import Locations
from hq.api.answers import Answers
from hq.memory.query import Query
from hq.registry.registry import Registry
from hqapi.pieces import Pieces
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import ServiceError
from tests.checker import marks
from tests.checker.history import CACHED, OK, Op, Read
from tests.support.recording import Diary, filter_of
from tests.support.virtual_time import VirtualClock

_NAME = "play"


class _Clock(VirtualClock):
    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


class FollowingGateway:
    """Lists from memory only: what it would ask its one location for is not answered here.

    Attributes:
        flows: cleared, and what the location sends stays on its way.
    """

    def __init__(self, diary: Diary, registry: Callable[[], Registry]) -> None:
        """`registry`: where the next watch is opened."""
        self._diary, self._registry, self._clock = diary, registry, _Clock()
        self.flows = asyncio.Event()
        self.flows.set()
        self._answers = Answers(0)
        health = SimpleNamespace(is_up=True, error="", record_source=lambda _: None, silent_since=lambda: None)
        self._location = SimpleNamespace(name=_NAME, health=health, own=tuple, stream=self._stream)
        locations = SimpleNamespace(by_name={_NAME: self._location}, get=lambda _: self._location)
        bounds = Bounds(often=1, idle_s=1e9)
        rng = random.Random(1)
        self.followed = FollowedFilters(cast("Locations", locations), self._clock, rng, 1 << 24, Pieces(0), bounds)

    async def find(self, wanted: dict[str, str]) -> bool:
        """Whether memory had an answer; then it is in the history."""
        called = self._diary.now_ns()
        found = self.followed.answer(compile_find(pb.FindInstancesRequest(filter=filter_of(wanted))), Call())
        if found is None:
            return False
        answer = pb.FindInstancesResponse.FromString(found.proto())
        source = answer.sources[0]
        read = Read(
            0,
            CACHED,
            source.version,
            source.epoch,
            source.stale,
            source.replica,
            {instance.meta.id: marks.item_of(instance) for instance in answer.instances},
            wanted,
            staleness_s=source.staleness.ToMilliseconds() / 1000,
        )
        op = Op(self._diary.number(), "gateway", "find", called, self._diary.now_ns(), OK, read=read)
        self._diary.events.append(op)
        return True

    def close(self) -> None:
        """End its watches."""
        self.followed._drop(list(self.followed._filters))

    async def _stream(self, method: str, request: bytes, metadata: Any) -> AsyncIterator[bytes]:
        wanted = pb.WatchInstancesRequest.FromString(request)
        watch = self._registry().watches.watch(Query(wanted.filter), wanted.resume_token)
        try:
            async with aclosing(watch) as messages:
                async for message in messages:
                    await self.flows.wait()
                    yield self._answers.watch(message).proto()
        except ServiceError as error:
            raise NoAnswer(str(error)) from error
