"""Wall-E at size: 10,000 and 100,000 hosts, to which more are imported; reported, listed, read, and decided on.

They are in maintenance or free, so nothing is done to them; the store is in memory. So are work that was planned on as
many hosts and is over, as many notices as are kept, and incidents of racks of 40.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import httpx
from google.protobuf.message import Message

from serving.process import relax_gc
from store.port import Write
from tests.bench.bench import Bench
from tests.bench.stats import percentile
from tests.bench.usage import memory_bytes
from tests.support.walle.running import LastingStore, Running, call_json, running
from tests.walle.test_many_hosts import failing, full_store
from walle.healing.decision import decide
from walle.healing.incidents import Bounds, FailureDomain, Incident
from walle.work.book import NOTICE, SCENARIO
from walle.work.notice_records import MAX_RECORDS
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATE_FREE, OUTCOME_DONE, Machine
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_REBOOT,
    SCENARIO_STAGE_FINISHED,
    SEVERITY_ERROR,
    NoticeRecord,
    Scenario,
    ScenarioHost,
)

GROUP: Final = "walle"
LARGE: Final = "walle-large"
_HOSTS: Final = {GROUP: 10_000, LARGE: 100_000}
IMPORT: Final = "500 more hosts imported to {:,}"
IMPORTED: Final = 550  # the first 50 at the start
REPORT: Final = "{:,} hosts reported failing, {:,} in a call"
PAGE: Final = "a page of 1,000 of {:,} hosts, p99"
PROJECTS: Final = "a page of projects, {:,} hosts, p99"
MACHINES: Final = "a page of machines, {:,} hosts, p99"
HOST: Final = "one of {:,} hosts with what would be done, p99"
FORECAST: Final = "a forecast of a project, {:,} failing hosts, p99"
TROUBLED: Final = "a page of 1,000 of {:,} troubled hosts, p99"
SCENARIOS: Final = "a page of planned work on {:,} hosts, p99"
NOTICES: Final = "a page of notices, {:,} hosts, p99"
INCIDENTS: Final = "a page of incidents, {:,} hosts, p99"
LIMITS: Final = "limits of a project, {:,} hosts, p99"
DECISION: Final = "a decision on each of {:,} failing hosts"
_READ: Final[dict[str, Message]] = {
    PAGE: pb.ListHostsRequest(page_size=1000),
    HOST: pb.GetHostRequest(host="h00199"),
    PROJECTS: pb.ListProjectsRequest(page_size=1000),
    MACHINES: pb.ListMachinesRequest(page_size=1000),
    TROUBLED: pb.ListHostsRequest(troubled=True, project="web"),
    LIMITS: pb.GetLimitsRequest(project="web"),
    FORECAST: pb.GetForecastRequest(project="web"),
    SCENARIOS: pb.ListScenariosRequest(page_size=1000),
    NOTICES: pb.ListNoticesRequest(page_size=1000),
    INCIDENTS: pb.ListIncidentsRequest(page_size=1000),
}
_PER_CALL: Final = 50  # of an import, as `walle hosts import` does
_REPORTED: Final = {GROUP: 10_000, LARGE: 1_000}  # in one call
_READS: Final = 10
_SETTLE_MS: Final = 300_000  # the default: a shorter one has hosts that fail looked at more often
_TERM_S: Final = 10.0
_PER_SCENARIO: Final = 500
_PER_RACK: Final = 40


async def run(bench: Bench, group: str = GROUP) -> None:
    """The group `walle`, or `walle-large`."""
    relax_gc()  # as `walle serve` does
    count = _HOSTS[group] // 50 if bench.quick else _HOSTS[group]
    names, before = [f"h{number:05}" for number in range(count)], memory_bytes(os.getpid())
    store = await full_store(count)
    await _fill_lists(store, names)
    rounds, began = 1 if group == LARGE else bench.rounds, time.monotonic()
    async with running(store, settle_ms=_SETTLE_MS, term_s=_TERM_S) as walle:
        await _import_some(walle, 0)
        bench.fact(group, f"start of Wall-E with {count:,} hosts, and a first order", [time.monotonic() - began], "s")
        bench.fact(group, IMPORT.format(count), [await _seconds(lambda: _import(walle))], "s")
        reports = [await _seconds(partial(_report, walle, names, round_, _REPORTED[group])) for round_ in range(rounds)]
        bench.fact(group, REPORT.format(count, _REPORTED[group]), reports, "s")
        began = time.monotonic()
        await walle.until(lambda: failing(walle) == count, "all reports have taken effect", 1_200)
        bench.fact(group, f"... until all of {count:,} have taken effect", [time.monotonic() - began], "s")
        async with httpx.AsyncClient(timeout=120) as client:
            for name, request in _READ.items():
                read, reads = partial(call_json, walle.address, request, client=client), []
                for _ in range(rounds):
                    walle.server.automaton.world.incidents.open |= _incidents(count)  # until it looks at racks again
                    reads.append(await _p99_ms(read))
                bench.fact(group, name.format(count), reads, "ms", note="over HTTP with JSON, on one connection")
        bench.fact(group, DECISION.format(count), [_decide(walle) for _ in range(bench.rounds)], "s")
        grown = memory_bytes(os.getpid()) - before
        bench.fact(group, f"memory of Wall-E for {count:,} hosts that fail", [grown / 1e6], "MB", note="with its store")


async def _fill_lists(store: LastingStore, names: list[str]) -> None:
    records: list[tuple[str, Message]] = []
    for first in range(0, len(names), _PER_SCENARIO):
        hosts = [ScenarioHost(name=name, outcome=OUTCOME_DONE) for name in names[first : first + _PER_SCENARIO]]
        ended = Scenario(id=f"s{first:05}", kind=SCENARIO_KIND_REBOOT, stage=SCENARIO_STAGE_FINISHED, host=hosts)
        records.append((f"{SCENARIO.name}/{ended.id}", ended))
    for number in range(MAX_RECORDS):
        said = NoticeRecord(id=f"{number:016x}", severity=SEVERITY_ERROR, project="web", host=names[number])
        said.text, said.count = f"{said.host}: reboot: given up: its controller does not answer", 3
        records.append((f"{NOTICE.name}/{said.id}", said))
    for first in range(0, len(records), 50):
        puts = tuple(
            (b"/walle/v1/" + key.encode(), one.SerializeToString()) for key, one in records[first : first + 50]
        )
        await store.commit((), [Write((), puts)], 5.0)


def _incidents(count: int) -> dict[tuple[FailureDomain, Bounds], Incident]:
    racks = [FailureDomain("rack", "ams1", f"r{number:04}") for number in range(count // _PER_RACK)]
    return {(rack, Bounds()): Incident(rack, 0, _PER_RACK, _PER_RACK) for rack in racks}


async def _import(walle: Running) -> None:
    for first in range(_PER_CALL, IMPORTED, _PER_CALL):
        await _import_some(walle, first)


async def _import_some(walle: Running, first: int) -> None:
    """Once more until it is done: what is stored and not carried out in time is an error to its caller."""
    names = [f"new{number:05}" for number in range(first, first + _PER_CALL)]
    machines = [Machine(name=name, project=["web"], location={"rack": f"r{first}"}) for name in names]
    hosts = [pb.AddHostRequest(host=name, project="web", state=HOST_STATE_FREE) for name in names]
    while True:
        try:
            await walle.call(pb.ImportMachinesRequest(machines=machines, hosts=hosts))
        except AssertionError as error:
            if "NOT_HANDLED_YET" not in str(error):
                raise
        else:
            return


async def _report(walle: Running, names: list[str], round_: int, together: int) -> None:
    """Until all calls are answered: then it is stored, and takes effect."""
    check = pb.CheckReport(name="ssh", failing=True, source="bench", text=f"round {round_}", fingerprint=str(round_))
    for first in range(0, len(names), together):
        hosts = [pb.HostChecks(host=name, check=[check]) for name in names[first : first + together]]
        await walle.call(pb.ReportChecksRequest(hosts=hosts))


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
