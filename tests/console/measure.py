"""How long pages take over many instances: `python -m tests.console.measure [INSTANCES]`."""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
import time
from typing import Final

from console.backends.registry import Registry
from console.backends.servers import Servers
from hqclient import Client
from hqpb.v1 import instance_pb2 as ipb
from hqpb.v1 import service_pb2 as pb
from tests.console.scene import browser_at, console_over, instance

PAGES: Final = (
    *("/", "/services", "/services/big", "/services/svc-7", "/instances", "/instances?readiness=not-ready"),
    *("/nodes", "/nodes/node-7", "/events", "/instances/default/svc-7-3"),
)
_BATCH: Final = 500
_TIMES: Final = 7


async def measure(count: int) -> None:
    """Print the median and the longest of some requests of each page, in milliseconds."""
    hq = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hq.main", "dev", "--store", "memory"),
        *("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--agents", ""),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert hq.stderr is not None
        async for line in hq.stderr:
            if found := re.search(rb"listening: gRPC ([^ ,]+)", line):
                await _measure(found[1].decode(), count)
                break
    finally:
        hq.terminate()
        await hq.wait()


async def _measure(address: str, count: int) -> None:
    async with Client([address]) as client:
        await _fill(client, count)
    async with (
        console_over(lambda: Servers(Registry([address], {}, None))) as console,
        browser_at(console.base) as browser,
    ):
        print(f"{count} instances: median and longest of {_TIMES}, ms")
        for path in PAGES:
            took = []
            for _ in range(_TIMES):
                began = time.perf_counter()
                answer = await browser.get(path)
                took.append(1_000 * (time.perf_counter() - began))
                assert answer.status_code == 200, (path, answer.status_code)
            print(f"{path:34} {statistics.median(took):7.1f} {max(took):7.1f}")


async def _fill(client: Client, count: int) -> None:
    """A third in one service, the rest in a thousand; one in a hundred has not reported."""
    made = [_one(number, count) for number in range(count)]
    for at in range(0, count, _BATCH):
        some = made[at : at + _BATCH]
        await client.apply(some, timeout_s=60)
        heard = [one for number, one in enumerate(some) if number % 100]
        begin = [
            pb.BeginReportingRequest(instance_id=one.meta.id, revision_id="r2", node=one.spec.node_name)
            for one in heard
        ]
        begun = (await client.begin_many(begin, timeout_s=60)).result
        reports = [_report(one, result.answer) for one, result in zip(heard, begun, strict=True)]
        await client.report_many(reports, timeout_s=60)


def _report(one: ipb.Instance, begun: pb.BeginReportingResponse) -> pb.ReportStatusRequest:
    made = pb.ReportStatusRequest(instance_id=one.meta.id, uid=begun.uid, node=one.spec.node_name)
    made.revision.id, made.revision.incarnation, made.revision.sequence = "r2", begun.incarnation, 1
    made.revision.installed.status = made.revision.ready.status = ipb.CONDITION_STATUS_TRUE
    return made


def _one(number: int, count: int) -> ipb.Instance:
    node = f"node-{number % max(1, count // 20)}"
    if number % 3 == 0:
        return instance(f"big-{number}", "big", node, ("r1", "r2"))
    return instance(f"svc-{number % 1_000}-{number // 1_000}", f"svc-{number % 1_000}", node, ("r1", "r2"))


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
