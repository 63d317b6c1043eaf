"""Discovery against replicas on real sockets: what it shows and tells, and what callers pick."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hqclient import watch
from hqclient.discovery import Discovery, Endpoint, EndpointChanges, NoEndpoints, NotReady, Origin, Service
from hqclient.discovery.endpoint_list import MOST_PENDING
from hqclient.discovery.feed import FeedSubject
from hqclient.discovery.roster import Delta
from hqpb.v1 import service_pb2 as pb
from tests.clients.discovering import QUICK, discovery, ids, until
from tests.clients.fake_hq import FakeReplica, say
from tests.clients.telling import History, Step, TellingReplica, as_step, serving


def snapshot(*names: str, service: str = "web") -> pb.WatchInstancesResponse:
    events = [pb.WatchEvent(version=1, put=serving(name, service=service)) for name in names]
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SNAPSHOT, events=events)


def synced(token: str = "t") -> pb.WatchInstancesResponse:
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SYNCED, resume_token=token)


RESYNC = pb.WatchInstancesResponse(kind=pb.WATCH_KIND_RESYNC, reason="too slow")


# --- following ----------------------------------------------------------------------------------------------------


async def test_a_service_has_its_ready_endpoints(history: History, telling: list[TellingReplica]) -> None:
    history.write("web-1", "web-2")
    async with discovery(telling).service("web", port="http") as web:
        await web.ready()
        assert [(e.instance_id, e.address) for e in web.endpoints] == [
            ("web-1", "127.0.0.1:80"),
            ("web-2", "127.0.0.1:80"),
        ]
        assert (web.source, web.stale, web.error, web.age_s < 5) == (Origin.LIVE, False, None, True)
        assert {web.pick().instance_id for _ in range(4)} == {"web-1", "web-2"}
    (asked,) = [r for replica in telling for r in replica.requests["WatchInstances"]]
    assert (list(asked.filter.service_id), asked.filter.readiness) == (["web"], pb.READINESS_FILTER_READY)


class Recorded:
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, list[str]]] = []

    def step(self, delta: Delta) -> None:
        self.steps.append((delta.resync, sorted(id_ for _, id_ in delta.changes)))


async def test_over_one_watch_of_many_services_each_handle_is_told_only_the_steps_of_its_own_service(
    replicas: list[FakeReplica],
) -> None:
    """Else a program that follows a thousand services goes through each of their steps a thousand times."""
    moved = serving("web-1", service="db")
    changes = [
        pb.WatchInstancesResponse(
            kind=pb.WATCH_KIND_EVENTS,
            resume_token=f"t{number}",
            events=[pb.WatchEvent(version=number, put=made)],
        )
        for number, made in [(2, serving("web-2")), (3, serving("db-2", service="db")), (4, moved)]
    ]
    first = [snapshot("web-1"), snapshot("db-1", service="db"), synced(), *changes]
    again = [snapshot("web-2"), snapshot("db-1", "db-2", "web-1", service="db"), synced()]
    for replica in replicas:
        replica.watches.append(say(*first, RESYNC, *again))
    subject = FeedSubject(frozenset(["web", "db", "none"]))
    found = discovery(replicas)
    everything, web, db, none = Recorded(), Recorded(), Recorded(), Recorded()
    feed = await found.open_feed(subject)
    try:
        feed.attach(everything)
        for listener, service in [(web, "web"), (db, "db"), (none, "none")]:
            assert not feed.attach(listener, service).changes
        await until(lambda: len(everything.steps) == 5)
        assert everything.steps[0] == ("", ["db-1", "web-1"])
        assert web.steps == [("", ["web-1"]), ("", ["web-2"]), ("", ["web-1"]), ("too slow", [])]
        assert db.steps == [("", ["db-1"]), ("", ["db-2"]), ("", ["web-1"]), ("too slow", [])]
        assert none.steps == [("too slow", [])]  # it may have missed something
        late = Recorded()
        assert [id_ for _, id_ in sorted(feed.attach(late, "db").changes)] == ["db-1", "db-2", "web-1"]
        for listener, service in [(late, "db"), (web, "web"), (db, "db"), (none, "none"), (everything, "")]:
            feed.detach(listener, service)
    finally:
        await found.release_feed(subject)


async def test_callbacks_plain_and_async_are_told_in_order(history: History, telling: list[TellingReplica]) -> None:
    history.write("web-1")
    plain: list[Step] = []
    slow: list[Step] = []

    async def slowly(changes: EndpointChanges) -> None:
        await asyncio.sleep(0.001)
        slow.append(as_step(changes))

    async with discovery(telling).service("web", port="http") as web:
        web.on_change(lambda changes: plain.append(as_step(changes)))
        web.on_change(slowly)
        await web.ready()
        for _ in range(20):
            history.write_at_random()
        await until(lambda: len(slow) >= len(history.steps))
    assert plain == slow == history.steps


async def test_a_late_subscriber_starts_with_the_full_state(history: History, telling: list[TellingReplica]) -> None:
    history.write("web-1", "web-2")
    async with discovery(telling).service("web", port="http") as web:
        await web.ready()
        async for changes in web.changes():
            assert [e.instance_id for e in changes.added] == ["web-1", "web-2"]
            break


async def test_a_callback_that_fails_does_not_stop_the_others_nor_itself(
    history: History, telling: list[TellingReplica], caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Step] = []

    def fails(changes: EndpointChanges) -> None:
        told.append(as_step(changes))
        raise ZeroDivisionError

    async with discovery(telling).service("web", port="http") as web:
        web.on_change(fails)
        await web.ready(at_least=0)
        history.write("web-1")
        history.write("web-2")
        await until(lambda: len(told) == 2)
    assert "it is called again for the next" in caplog.text


async def test_an_ended_subscription_is_silent(history: History, telling: list[TellingReplica]) -> None:
    told: list[Step] = []
    async with discovery(telling).service("web", port="http") as web:
        end = web.on_change(lambda changes: told.append(as_step(changes)))
        await web.ready(at_least=0)
        history.write("web-1")
        await until(lambda: len(told) == 1)
        end()
        history.write("web-2")
        await web.ready(at_least=2)
    assert len(told) == 1


async def test_a_subscriber_that_does_not_keep_up_gets_one_collapsed_step(
    history: History, telling: list[TellingReplica]
) -> None:
    gate = asyncio.Event()
    told: list[EndpointChanges] = []

    async def stuck(changes: EndpointChanges) -> None:
        told.append(changes)
        await gate.wait()

    async with discovery(telling).service("web", port="http") as web:
        await web.ready(at_least=0)
        web.on_change(stuck)
        for _ in range(MOST_PENDING + 5):
            history.write("web-1")
        mark = str(history.version)
        await until(lambda: bool(web.endpoints) and web.endpoints[0].labels["mark"] == mark)
        gate.set()
        await until(lambda: len(told) == 2)
    assert [c.collapsed for c in told] == [False, True]
    ((_, after),) = told[1].changed
    assert after.labels["mark"] == mark


async def test_several_services_share_one_watch(replicas: list[FakeReplica]) -> None:
    for replica in replicas:
        replica.watches.append(say(snapshot("web-1"), snapshot("db-1", "db-2", service="db"), synced()))
    async with discovery(replicas).services(["web", "db"], port="http") as both:
        await both.ready()
        assert {name: ids(service) for name, service in both.items()} == {"web": ["web-1"], "db": ["db-1", "db-2"]}
    asked = [r for replica in replicas for r in replica.requests["WatchInstances"]]
    assert [list(r.filter.service_id) for r in asked] == [["db", "web"]]


async def test_handles_of_one_service_share_a_watch_whatever_their_port(replicas: list[FakeReplica]) -> None:
    for replica in replicas:
        replica.watches.append(say(snapshot("web-1"), synced()))
    found = discovery(replicas)
    async with found.service("web", port="http") as by_http, found.service("web", port="grpc") as by_grpc:
        await by_http.ready()
        with pytest.raises(NotReady, match="1 ready instances have no port of that name"):
            await by_grpc.ready(0.01)
        assert (by_grpc.endpoints, by_grpc.without_port, by_http.without_port) == ((), 1, 0)
    assert sum(replica.calls["WatchInstances"] for replica in replicas) == 1


async def test_a_discovery_can_be_used_again_after_its_last_handle(
    history: History, telling: list[TellingReplica]
) -> None:
    history.write("web-1")
    found = discovery(telling)
    for _ in range(2):
        async with found.service("web", port="http") as web:
            await web.ready()
            assert [endpoint.instance_id for endpoint in web.endpoints] == ["web-1"]


async def test_a_lost_deletion_a_lost_creation_and_both_are_mended_by_starting_over(
    replicas: list[FakeReplica], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_RENEWAL_SHARE", 0)  # a snapshot takes no time here, but some
    bookmark = pb.WatchInstancesResponse(kind=pb.WATCH_KIND_BOOKMARK, resume_token="t")
    for names in (("web-1", "ghost"), ("web-1",), ("web-1", "web-2"), ("web-1", "web-3")):
        replicas[0].watches.append(say(snapshot(*names), synced(), bookmark))  # and no stream tells of the next ones
    client = replace(QUICK.client, watch=replace(QUICK.client.watch, renew_s=0.0))
    told: list[EndpointChanges] = []
    async with discovery(replicas[:1], settings=replace(QUICK, client=client)).service("web", port="http") as web:
        web.on_change(told.append)
        # What was there at first may have been told before somebody listened, or after.
        await until(lambda: bool(told) and [e.instance_id for e in told[-1].added] == ["web-3"])
    steps = [([e.instance_id for e in each.removed], [e.instance_id for e in each.added]) for each in told]
    assert steps[-3:] == [(["ghost"], []), ([], ["web-2"]), (["web-2"], ["web-3"])]


# --- picking and using --------------------------------------------------------------------------------------------


def use_and_raise(service: Service, error: Exception) -> Endpoint:
    used: list[Endpoint] = []

    def work() -> None:
        with service.using() as endpoint:
            used.append(endpoint)
            raise error

    with pytest.raises(type(error)):
        work()
    assert service.uses(used[0]) == 0
    return used[0]


async def test_uses_are_counted_and_endpoints_that_failed_are_passed_over(
    history: History, telling: list[TellingReplica]
) -> None:
    history.write("web-1", "web-2")
    async with discovery(telling).service("web", port="http") as web:
        await web.ready(at_least=2)
        with web.using() as endpoint:
            assert web.uses(endpoint) == 1
        assert web.uses(endpoint) == 0
        failed = use_and_raise(web, ConnectionRefusedError())
        assert failed not in {web.pick() for _ in range(6)}
        assert failed in web.endpoints
        other = use_and_raise(web, KeyError())
        assert other in {web.pick() for _ in range(6)}
        web.record_success(failed)
        assert failed in {web.pick() for _ in range(6)}


async def test_a_handle_says_how_to_use_it() -> None:
    web = Discovery("127.0.0.1:1").service("web", port="http")
    with pytest.raises(RuntimeError, match="enter it first"):
        await web.ready()
    with pytest.raises(NoEndpoints):
        web.pick()
    async with web:
        with pytest.raises(RuntimeError, match="entered only once"):
            await web.__aenter__()
    with pytest.raises(ValueError, match="a port for each"):
        Discovery("127.0.0.1:1").services(["web"])
