"""A replica that is behind swallows no change, and stops no agent on the word of an old memory. Over a real etcd."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from hq.errors import Fenced, UnknownRevision, WrongNode, WrongUid
from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import NotFound, ServiceError, StoreUnavailable
from store.etcd import EtcdConfig, EtcdStore
from tests.support.etcd import SharedEtcd
from tests.support.in_process_replica import running
from tests.support.sample_instances import instance
from tests.support.store_link import Link

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)


class Pair(NamedTuple):
    """A replica whose watch can be held back, and one that is up to date."""

    link: Link
    behind: Registry
    ahead: Registry

    def deadline(self, seconds: float = 8.0) -> float:
        return self.ahead.replica.clock.now() + seconds


@pytest.fixture
async def pair(etcd: SharedEtcd) -> AsyncIterator[Pair]:
    async with connected(etcd) as one, connected(etcd) as two:
        link = Link(one)
        async with (
            running(link, replica="behind", prefix=etcd.prefix) as behind,
            running(two, replica="ahead", prefix=etcd.prefix) as ahead,
        ):
            yield Pair(link, behind, ahead)
            link.release_watch()


@asynccontextmanager
async def connected(etcd: SharedEtcd) -> AsyncIterator[EtcdStore]:
    store = EtcdStore(EtcdConfig((etcd.endpoint,)))
    yield store
    await store.close()


class Reporter:
    """An agent that speaks with any of the two."""

    def __init__(self, pair: Pair, revision: str = "r1", node: str = "node-1") -> None:
        self.pair, self.revision, self.node = pair, revision, node
        self.incarnation = self.uid = self.sequence = 0

    async def begin(self, at: Registry) -> Reporter:
        begun = await at.reports.begin("a", self.revision, self.node, self.pair.deadline())
        self.incarnation, self.uid, self.sequence = begun.incarnation, begun.uid, 0
        return self

    async def report(self, at: Registry, message: str = "") -> None:
        self.sequence += 1
        status = model.RevisionStatus(id=self.revision, incarnation=self.incarnation, sequence=self.sequence)
        status.ready.status = model.CONDITION_STATUS_TRUE
        status.ready.message = message
        report = pb.ReportStatusRequest(instance_id="a", uid=self.uid, node=self.node, revision=status)
        await at.reports.report(report, self.pair.deadline())


async def created(pair: Pair, node: str = "node-1") -> None:
    await pair.ahead.writes.create(instance("a", node=node), "", pair.deadline(), validate_only=False)


async def settled(pair: Pair) -> Reporter:
    await created(pair)
    reporter = await Reporter(pair).begin(pair.ahead)
    await reporter.report(pair.ahead)
    await pair.behind.replica.fence.wait_for_fence()
    return reporter


def message_at(registry: Registry) -> str:
    entry = registry.replica.cache.get("a")
    assert entry is not None
    return entry.status().revision[0].ready.message


async def test_a_report_at_a_replica_that_is_behind_never_swallows_a_change_acknowledged_elsewhere(pair: Pair) -> None:
    reporter, rng = await settled(pair), random.Random(1)
    for n in range(5):
        pair.link.hold_watch()
        await reporter.report(pair.ahead, f"change {n}")
        again = asyncio.ensure_future(reporter.report(pair.behind))
        await asyncio.sleep(rng.uniform(0, 0.3))
        assert not again.done()
        pair.link.release_watch()
        await again
        await pair.ahead.replica.fence.wait_for_fence()
        assert message_at(pair.ahead) == message_at(pair.behind) == ""


async def test_a_change_at_a_replica_that_is_behind_is_never_lost_and_never_overwrites_a_newer_one(pair: Pair) -> None:
    reporter = await settled(pair)
    pair.link.hold_watch()
    await reporter.report(pair.ahead, "newer")
    late = asyncio.ensure_future(reporter.report(pair.behind, "newest"))
    await asyncio.sleep(0.2)
    pair.link.release_watch()
    await late
    await pair.ahead.replica.fence.wait_for_fence()
    assert message_at(pair.ahead) == "newest"


# What happens elsewhere, unseen by the replica that is behind, and what an agent then asks of that replica: by its old
# memory it would have to refuse, and must not.


async def a_revision_is_added(pair: Pair) -> Callable[[Registry], Awaitable[object]]:
    await settled(pair)
    pair.link.hold_watch()
    await pair.ahead.writes.put_revision(
        "a", instance("a", revisions=("r2",)).spec.revision[0], Precondition(), pair.deadline(),
        clear_secrets=False, validate_only=False,
    )  # fmt: skip
    return Reporter(pair, "r2").begin


async def an_instance_is_created(pair: Pair) -> Callable[[Registry], Awaitable[object]]:
    pair.link.hold_watch()
    await created(pair)
    return Reporter(pair).begin


async def an_instance_moves(pair: Pair) -> Callable[[Registry], Awaitable[object]]:
    await settled(pair)
    pair.link.hold_watch()
    moved = instance("a", node="node-2")
    await pair.ahead.writes.update(moved, ["spec.node_name"], Precondition(), pair.deadline(), validate_only=False)
    return Reporter(pair, node="node-2").begin


async def a_reporter_takes_over(pair: Pair) -> Callable[[Registry], Awaitable[object]]:
    await settled(pair)
    pair.link.hold_watch()
    return (await Reporter(pair).begin(pair.ahead)).report


async def an_instance_lives_again(pair: Pair) -> Callable[[Registry], Awaitable[object]]:
    await settled(pair)
    pair.link.hold_watch()
    await pair.ahead.writes.delete("a", Precondition(), pair.deadline())
    await created(pair)
    return (await Reporter(pair).begin(pair.ahead)).report


@pytest.mark.long
@pytest.mark.parametrize(
    ("elsewhere", "mistake"),
    [
        (a_revision_is_added, UnknownRevision),
        (an_instance_is_created, NotFound),
        (an_instance_moves, WrongNode),
        (a_reporter_takes_over, Fenced),
        (an_instance_lives_again, WrongUid),
    ],
)
async def test_a_replica_that_is_behind_does_not_stop_an_agent_on_the_word_of_its_old_memory(
    pair: Pair,
    elsewhere: Callable[[Pair], Awaitable[Callable[[Registry], Awaitable[object]]]],
    mistake: type[ServiceError],
) -> None:
    ask = await elsewhere(pair)
    with pytest.raises(StoreUnavailable) as refused:
        await ask(pair.behind)
    assert refused.value.code == "UNAVAILABLE"
    assert not isinstance(refused.value, mistake)
    waits = asyncio.ensure_future(ask(pair.behind))
    await asyncio.sleep(0.2)
    pair.link.release_watch()
    await waits
