"""HQ played through: replicas over one store, agents that report as real ones do, outages in between.

Over the in-memory store in virtual time hours take seconds; the same plays over a real etcd in real time.
An observer of its own notes every expiry and recovery from the store itself. `run_virtually` runs it all in seconds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from google.protobuf.message import DecodeError

from hq import keys as k
from hq.config import ReplicaConfig
from hq.errors import NotBegun
from hq.liveness.deadlines import RevisionKey
from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hq.replica import Replica
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import ServiceError, StoreUnavailable
from store.memory import MemoryStore
from store.port import (
    Batch,
    Disconnected,
    Store,
)
from tests.support.sample_instances import instance
from tests.support.store_link import Link
from tests.support.virtual_time import VirtualClock

Times = tuple[float, float] | None  # report interval and timeout of an instance's own, in seconds


class Change(NamedTuple):
    """An expiry or a recovery, as the store's history has it."""

    at_s: float
    key: RevisionKey
    expired: bool


class Agent:
    """Reports one revision to any replica that answers, with a back-off that never exceeds the time it has failed.

    Like hqclient it stays with a replica that answers, and asks another one after a failure.

    Attributes:
        interval_s: at which it reports: what it was given when it began.
    """

    def __init__(self, simulation: Simulation, instance_id: str, node: str) -> None:
        self._simulation, self._rng = simulation, simulation.rng
        self.key, self.node = RevisionKey(instance_id, "r1"), node
        self.silent = False
        self.silent_since = 0.0
        self.last_report = 0.0
        self.interval_s = simulation.interval_s
        self._incarnation = self._uid = self._sequence = 0
        self._registry: Registry | None = None
        self._failed: Registry | None = None

    def fall_silent(self) -> None:
        self.silent, self.silent_since = True, self._simulation.now

    async def run(self) -> None:
        """Report for ever, unless silent."""
        loop = asyncio.get_running_loop()
        failing_since: float | None = None
        while True:
            share, retry_s = self._rng.uniform(0.9, 1.0), 0.0
            if not self.silent:
                try:
                    async with asyncio.timeout(self._simulation.call_s):
                        await self._report()
                    failing_since, self.last_report = None, loop.time()
                    self._simulation.acknowledged.append((self.last_report, self.key))
                except (ServiceError, TimeoutError) as error:
                    if isinstance(error, NotBegun):
                        self._incarnation = 0
                    self._failed, self._registry = self._registry, None
                    failing_since = loop.time() if failing_since is None else failing_since
                    longest_s = min(max(self._simulation.call_s / 10, loop.time() - failing_since), self.interval_s)
                    retry_s = self._rng.uniform(longest_s / 2, longest_s)
            await asyncio.sleep(retry_s or self.interval_s * share)

    async def _report(self) -> None:
        registry = self._registry = self._registry or self._simulation.any_registry(self._failed)
        deadline = self._simulation.now + self._simulation.call_s
        if not self._incarnation:
            begun = await registry.reports.begin(self.key.instance_id, self.key.revision_id, self.node, deadline)
            self._incarnation, self._uid, self.interval_s = begun.incarnation, begun.uid, begun.report_interval_s
        self._sequence += 1
        status = model.RevisionStatus(id=self.key.revision_id, incarnation=self._incarnation, sequence=self._sequence)
        status.ready.status = model.CONDITION_STATUS_TRUE
        report = pb.ReportStatusRequest(
            instance_id=self.key.instance_id, uid=self._uid, node=self.node, revision=status
        )
        await registry.reports.report(report, deadline)


class Running(NamedTuple):
    """A replica that runs."""

    link: Link
    registry: Registry
    task: asyncio.Task[None]


class Simulation:
    """Replicas, agents and an observer. Use as a context manager, inside `run_virtually` unless `connect` is given.

    `connect` makes a connection to the store for each replica; without it they share one in memory.
    """

    def __init__(
        self,
        seed: int = 1,
        timeout_s: float = 600.0,
        interval_s: float = 180.0,
        connect: Callable[[], Store] | None = None,
        **settings: object,
    ) -> None:
        self.rng = random.Random(seed)
        self.interval_s, self.call_s = interval_s, min(10.0, interval_s)
        self.store = MemoryStore()
        self._connect = connect or (lambda: self.store)
        self._settings = {"liveness_timeout_s": timeout_s, "report_interval_s": interval_s, "compact_every_s": 0.0}
        self._settings |= settings  # type: ignore[arg-type]
        self.replicas: list[Running] = []
        self.agents: list[Agent] = []
        self.changes: list[Change] = []
        self.acknowledged: list[tuple[float, RevisionKey]] = []
        self._started = 0
        self._keys = k.HqKeys(str(settings.get("prefix", k.DEFAULT_PREFIX)))
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def __aenter__(self) -> Simulation:
        self._tasks.append(asyncio.create_task(self._observe()))
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._tasks, *(running.task for running in self.replicas)]
        failed = [task.exception() for task in tasks if task.done() and not task.cancelled()]
        for running in self.replicas:
            await self._end(running)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        assert not failed, f"a replica or an agent died: {failed}"

    async def start_replica(self, clock_off_s: float = 0.0) -> Running:
        """One more replica, loaded. Its wall clock may be off."""
        self._started += 1
        config = ReplicaConfig(replica=f"replica-{self._started}", **self._settings)  # type: ignore[arg-type]
        link, clock = Link(self._connect()), VirtualClock(clock_off_s)
        replica = Replica(config, link, clock, self.rng)
        task = asyncio.create_task(replica.run())
        running = Running(link, Registry(replica, self.rng), task)
        self.replicas.append(running)
        await replica.loading.loaded.wait()
        return running

    async def stop_replica(self, running: Running) -> None:
        """Crash a replica: it tells nobody."""
        self.replicas.remove(running)
        await self._end(running)

    async def add_agents(self, count: int, nodes: int, times: Sequence[Times] = (None,)) -> None:
        """Instances on these nodes, with these times in turn, and with an agent each; returns when all are ready."""
        for n in range(count):
            instance_id, node = f"i-{len(self.agents)}", f"node-{n % nodes}"
            made = instance(instance_id, node=node, times=times[n % len(times)])
            await self.any_registry().writes.create(made, "", self.now + 10, validate_only=False)
            self.agents.append(Agent(self, instance_id, node))
            self._tasks.append(asyncio.create_task(self.agents[-1].run()))
        while any(not agent.last_report for agent in self.agents):
            await asyncio.sleep(self.interval_s / 100)

    async def change_times(self, agent: Agent, times: Times) -> None:
        """Give an instance others in its spec; its agent learns of it when it reports next."""
        writes, made = self.any_registry().writes, instance(agent.key.instance_id, node=agent.node, times=times)
        await writes.update(made, ["spec.liveness"], Precondition(0, ""), self.now + 10, validate_only=False)

    def any_registry(self, but: Registry | None = None) -> Registry:
        """One of a replica that runs, another than `but` if there is any. Raises StoreUnavailable while none runs."""
        running = [replica.registry for replica in self.replicas]
        if not running:
            raise StoreUnavailable("connection refused")
        return self.rng.choice([registry for registry in running if registry is not but] or running)

    async def outage(self, seconds: float, replicas: Sequence[Running] | None = None) -> None:
        """The way to the store is cut, for all replicas or some."""
        affected = [running.link for running in (self.replicas if replicas is None else replicas)]
        for link in affected:
            link.cut()
        await asyncio.sleep(seconds)
        for link in affected:
            link.mend()

    def expiries(self, agent: Agent | None = None) -> list[Change]:
        return [c for c in self.changes if c.expired and (agent is None or c.key == agent.key)]

    def false_expiries(self) -> list[Change]:
        """Expiries of revisions whose agents were not silent."""
        silent = {agent.key: agent.silent_since for agent in self.agents if agent.silent}
        return [expiry for expiry in self.expiries() if expiry.key not in silent or expiry.at_s < silent[expiry.key]]

    async def _end(self, running: Running) -> None:
        running.task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await running.task
        await running.link.close()

    async def _observe(self) -> None:
        """Note every change of an expired mark, in the store's order, over all outages."""
        start, link, seen, expired = self._keys.of(k.STATUS, ""), Link(self._connect()), 0, set[RevisionKey]()
        try:
            while True:
                with suppress(Disconnected):
                    async with link.watch(start, k.prefix_end(start), after=seen) as stream:
                        async for batch in stream:
                            seen = batch.revision
                            self._note(batch, expired)
                await asyncio.sleep(0.2)
        finally:
            await link.close()

    def _note(self, batch: Batch, expired: set[RevisionKey]) -> None:
        for change in batch.changes:
            try:
                record = storage_pb2.StatusRecord.FromString(change.value or b"")
            except DecodeError:
                continue
            for mark in record.revision:
                key = RevisionKey(self._keys.name(change.key).rest, mark.id)
                if mark.expired != (key in expired):
                    self.changes.append(Change(self.now, key, mark.expired))
                    expired ^= {key}
