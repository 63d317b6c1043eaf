"""The CMS at size: 100,000 instances on 10,000 hosts, and ten times as many; 1,000 tasks wait; a decision, a poll.

HQ is not asked: what a fence costs is HQ's figure. The store is in memory.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from cms.desk import CmsController, CmsSettings
from cms.hqview.locations import HqFollower
from cms.leave import TaskService
from cms.ledger.book import Rules, TaskLedger
from cms.ledger.decide import decide
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.limits import DomainLimit, DomainLimits, Site
from cms.records import TASK
from cms.wire.answers import json_bytes, verdict
from cmspb.storage.v1 import ledger_pb2
from control import ControlConfig, Controller
from serving.clock import SystemClock
from serving.process import relax_gc
from store.memory import MemoryStore
from tests.bench.bench import Bench
from tests.bench.stats import percentile
from tests.bench.usage import memory_bytes

GROUP: Final = "cms"
LARGE: Final = "cms-large"
_HOSTS: Final = {GROUP: 10_000, LARGE: 100_000}
PER_HOST: Final = 10
SERVICES: Final = 1_000
WAITING: Final = 1_000
LOCATION: Final = "here"
DECISION: Final = "a decision over all that wait, p99"
POLL: Final = "a poll of a task that waits, with its details, p99"
NEW: Final = "a new task, stored and decided, p99"


class StillLocations(HqFollower):
    """They say nothing new, and can be relied on."""

    def look(self) -> None:
        """Look as before."""

    async def fence(self, timeout_s: float = 1.0) -> None:
        """Nothing to wait for."""


async def run(bench: Bench, group: str = GROUP) -> None:
    """The group `cms`, or `cms-large`."""
    relax_gc()  # as `cms serve` does
    clock, rng, hosts, before = SystemClock(), random.Random(1), _HOSTS[group], memory_bytes(os.getpid())
    book = _book(clock.now(), rng, hosts)
    store = MemoryStore()
    controller = Controller(ControlConfig("/cms/v1/", "bench", 5.0), store, clock, rng)
    leave = TaskService(CmsController(controller, book, StillLocations({}, book.picture, clock), CmsSettings()))
    running = asyncio.create_task(controller.run())
    try:
        await asyncio.wait_for(controller.loaded.wait(), 10)
        while not controller.is_acting:
            await asyncio.sleep(0.01)
        await _fill(leave, rng, hosts)
        await _measure(bench, leave, rng, group)
        if group == LARGE:
            grown = memory_bytes(os.getpid()) - before
            bench.fact(group, f"memory of the CMS for {hosts * PER_HOST:,} instances", [grown / 1e6], "MB")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _book(now: float, rng: random.Random, hosts: int) -> TaskLedger:
    book = TaskLedger.empty(Rules(patience_s=3_600), [LOCATION])
    book.picture.believe([LOCATION])
    for number in range(hosts * PER_HOST):
        key = InstanceKey(LOCATION, f"i{number}")
        book.picture.put_instance(
            Instance(key, f"s{number % SERVICES}", f"h{number // PER_HOST}", is_ready=rng.random() < 0.97)
        )
        book.picture.record_report(key, now)
    sites = {f"h{number}": Site(rack=f"r{number // 40}") for number in range(hosts)}
    book.limit(DomainLimits([DomainLimit("racks", "rack", 100), DomainLimit("hosts", "host", 200)], sites))
    return book


async def _fill(leave: TaskService, rng: random.Random, hosts: int) -> None:
    """Until as many wait as shall wait."""
    numbers = itertools.count()
    while sum(task.state == "waiting" for task in leave.desk.book.tasks.values()) < WAITING:
        change = leave.desk.controller.creation()
        for number in itertools.islice(numbers, 100):
            wanted = _task(f"fill-{number}", rng, hosts)
            change.get(TASK, wanted.id)
            change.put(TASK, wanted.id, wanted)
        await change.commit(30.0)
        await asyncio.sleep(0.2)


async def _measure(bench: Bench, leave: TaskService, rng: random.Random, group: str) -> None:
    desk, count, hosts = leave.desk, 40 if bench.quick or group == LARGE else 200, _HOSTS[group]
    waiting = [task.id for task in desk.book.tasks.values() if task.state == "waiting"]
    note = f"{len(desk.book.picture.instances):,} instances, {len(waiting):,} tasks wait, {desk.grants:,} granted"

    async def decision() -> None:
        decide(desk.book, desk.clock.now())

    async def poll() -> None:
        record, why = await leave.look(rng.choice(waiting), "")
        json_bytes(verdict(record, why, desk.clock))

    async def dry_run() -> None:
        await leave.dry_run(_task("dry", rng, hosts))

    async def create() -> None:
        await leave.create(_task(f"new-{rng.getrandbits(60)}", rng, hosts))

    for name, call, times in (
        (DECISION, decision, count),
        (POLL, poll, count * 5),
        ("a dry run, p99", dry_run, count),
        (NEW, create, count),
    ):
        name = f"{name}, {hosts * PER_HOST:,} instances" if group == LARGE else name
        bench.fact(group, name, [await _p99_ms(call, times) for _ in range(bench.rounds)], "ms", note=note)


async def _p99_ms(call: Callable[[], Coroutine[Any, Any, None]], times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        await call()
        taken.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0)
    return percentile(sorted(taken), 0.99)


def _task(task_id: str, rng: random.Random, hosts: int) -> ledger_pb2.Task:
    host = f"h{rng.randrange(hosts)}"
    return ledger_pb2.Task(id=task_id, action="reboot", type="automated", issuer="bench", host=[host], state="waiting")
