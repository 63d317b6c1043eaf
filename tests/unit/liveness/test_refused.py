"""Refused is not silent: agents that keep trying are excused for failures of HQ, but not for ever."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Iterator

import pytest

import hq
import serving
from hq.errors import BehindVersion
from hq.liveness.deadlines import RevisionKey
from hq.memory.statuses import HEARTBEAT_TIMEOUT, REPORTS_REFUSED
from hqpb.v1 import service_pb2
from serving.errors import (
    AuditUnavailable,
    DeadlineExceeded,
    NotLoaded,
    OutcomeUnknown,
    Overloaded,
    Retry,
    ServiceError,
    ShuttingDown,
    StoreFull,
    StoreUnavailable,
)
from serving.protocol_errors import TooManyConnections
from serving.storage.errors import WriteGuarded
from store.port import Commit, Compare, NoSpace, Unavailable, Write
from tests.support.simulation import Agent, Running, Simulation
from tests.support.virtual_time import run_virtually

AGENTS, NODES = 15, 3  # too few for the guard, which would only hide false expiries
TIMEOUT_S = 600.0
LATE_S = 20.0  # a sweep, a flush, and what a refusal takes to be known elsewhere

# For a reason of HQ's own. What is in neither table fails `test_every_kind_of_refusal_is_classified`.
OURS: dict[type[ServiceError], ServiceError] = {
    ServiceError: ServiceError("internal error"),
    OutcomeUnknown: OutcomeUnknown("nobody knows"),
    DeadlineExceeded: DeadlineExceeded("others kept changing it"),
    Retry: Retry("not now"),
    StoreUnavailable: StoreUnavailable("the store does not answer"),
    StoreFull: StoreFull("the store is full"),
    NotLoaded: NotLoaded("still reading"),
    BehindVersion: BehindVersion("behind"),
    Overloaded: Overloaded("4000 calls are under way already", limit="max_calls"),
    AuditUnavailable: AuditUnavailable("disk full"),
    TooManyConnections: TooManyConnections("max_connections"),
    WriteGuarded: WriteGuarded("another epoch"),
}
NEVER = {
    *("StartOver", "EpochChanged", "VersionConflict", "AlreadyExists", "NotFound", "InvalidRequest"),
    *("Stop", "WrongNode", "WrongService", "WrongUid", "UnknownRevision", "Fenced", "NotBegun", "OutdatedReport"),
    *("TooLarge", "UnknownMethod", "PermissionDenied", "OutOfReach", "Unauthenticated", "UnsupportedMediaType"),
    *(
        "UnsupportedEncoding",
        "MethodNotAllowed",
        "MalformedHttp",
        "WrongNumberOfMessages",
        "UnexpectedCompression",
        "GrpcNeedsHttp2",
        "UnknownHost",
    ),
    *("SlowRequest", "HeadersTooLarge", "ShuttingDown", "StoreLimit", "EpochDoubted", "FailedPrecondition"),
    "LivenessUnavailable",
}


def every_refusal(kind: type[ServiceError] = ServiceError) -> Iterator[type[ServiceError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from every_refusal(narrower)


def test_every_kind_of_refusal_is_classified() -> None:
    """Who adds a kind must decide whether agents that get it are excused. (Gateways take no reports.)"""
    for package in (serving, hq):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for kind in every_refusal():
        if kind.__module__.split(".")[0] in ("hq", "serving", "store"):
            assert kind.ours == (kind in OURS), kind
            assert (kind in OURS) != (kind.__name__ in NEVER), kind


def simulated(scene: Callable[[Simulation], Awaitable[None]], replicas: int = 1) -> Simulation:
    async def main() -> Simulation:
        async with Simulation() as simulation:
            for _ in range(replicas):
                await simulation.start_replica()
            await simulation.add_agents(AGENTS, NODES)
            await asyncio.sleep(200)  # each has reported twice
            await scene(simulation)
        return simulation

    return run_virtually(main)


class Refusing:
    """A replica that refuses reports: all, or those of some agents."""

    def __init__(self, running: Running, error: ServiceError, only: set[RevisionKey] | None = None) -> None:
        self._reports, self._error, self._only = running.registry.reports, error, only
        self._honest = self._reports._take
        self.is_on = True
        self._reports._take = self._take  # type: ignore[method-assign]

    async def _take(self, report: service_pb2.ReportStatusRequest, deadline: float, field: str) -> None:
        key = RevisionKey(report.instance_id, report.revision.id)
        if self.is_on and (self._only is None or key in self._only):
            raise self._error
        await self._honest(report, deadline, field)


def reason_of(simulation: Simulation, key: RevisionKey) -> str:
    entry = simulation.any_registry().replica.cache.get(key.instance_id)
    assert entry is not None
    return next(r.ready.reason for r in entry.status().revision if r.id == key.revision_id)


@pytest.mark.parametrize(
    "kind",
    [StoreUnavailable, *(pytest.param(kind, marks=pytest.mark.long) for kind in OURS if kind is not StoreUnavailable)],
    ids=lambda kind: kind.__name__,
)
def test_refused_agents_that_keep_trying_expire_after_two_timeouts_with_the_reason(kind: type[ServiceError]) -> None:
    async def scene(simulation: Simulation) -> None:
        refused_at = {agent.key: agent.last_report for agent in simulation.agents}
        refusing = Refusing(simulation.replicas[0], OURS[kind])
        await asyncio.sleep(3 * TIMEOUT_S)
        assert {expiry.key for expiry in simulation.expiries()} == set(refused_at)
        for expiry in simulation.expiries():
            assert 2 * TIMEOUT_S <= expiry.at_s - refused_at[expiry.key] <= 2 * TIMEOUT_S + LATE_S
            assert reason_of(simulation, expiry.key) == REPORTS_REFUSED
        refusing.is_on = False
        await asyncio.sleep(200)
        assert [change for change in simulation.changes if not change.expired]

    simulated(scene)


@pytest.mark.parametrize("limit", ["max_calls_per_peer", "max_calls_per_peer_s", "max_bodies_bytes_per_peer"])
def test_an_agent_over_a_limit_of_its_own_is_not_excused(limit: str) -> None:
    async def scene(simulation: Simulation) -> None:
        refused_at = {agent.key: agent.last_report for agent in simulation.agents}
        Refusing(simulation.replicas[0], Overloaded("too many", limit=limit))
        await asyncio.sleep(2 * TIMEOUT_S)
        for expiry in simulation.expiries():
            assert expiry.at_s - refused_at[expiry.key] <= TIMEOUT_S + LATE_S
            assert reason_of(simulation, expiry.key) == HEARTBEAT_TIMEOUT
        assert len(simulation.expiries()) == AGENTS

    simulated(scene)


def test_a_replica_that_goes_away_excuses_nobody() -> None:
    async def scene(simulation: Simulation) -> None:
        Refusing(simulation.replicas[0], ShuttingDown("going"))
        await asyncio.sleep(TIMEOUT_S + LATE_S)
        assert len(simulation.expiries()) == AGENTS

    simulated(scene)


@pytest.mark.long
def test_a_temporary_refusal_expires_nobody_and_leaves_nothing_behind() -> None:
    async def scene(simulation: Simulation) -> None:
        refusing = Refusing(simulation.replicas[0], OURS[Overloaded])
        await asyncio.sleep(1.5 * TIMEOUT_S)
        refusing.is_on = False
        await asyncio.sleep(TIMEOUT_S)
        silent = simulation.agents[0]
        silent.fall_silent()
        await asyncio.sleep(TIMEOUT_S + LATE_S)
        [expiry] = simulation.expiries()
        assert expiry.at_s - silent.last_report <= TIMEOUT_S + LATE_S

    assert simulated(scene).false_expiries() == []


def test_silent_agents_expire_even_if_others_are_refused() -> None:
    async def scene(simulation: Simulation) -> None:
        [dead, *others] = simulation.agents
        Refusing(simulation.replicas[0], OURS[Overloaded], {agent.key for agent in others})
        dead.fall_silent()
        await asyncio.sleep(TIMEOUT_S + LATE_S)
        assert [expiry.key for expiry in simulation.expiries()] == [dead.key]
        assert reason_of(simulation, dead.key) == HEARTBEAT_TIMEOUT

    simulated(scene)


@pytest.mark.long
def test_an_agent_that_reaches_one_replica_only_is_not_expired_by_the_others() -> None:
    async def scene(simulation: Simulation) -> None:
        [bound, *_] = simulation.agents
        [refusing, *_] = simulation.replicas
        _bind(bound, refusing)
        await asyncio.sleep(400)
        Refusing(refusing, OURS[Overloaded], {bound.key})
        await asyncio.sleep(2 * TIMEOUT_S - 200)
        assert simulation.expiries() == []
        await asyncio.sleep(200 + 180 + LATE_S)
        assert [expiry.key for expiry in simulation.expiries()] == [bound.key]

    simulated(scene, replicas=3)


@pytest.mark.long
def test_a_dead_neighbour_on_the_node_of_a_refused_agent_expires_in_time() -> None:
    async def scene(simulation: Simulation) -> None:
        [bound, *_] = simulation.agents
        dead = next(agent for agent in simulation.agents[1:] if agent.node == bound.node)
        _bind(bound, simulation.replicas[0])
        Refusing(simulation.replicas[0], OURS[Overloaded], {bound.key})
        dead.fall_silent()
        await asyncio.sleep(TIMEOUT_S + LATE_S)
        assert [expiry.key for expiry in simulation.expiries()] == [dead.key]

    simulated(scene, replicas=3)


@pytest.mark.long
def test_replayed_reports_of_a_dead_instance_spare_it_one_timeout_at_most() -> None:
    async def scene(simulation: Simulation) -> None:
        [dead, *_] = simulation.agents
        replica = simulation.replicas[0]
        dead.fall_silent()
        entry = replica.registry.replica.cache.get(dead.key.instance_id)
        assert entry is not None
        replayed = service_pb2.ReportStatusRequest(
            instance_id=dead.key.instance_id, uid=entry.traits.uid, node=dead.node
        )
        replayed.revision.id, replayed.revision.incarnation = "r1", entry.marks[0].incarnation
        Refusing(replica, OURS[Overloaded], {dead.key})
        while simulation.now < dead.last_report + 3 * TIMEOUT_S:
            with pytest.raises(Overloaded):
                await replica.registry.reports.report(replayed, simulation.now + 10)
            await asyncio.sleep(1)
        [expiry] = simulation.expiries()
        assert expiry.at_s - dead.last_report <= 2 * TIMEOUT_S + LATE_S

    simulated(scene)


def test_reports_of_another_incarnation_or_node_spare_nobody() -> None:
    async def scene(simulation: Simulation) -> None:
        [dead, *_] = simulation.agents
        replica = simulation.replicas[0]
        dead.fall_silent()
        entry = replica.registry.replica.cache.get(dead.key.instance_id)
        assert entry is not None
        forged = service_pb2.ReportStatusRequest(instance_id=dead.key.instance_id, uid=entry.traits.uid, node=dead.node)
        forged.revision.id, forged.revision.incarnation = "r1", entry.marks[0].incarnation ^ 1
        elsewhere = service_pb2.ReportStatusRequest()
        elsewhere.CopyFrom(forged)
        elsewhere.node, elsewhere.revision.incarnation = "node-9", entry.marks[0].incarnation
        Refusing(replica, OURS[Overloaded], {dead.key})
        while simulation.now < dead.last_report + TIMEOUT_S + LATE_S:
            for report in (forged, elsewhere):
                with pytest.raises(Overloaded):
                    await replica.registry.reports.report(report, simulation.now + 10)
            await asyncio.sleep(5)
        assert [expiry.key for expiry in simulation.expiries()] == [dead.key]

    simulated(scene)


@pytest.mark.long
def test_replicas_that_crash_again_and_again_keep_nobody_alive() -> None:
    async def scene(simulation: Simulation) -> None:
        [dead, *others] = simulation.agents
        dead.fall_silent()
        for agent in others:
            _bind(agent, simulation.replicas[0])
        while simulation.now < dead.last_report + TIMEOUT_S + LATE_S:
            crashing = await simulation.start_replica()
            crashing.registry.replica.liveness.refusals.unread([dead.node], "OVERLOADED")
            await asyncio.sleep(7)
            await simulation.stop_replica(crashing)
        # The node is named by strangers all the time: one timeout more, and no longer.
        await asyncio.sleep(TIMEOUT_S + LATE_S)
        assert [expiry.key for expiry in simulation.expiries()] == [dead.key]

    simulated(scene)


# --- the store refuses heartbeats, and nothing else -----------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("error", [Unavailable("refused"), NoSpace("full")], ids=["unavailable", "full"])
def test_heartbeats_that_the_store_refuses_while_fences_pass_expire_nobody_within_two_timeouts(
    error: Exception,
) -> None:
    async def scene(simulation: Simulation) -> None:
        refuse_heartbeats(simulation, error)
        await asyncio.sleep(2 * TIMEOUT_S)
        assert simulation.expiries() == []
        await asyncio.sleep(1.5 * TIMEOUT_S)  # what was refused counts for a timeout, and the door for another
        assert len(simulation.expiries()) == AGENTS

    simulated(scene)


@pytest.mark.long
def test_heartbeats_that_were_refused_for_a_while_expire_nobody() -> None:
    async def scene(simulation: Simulation) -> None:
        mend = refuse_heartbeats(simulation, Unavailable("refused"))
        await asyncio.sleep(1.5 * TIMEOUT_S)
        mend()
        await asyncio.sleep(2 * TIMEOUT_S)

    assert simulated(scene).changes == []


def refuse_heartbeats(simulation: Simulation, error: Exception) -> Callable[[], None]:
    store = simulation.store
    honest = store.commit

    async def commit(guards: tuple[Compare, ...], writes: tuple[Write, ...], timeout_s: float) -> Commit:
        if any(b"/beats/" in key for write in writes for key, _ in write.puts):
            raise error
        return await honest(guards, writes, timeout_s)

    store.commit = commit  # type: ignore[method-assign, assignment]
    return lambda: setattr(store, "commit", honest)


def _bind(agent: Agent, running: Running) -> None:
    """Let the agent reach this replica only."""

    class Bound:
        """The simulation, as this agent sees it."""

        def __getattr__(self, name: str) -> object:
            return getattr(simulation, name)

        def any_registry(self, but: object = None) -> object:
            return running.registry

    simulation = agent._simulation
    agent._registry = running.registry
    agent._simulation = Bound()  # type: ignore[assignment]
