"""Lookups over gRPC by connections, against the empty handler of grpc.aio and a range of etcd."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.bench import load
from tests.bench.bench import Bench, Side
from tests.bench.load import Shape
from tests.bench.lookups import Lookup, file_name, get, of_service
from tests.bench.stand import Empty, Stand, stand

GROUP: Final = "transport"
SHAPES: Final = (Shape(1, 64), Shape(16, 8), Shape(64, 4))


async def run(bench: Bench) -> None:
    """The group `transport`."""
    async with stand(bench.directory / GROUP, 3_000) as made:
        lookups = [get(), of_service(100)]
        answers = {file_name(one): await made.ask(one.method, one.request.SerializeToString()) for one in lookups}
        empty = await made.empty(answers)
        for lookup in lookups:
            for shape in SHAPES[1:2] if bench.quick else SHAPES:
                await _compare(bench, made, empty, lookup, shape)


async def _compare(bench: Bench, made: Stand, empty: Empty, lookup: Lookup, shape: Shape) -> None:
    request, name = [lookup.request.SerializeToString()], file_name(lookup)
    sides: dict[str, Side] = {
        "hq": partial(load.grpc, made.hq(lookup.method), request, shape=shape),
        "empty": partial(load.grpc, empty.target(name), request, shape=shape),
        "etcd": partial(load.grpc, made.raw("KV/Range"), [lookup.raw], shape=shape),
    }
    await bench.compare(GROUP, case_name(lookup.name, shape), sides)


def case_name(name: str, shape: Shape) -> str:
    """As the table has it."""
    return f"{name}, gRPC, {shape.connections} connections x {shape.streams}"
