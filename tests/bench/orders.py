"""Nanny with many services: how long orders take to be stored while 24 callers give them, and its memory.

Real processes of Nanny and HQ over etcd and memory; the agents are simulated in this process.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Iterator
from itertools import cycle
from typing import Final

from hqclient import Client, HqApiError
from nannyctl.nanny_server import NannyServer, new_request_id
from nannypb.v1 import service_pb2 as pb
from tests.bench.bench import Bench
from tests.bench.rollouts import add_snapshot, all_services, nanny_and_hq, order_ms, p99
from tests.bench.stats import percentile
from tests.bench.usage import memory_bytes
from tests.support.following_agents import following_agents

GROUP: Final = "orders"
SERVICES: Final = 1_000
PER_SERVICE: Final = 10
CALLERS: Final = 24
ORDERS: Final = 2_400
ANY_P99: Final = "an order of any service, p99"
MEMORY: Final = "memory of Nanny"
NOTE: Final = f"{SERVICES:,} services, {SERVICES * PER_SERVICE:,} instances, {CALLERS} callers"


async def run(bench: Bench) -> None:
    """The group `orders`."""
    names = [f"s{number}" for number in range(SERVICES)]
    async with nanny_and_hq(bench.directory) as (nanny, hq, pid), Client([hq]) as client:
        waiting = iter(enumerate(names))
        await asyncio.gather(*(_make(nanny, waiting) for _ in range(4)))
        async with following_agents(client, names, random.Random(1)):
            await _measure(bench, nanny, "while all are prepared", [(name, pb.TARGET_PREPARED) for name in names])
            await all_services(nanny, lambda one: one.snapshot[0].current == pb.CURRENT_STATE_PREPARED)
            targets = cycle((pb.TARGET_CREATED, pb.TARGET_PREPARED))
            rng = random.Random(1)
            await _measure(bench, nanny, "of any service", [(rng.choice(names), next(targets)) for _ in range(ORDERS)])
            bench.fact(GROUP, MEMORY, [memory_bytes(pid) / 1e6], "MB", note=NOTE)


async def _measure(bench: Bench, nanny: NannyServer, what: str, orders: list[tuple[str, pb.Target]]) -> None:
    took, failed = await _order_all(nanny, orders)
    bench.fact(GROUP, f"an order {what}, p50", [percentile(sorted(took), 0.5)], "ms", note=NOTE)
    bench.fact(GROUP, f"an order {what}, p99", [p99(took)], "ms", note=NOTE)
    bench.fact(GROUP, f"orders {what} that were not stored", [failed], "", note=NOTE)


async def _make(nanny: NannyServer, names: Iterator[tuple[int, str]]) -> None:
    for place, name in names:
        request = pb.CreateServiceRequest(service_id=name, request_id=new_request_id())
        while not await _is_done(nanny.call("CreateService", request)):
            await asyncio.sleep(1.0)
        instances = [f"{name}-{number}" for number in range(PER_SERVICE)]
        while not await _is_done(add_snapshot(nanny, name, "r1", instances, place * PER_SERVICE)):
            await asyncio.sleep(1.0)


async def _is_done(call: Awaitable[object]) -> bool:
    """A machine that is busy with other things may keep its etcd waiting."""
    try:
        await call
    except HqApiError:
        return False
    return True


async def _order_all(nanny: NannyServer, orders: list[tuple[str, pb.Target]]) -> tuple[list[float], int]:
    """How long each took that was stored, in milliseconds, and how many were not."""
    waiting, took, failed = iter(orders), list[float](), 0

    async def caller() -> None:
        nonlocal failed
        for name, target in waiting:
            try:
                took.append(await order_ms(nanny, name, target))
            except HqApiError:
                failed += 1

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return took, failed
