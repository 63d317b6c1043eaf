"""The ratios that matter most, guarded with wide margins: processor time of the server per call, never absolute times.

Who makes the load does not matter for that, so it is this process; `make bench` measures the same with C tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hqpb.v1 import service_pb2
from tests.bench import raw
from tests.bench.heartbeats import by_fifty, single
from tests.bench.load import Target
from tests.bench.stand import Empty, Stand, stand
from tests.bench.usage import cpu_s

ROUNDS, AT_ONCE = 5, 32


class Loaded:
    """A replica with 3,000 instances, and empty handlers with its answers."""

    def __init__(self, made: Stand, empty: Empty) -> None:
        self.made, self.empty = made, empty

    async def cost(self, target: Target, requests: Sequence[bytes], calls: int) -> float:
        """Processor time of the server per call, in seconds: the least of several rounds, for noise only adds."""
        async with raw.channel(target.address) as channel:
            call = raw.unary(channel, target.path)
            await _round(call, requests, calls // 4)
            costs = []
            for _ in range(ROUNDS):
                before = cpu_s(target.pids)
                await _round(call, requests, calls)
                costs.append((cpu_s(target.pids) - before) / calls)
        return min(costs)


async def _round(call, requests: Sequence[bytes], calls: int) -> None:  # type: ignore[no-untyped-def]
    async def one(number: int) -> None:
        for i in range(number, calls, AT_ONCE):
            await call(requests[i % len(requests)])

    await asyncio.gather(*(one(number) for number in range(AT_ONCE)))


def find(size: int) -> bytes:
    return service_pb2.FindInstancesRequest(filter={"service_id": [f"lookup-{size}"]}).SerializeToString()


@pytest.fixture
async def loaded(tmp_path: Path) -> AsyncIterator[Loaded]:
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(stand(tmp_path, 3_000))
        answers = {"find": await made.ask("FindInstances", find(100)), "heartbeat": b"\x0a\x02\x08\x78"}
        yield Loaded(made, await made.empty(answers))


@pytest.mark.long
async def test_a_lookup_costs_little_more_than_an_empty_handler(loaded: Loaded) -> None:
    ours = await loaded.cost(loaded.made.hq("FindInstances"), [find(100)], 1_000)
    empty = await loaded.cost(loaded.empty.target("find"), [find(100)], 1_000)
    assert empty / ours > 0.45, f"the goal is 80 %, this is {empty / ours:.0%}"


@pytest.mark.long
async def test_a_lookup_decodes_nothing_so_a_thousand_instances_cost_a_few_empty_calls(loaded: Loaded) -> None:
    thousand = await loaded.cost(loaded.made.hq("FindInstances"), [find(1_000)], 200)
    empty = await loaded.cost(loaded.empty.target("find"), [find(100)], 400)
    assert thousand / empty < 8, f"decoding would cost forty times as much; this is {thousand / empty:.1f}"


@pytest.mark.long
async def test_a_heartbeat_among_fifty_costs_a_fraction_of_an_empty_call(loaded: Loaded) -> None:
    fifty = by_fifty(loaded.made.population, 8)
    ours = await loaded.cost(loaded.made.hq("ReportStatuses"), fifty, 200) / 50
    empty = await loaded.cost(loaded.empty.target("heartbeat"), fifty, 400)
    assert ours < empty / 2, f"a heartbeat costs {ours / empty:.0%} of an empty call"


@pytest.mark.long
async def test_a_single_heartbeat_costs_at_most_a_few_empty_calls(loaded: Loaded) -> None:
    heartbeats = single(loaded.made.population, 10)
    ours = await loaded.cost(loaded.made.hq("ReportStatus"), heartbeats, 400)
    empty = await loaded.cost(loaded.empty.target("heartbeat"), heartbeats, 400)
    assert empty / ours > 0.2, f"the goal is 50 %, this is {empty / ours:.0%}"
