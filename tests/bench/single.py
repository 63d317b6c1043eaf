"""Lookups with one call in flight on each connection, where client and server wait for each other, and the largest."""

from __future__ import annotations

from functools import partial
from typing import Final

import httpx

from hqpb.v1 import service_pb2
from serving.encoding.jsonio import to_json
from tests.bench import load
from tests.bench.bench import Bench
from tests.bench.load import Shape
from tests.bench.lookups import FLAGS, file_name, of_service
from tests.bench.stand import SERVICE, stand

GROUP: Final = "single"
ONE: Final = "Find 100, gRPC, 16 connections x 1"
LARGEST: Final = "Find 10,000, JSON, 4 connections x 1"
_FIRST_S: Final = 60.0


async def run(bench: Bench) -> None:
    """The group `single`."""
    async with stand(bench.directory / GROUP, 23_000, FLAGS) as made:
        hundred, largest = of_service(100), of_service(10_000)
        answers = {}
        for one in (hundred, largest):
            body = await made.ask(one.method, one.request.SerializeToString())
            answers[file_name(one)] = body
            answers[f"{file_name(one)}.json"] = to_json(service_pb2.FindInstancesResponse.FromString(body))
        empty = await made.empty(answers)
        call = partial(load.grpc, messages=[hundred.request.SerializeToString()], shape=Shape(16, 1))
        raw = partial(load.grpc, messages=[hundred.raw], shape=Shape(16, 1))
        await bench.compare(
            *(GROUP, ONE),
            {
                "hq": lambda seconds: call(made.hq(hundred.method), seconds=seconds),
                "empty": lambda seconds: call(empty.target(file_name(hundred)), seconds=seconds),
                "etcd": lambda seconds: raw(made.raw("KV/Range"), seconds=seconds),
            },
        )
        ask = partial(load.http, messages=[to_json(largest.request)], content_type="application/json", connections=4)
        # The first answer takes longest, and one that is given up is begun anew.
        path = f"http://{made.replicas[0].http}{SERVICE}/{largest.method}"
        async with httpx.AsyncClient(timeout=_FIRST_S, trust_env=False) as first:
            answer = await first.post(
                path, content=to_json(largest.request), headers={"content-type": "application/json"}
            )
            assert len(answer.json()["instances"]) == largest.size
        await bench.compare(
            *(GROUP, LARGEST),
            {
                "hq": lambda seconds: ask(made.hq(largest.method, http=True), seconds=seconds),
                "empty": lambda seconds: ask(empty.target(f"{file_name(largest)}.json", http=True), seconds=seconds),
            },
        )
