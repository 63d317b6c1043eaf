"""The endpoints that a service, a port and a revision select from the roster, and the endpoint of an instance."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hqclient.discovery.endpoint import Endpoint, Key, KnownInstance, endpoint, ready_instance
from hqclient.discovery.endpoint_list import EndpointList, difference
from hqclient.discovery.roster import Delta
from hqpb.v1 import instance_pb2

TRUE, FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE


def made(
    id_: str = "web-1",
    *,
    service: str = "web",
    host: str = "",
    node: str = "node-1",
    ready: tuple[str, ...] = ("r1",),
    wanted: str = "r1",
    **ports: int,
) -> instance_pb2.Instance:
    instance = instance_pb2.Instance()
    instance.meta.id, instance.meta.service_id, instance.meta.cluster, instance.meta.uid = id_, service, "c", 7
    instance.meta.labels["tier"] = "front"
    instance.spec.node_name, instance.spec.allocation.host = node, host
    instance.spec.revision.add(id=wanted, target=instance_pb2.REVISION_TARGET_READY)
    for name, number in ports.items():
        instance.spec.allocation.port.add(name=name, number=number)
    instance.status.ready.status = TRUE if ready else FALSE
    for revision in ready:
        instance.status.revision.add(id=revision).ready.status = TRUE
    return instance


def kept(instance: instance_pb2.Instance) -> KnownInstance:
    found = ready_instance(instance)
    assert found is not None
    return found


def step(*instances: instance_pb2.Instance, gone: tuple[str, ...] = (), resync: str = "") -> Delta:
    came: dict[Key, tuple[KnownInstance | None, KnownInstance | None]]
    came = {("c", i.meta.id): (None, ready_instance(i)) for i in instances}
    came.update((("c", id_), (kept(made(id_)), None)) for id_ in gone)
    return Delta(came, resync=resync)


def addresses(listing: EndpointList) -> list[str]:
    return [e.address for e in listing.endpoints]


def test_an_endpoint_has_what_a_caller_needs() -> None:
    assert endpoint(kept(made(host="10.0.0.1", http=80)), "http") == Endpoint(
        "web", "10.0.0.1", 80, "node-1", "web-1", 7, "c", "r1", {"tier": "front"}
    )


@pytest.mark.parametrize(
    ("host", "node", "address"),
    [("10.0.0.1", "node-1", "10.0.0.1:80"), ("", "node-1", "node-1:80"), ("fe80::1", "n", "[fe80::1]:80")],
)
def test_the_host_is_the_allocations_own_else_the_node(host: str, node: str, address: str) -> None:
    found = endpoint(kept(made(host=host, node=node, http=80)), "http")
    assert found is not None
    assert found.address == address


def test_of_two_ready_revisions_the_one_wanted_ready_is_named() -> None:
    both = kept(made(ready=("r1", "r2"), wanted="r2", http=80))
    assert [e.revision for e in (endpoint(both, "http"), endpoint(both, "http", "r1")) if e] == ["r2", "r1"]
    assert endpoint(both, "http", "r3") is None


def test_an_instance_that_is_not_ready_is_left_out() -> None:
    assert ready_instance(made(ready=(), http=80)) is None


def test_instances_without_the_port_are_left_out_and_counted() -> None:
    listing = EndpointList("web", "http")
    listing.show(step(made("a", http=80), made("b", grpc=81), made("c", node="", http=82), made("d", service="db")))
    assert (addresses(listing), listing.without_port) == (["node-1:80"], 2)
    listing.show(step(made("b", http=81), gone=("c",)))
    assert (addresses(listing), listing.without_port) == (["node-1:80", "node-1:81"], 0)


def test_only_the_revision_asked_for_is_listed() -> None:
    listing = EndpointList("web", "http", "r2")
    listing.show(step(made("a", ready=("r1",), http=80), made("b", ready=("r2",), http=81)))
    assert (addresses(listing), listing.without_port) == (["node-1:81"], 0)
    changes = listing.show(step(made("b", ready=("r1",), http=81)))
    assert ([e.address for e in changes.removed], addresses(listing)) == (["node-1:81"], [])


def test_changes_name_added_removed_and_changed_endpoints() -> None:
    listing = EndpointList("web", "http")
    listing.show(step(made("a", http=80), made("b", http=81)))
    changes = listing.show(step(made("a", http=90), made("c", http=82), gone=("b",)))
    assert [e.port for e in changes.added] == [82]
    assert [e.port for e in changes.removed] == [81]
    assert [(before.port, after.port) for before, after in changes.changed] == [(80, 90)]


def test_a_step_that_changes_no_endpoint_is_not_shown() -> None:
    listing = EndpointList("web", "http")
    listing.show(step(made("a", http=80)))
    assert not listing.show(step(made("a", http=80, other=81)))
    assert not listing.show(step(made("d", service="db", http=1)))
    assert listing.show(step(resync="lost"))


def test_endpoints_are_in_a_steady_order() -> None:
    listing = EndpointList("web", "http")
    for id_ in ("c", "a", "b"):
        listing.show(step(made(id_, http=80)))
    assert [e.instance_id for e in listing.endpoints] == ["a", "b", "c"]


states = st.dictionaries(st.sampled_from("abcd"), st.integers(80, 82))


@settings(deadline=None)
@given(st.lists(states, max_size=8))
def test_the_difference_of_two_lists_is_what_the_step_shows(story: list[dict[str, int]]) -> None:
    listing = EndpointList("web", "http")
    for wanted in story:
        before = {e.key: e for e in listing.endpoints}
        there = [made(id_, http=port) for id_, port in wanted.items()]
        by_steps = listing.show(step(*there, gone=tuple(id_ for _, id_ in before if id_ not in wanted)))
        assert {e.instance_id: e.port for e in listing.endpoints} == wanted
        at_once = difference("web", before, listing.endpoints)
        for field in ("added", "removed", "changed"):
            assert sorted(map(repr, getattr(at_once, field))) == sorted(map(repr, getattr(by_steps, field)))
