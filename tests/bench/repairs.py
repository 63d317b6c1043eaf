"""Wall-E at size: 10,000 hosts, to which more are imported; reported in one call, listed, read, and decided on.

They are in maintenance or free, so nothing is done to them; the store is in memory.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import httpx
from google.protobuf.message import Message

from serving.process import relax_gc
from tests.bench.bench import Bench
from tests.bench.stats import percentile
from tests.support.walle.running import Running, call_json, running
from tests.walle.test_many_hosts import failing, full_store
from walle.healing.decision import decide
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATE_FREE, Machine

GROUP: Final = "walle"
HOSTS: Final = 10_000
IMPORT: Final = "500 more hosts imported"
IMPORTED: Final = 500
REPORT: Final = "10,000 hosts reported failing in one call"
PAGE: Final = "a page of 1,000 hosts, p99"
HOST: Final = "one host with what would be done, p99"
PROJECTS: Final = "a page of projects, p99"
MACHINES: Final = "a page of machines, p99"
DECISION: Final = "a decision on each of 10,000 failing hosts"
_READ: Final[dict[str, Message]] = {
    PAGE: pb.ListHostsRequest(page_size=1000),
    HOST: pb.GetHostRequest(host="h09999"),
    PROJECTS: pb.ListProjectsRequest(page_size=1000),
    MACHINES: pb.ListMachinesRequest(page_size=1000),
}
_PER_CALL: Final = 50  # of an import, as `walle hosts import` does
_READS: Final = 10


async def run(bench: Bench) -> None:
    """The group `walle`."""
    relax_gc()  # as `walle serve` does
    note, names = f"{HOSTS:,} hosts", [f"h{number:05}" for number in range(HOSTS)]
    async with running(await full_store(HOSTS)) as walle:
        bench.fact(GROUP, IMPORT, [await _seconds(lambda: _import(walle))], "s", note=note)
        reports = [await _seconds(partial(_report, walle, names, round_)) for round_ in range(bench.rounds)]
        bench.fact(GROUP, REPORT, reports, "s", note=note)
        await walle.until(lambda: failing(walle) == HOSTS, "all reports have taken effect", 600)
        async with httpx.AsyncClient(timeout=20) as client:
            for name, request in _READ.items():
                read = partial(call_json, walle.address, request, client=client)
                reads = [await _p99_ms(read) for _ in range(bench.rounds)]
                bench.fact(GROUP, name, reads, "ms", note=f"{note}, over HTTP with JSON, on one connection")
        bench.fact(GROUP, DECISION, [_decide(walle) for _ in range(bench.rounds)], "s", note=note)


async def _import(walle: Running) -> None:
    for first in range(0, IMPORTED, _PER_CALL):
        names = [f"new{number:05}" for number in range(first, first + _PER_CALL)]
        machines = [Machine(name=name, project=["web"], location={"rack": f"r{first}"}) for name in names]
        hosts = [pb.AddHostRequest(host=name, project="web", state=HOST_STATE_FREE) for name in names]
        await walle.call(pb.ImportMachinesRequest(machines=machines, hosts=hosts))


async def _report(walle: Running, names: list[str], round_: int) -> None:
    """Until it is answered: then it is stored, and takes effect."""
    check = pb.CheckReport(name="ssh", failing=True, source="bench", text=f"round {round_}", fingerprint=str(round_))
    await walle.call(pb.ReportChecksRequest(hosts=[pb.HostChecks(host=name, check=[check]) for name in names]))


def _decide(walle: Running) -> float:
    automaton, began = walle.server.automaton, time.perf_counter()
    for host in automaton.hosts.values():
        decide(host, automaton.projects["web"], automaton.world.incidents, host.released_ms + 3_600_000)
    return time.perf_counter() - began


async def _seconds(call: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


async def _p99_ms(call: Callable[[], Awaitable[object]]) -> float:
    return percentile(sorted([1000 * await _seconds(call) for _ in range(_READS)]), 0.99)
