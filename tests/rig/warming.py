"""What a process goes through before a soak counts: everything that is bounded has reached its bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from hqclient.client import Client
from hqpb.v1 import service_pb2 as pb
from tests.support.arbitrary_messages import varint
from tests.support.sample_instances import instance

NAME = "warm-up"
# More than are remembered by their bytes (serving/encoding/parsing.py), and so many calls in all that garbage has been
# collected: gRPC leaves some in circles behind each call, which is looked for now and then (serving/process.py).
_DISTINCT, _CALLS = 6_000, 16_000
_AT_ONCE = 8


async def prepare(address: str) -> None:
    """Create the one instance that `warm_up` asks for; nobody else does."""
    async with Client([address], timeout_s=30.0) as client:
        await client.create(instance(NAME, NAME, NAME))


async def warm_up(address: str) -> None:
    """Read so many times from one replica or gateway, with requests that mostly differ."""
    async with Client([address], timeout_s=30.0) as client:
        calls = _calls(client)

        async def some() -> None:
            for send in calls:
                await send()

        await asyncio.gather(*(some() for _ in range(_AT_ONCE)))


def _calls(client: Client) -> Iterator[Callable[[], Awaitable[object]]]:
    for number in range(_DISTINCT):
        get, find = pb.GetInstanceRequest(id=NAME), pb.FindInstancesRequest()
        find.filter.service_id.append(NAME)
        for request in (get, find):
            request.MergeFromString(_distinct(number))
        yield partial(client.call, lambda hq: hq.instances.GetInstance, get)
        yield partial(client.call, lambda hq: hq.instances.FindInstances, find)
    for _ in range(_CALLS - 2 * _DISTINCT):
        yield client.count


def _distinct(number: int) -> bytes:
    """A field that nobody knows makes the bytes of a request unlike all others, and changes nothing else."""
    return varint(1000 << 3) + varint(number + 1)
