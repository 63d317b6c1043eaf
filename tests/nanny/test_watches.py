"""Watches of one service share a look at its state."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from nanny.api import queries
from nanny.api.queries import Queries
from nannypb.v1 import service_pb2 as pb
from serving.clock import SystemClock
from serving.errors import NotFound

MANY = 50


class CountingQueries(Queries):
    """Each look finds another version. Attributes: looks: how many there were; is_gone: there is no service now."""

    def __init__(self) -> None:
        worker: Any = SimpleNamespace(controller=SimpleNamespace(clock=SystemClock()))
        super().__init__(worker, None, None)  # type: ignore[arg-type]
        self.looks, self.is_gone = 0, False

    async def service(self, service: str) -> pb.Service:
        if self.is_gone:
            raise NotFound(f"there is no service {service}")
        self.looks += 1
        return pb.Service(id=service, version=self.looks)


async def test_many_watches_of_a_service_cost_as_much_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner may open thousands: each looked at all instances of its roll-out every second."""
    monkeypatch.setattr(queries, "_WATCH_EVERY_S", 0.01)
    counting = CountingQueries()
    watches = [counting.watch("web") for _ in range(MANY)]
    first = await asyncio.gather(*map(anext, watches))
    assert [one.version for one in first] == list(range(1, MANY + 1)), "the first is no older than the call"
    then = await asyncio.gather(*map(anext, watches))
    assert counting.looks < MANY + 5
    assert min(one.version for one in then) > MANY
    counting.is_gone = True
    ended = await asyncio.gather(*map(anext, watches), return_exceptions=True)
    assert [type(error) for error in ended] == [NotFound] * MANY
    assert counting._looks == {}


async def test_each_tick_of_a_watch_shows_a_new_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick once showed the look of the tick before again, so that a change was seen two ticks later."""
    ticks, sleep = 0, asyncio.sleep

    async def count_tick(_delay_s: float) -> None:
        nonlocal ticks
        ticks += 1
        await sleep(0)

    monkeypatch.setattr(queries, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": count_tick}))
    watch = CountingQueries().watch("web")
    for tick in range(5):
        assert ((await anext(watch)).version, ticks) == (tick + 1, tick)
