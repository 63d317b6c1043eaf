"""wait: until instances are ready, or gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hqclient.client import Client
from hqclient.watch_items import Bookmark, Resync, SnapshotPart, Synced
from hqctl.commands.waiting import Goal, ReachedInstances
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.clients.fake_hq import FakeReplica, instance, say
from tests.clients.hqctl.conftest import Done, Hqctl, documents


@pytest.fixture(autouse=True)
def two(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1", "2"))


@contextmanager
def soon(*works: Coroutine[Any, Any, None]) -> Iterator[None]:
    """Do these one after the other while the block runs, in a thread: hqctl has the main one."""

    async def all_of_them() -> None:
        for work in works:
            await asyncio.sleep(0.3)
            await work

    thread = threading.Thread(target=lambda: asyncio.run(all_of_them()))
    thread.start()
    try:
        yield
    finally:
        thread.join()


async def _report(server: str, instance_id: str) -> None:
    async with Client([server]) as client:
        begun = await client.begin_reporting(instance_id, "r1", node="node-a")
        status = instance_pb2.RevisionStatus(id="r1", incarnation=begun.incarnation, sequence=1)
        status.ready.status = instance_pb2.CONDITION_STATUS_TRUE
        await client.report(instance_id, status, uid=begun.uid, node="node-a")


async def _delete(server: str, instance_id: str) -> None:
    async with Client([server]) as client:
        await client.delete(instance_id)


def test_a_wait_ends_when_all_instances_are_ready(hqctl: Hqctl, server: str, service: str) -> None:
    with soon(_report(server, f"{service}-1"), _report(server, f"{service}-2")):
        done = hqctl("wait", "--service", service, "--timeout", "30s")
    assert done.code == 0
    assert sorted(done.out.splitlines()) == [f"{service}-1 ready", f"{service}-2 ready"]


@pytest.mark.long
def test_a_wait_that_times_out_names_the_instances_that_are_missing(hqctl: Hqctl, service: str) -> None:
    hqctl("report", f"{service}-1", "r1", "--ready")
    done = hqctl("wait", f"{service}-1", f"{service}-2", f"{service}-3", "--timeout", "4s")
    assert (done.code, done.out) == (8, f"{service}-1 ready\n")
    assert f"2 instances are not ready yet or missing: {service}-2 (unknown), {service}-3 (does not exist)" in done.err


@pytest.mark.long
async def test_a_wait_that_lost_hq_says_so(run: Callable[..., Done], replicas: list[FakeReplica]) -> None:
    replica = replicas[0]
    put = pb.WatchEvent(put=replica.stored.put(instance("web-1")))
    shown = pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SNAPSHOT, events=[put], sources=[replica.source()])
    synced = pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SYNCED, resume_token="t1", sources=[replica.source()])
    replica.watches.append(say(shown, synced, then="end"))  # what follows is silent
    done = await asyncio.to_thread(run, "wait", "web-1", "--timeout", "5s", "--server", replica.address)
    assert done.code == 8
    assert "web-1" in done.err
    assert "HQ was lost" in done.err


@pytest.mark.parametrize("goal", ["gone", "delete"])
def test_a_wait_for_an_instance_to_be_gone_ends_at_once_if_it_does_not_exist(
    hqctl: Hqctl, service: str, goal: str
) -> None:
    assert hqctl("wait", f"{service}-9", "--for", goal).out == f"{service}-9 gone\n"


def test_a_deletion_ends_a_wait_for_an_instance_to_be_gone(hqctl: Hqctl, server: str, service: str) -> None:
    with soon(_delete(server, f"{service}-1")):
        done = hqctl("wait", f"{service}-1", "--for", "gone", "--timeout", "30s")
    assert (done.code, done.out) == (0, f"{service}-1 gone\n")


def test_options_that_match_nothing_are_told_when_waiting_for_gone(hqctl: Hqctl) -> None:
    done = hqctl("wait", "--service", "no-such-service", "--for", "gone")
    assert (done.code, done.out, done.err) == (0, "", "hqctl: no instance matches: nothing to wait for.\n")


@pytest.mark.long
def test_a_revision_can_be_waited_for(hqctl: Hqctl, service: str) -> None:
    hqctl("report", f"{service}-1", "r0", "--ready")
    assert hqctl("wait", f"{service}-1", "--for", "revision=r0").code == 0
    assert hqctl("wait", f"{service}-1", "--for", "revision=r1", "--timeout", "4s").code == 8


@pytest.mark.long
def test_a_wait_for_ready_without_a_matching_instance_times_out(hqctl: Hqctl) -> None:
    done = hqctl("wait", "--service", "no-such-service", "--timeout", "4s")
    assert done.code == 8
    assert "no instance matches" in done.err


def test_a_wait_without_a_reachable_hq_says_why_hq_did_not_respond(run: Callable[..., Done]) -> None:
    done = run("wait", "a", "--timeout", "1s", HQ_SERVER="127.0.0.1:1")
    assert done.code == 8
    assert "HQ did not respond; cannot connect to 127.0.0.1:1: nothing listens there" in done.err


def test_waiting_for_nobody_or_for_nonsense_is_a_mistake(run: Callable[..., Done]) -> None:
    neither = run("wait")
    assert (neither.code, "choose instances: either ids or selection options" in neither.err) == (2, True)
    both = run("wait", "a", "--service", "b")
    assert (both.code, "give ids or selection options, not both." in both.err) == (2, True)
    assert run("wait", "a", "--for", "heaven").code == 2


def made(instance_id: str, cluster: str, *, ready: bool = True) -> instance_pb2.Instance:
    one = instance_pb2.Instance(meta=instance_pb2.InstanceMeta(id=instance_id, cluster=cluster))
    one.status.ready.status = instance_pb2.CONDITION_STATUS_TRUE if ready else instance_pb2.CONDITION_STATUS_FALSE
    return one


def of(*clusters: str) -> tuple[pb.Source, ...]:
    return tuple(pb.Source(cluster=cluster) for cluster in clusters)


def test_a_wait_is_not_done_before_the_whole_snapshot_was_shown() -> None:
    awaited = ReachedInstances(Goal().convert("ready", None, None).holds, frozenset())
    assert awaited.apply_item(SnapshotPart((made("web-1", "east"),))) == ["web-1"]
    assert not awaited.is_done()
    awaited.apply_item(Synced("token", of("east")))
    assert awaited.is_done()


def test_a_wait_ends_only_once_every_location_of_a_gateway_was_shown() -> None:
    awaited = ReachedInstances(Goal().convert("ready", None, None).holds, frozenset())
    awaited.apply_item(Bookmark("", of("east", "west")))
    awaited.apply_item(SnapshotPart((made("web-1", "east"),)))
    awaited.apply_item(Synced("t1", of("east")))
    assert not awaited.is_done()
    awaited.apply_item(SnapshotPart((made("web-1", "west", ready=False),)))
    awaited.apply_item(Synced("t2", of("west")))
    assert awaited.missing() == {"web-1": "no"}
    awaited.apply_item(Resync("too slow", "west"))
    assert (awaited.shown.missing, awaited.is_done()) == (["west"], False)
    assert awaited.apply_item(SnapshotPart((made("web-1", "west"),))) == ["web-1"]
    awaited.apply_item(Synced("t3", of("west")))
    assert awaited.is_done()


def test_an_instance_is_gone_only_when_no_location_has_it() -> None:
    awaited = ReachedInstances(Goal().convert("gone", None, None).holds, frozenset({"web-1"}))
    awaited.apply_item(Bookmark("", of("east", "west")))
    assert awaited.apply_item(Synced("t1", of("east"))) == []
    assert not awaited.is_done()
    assert awaited.apply_item(Synced("t2", of("west"))) == ["web-1"]
    assert awaited.is_done()
