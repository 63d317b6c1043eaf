"""Which nodes a replica names to others for reports that it refused."""

from __future__ import annotations

import pytest

from hq.keys import HqKeys
from hq.liveness.deadlines import LivenessTimes
from hq.liveness.refusals import Refusals
from hq.liveness.tracker import Tracker
from hq.memory.cache import Cache
from hqpb.v1 import service_pb2 as pb
from serving.clock import ManualClock


@pytest.fixture
def refusals() -> Refusals:
    """Refusals of a replica that has read nothing yet."""
    clock = ManualClock()
    return Refusals(Cache(HqKeys()), Tracker(LivenessTimes(), clock), clock)


def report(node: str) -> pb.ReportStatusRequest:
    return pb.ReportStatusRequest(instance_id="web-1", uid=1, node=node)


def test_a_replica_that_has_not_read_anything_names_the_nodes_whose_reports_it_refuses(refusals: Refusals) -> None:
    refusals.report(report("n1"), "NOT_LOADED")
    refusals.report(report("n2"), "OVERLOADED")
    assert refusals.take_news() == ([], ["n1"])
    assert refusals.take_news() == ([], [])
    assert refusals.counted == {"NOT_LOADED": 1, "OVERLOADED": 1}


def test_without_identities_an_unread_report_may_be_of_any_node_at_its_address(refusals: Refusals) -> None:
    for node in ("n1", "n2", "n1"):
        refusals.heard_from("10.0.0.1", node)
    refusals.heard_from("10.0.0.2", "n3")
    assert refusals.nodes_of("10.0.0.1") == ["n1", "n2"]
    assert refusals.nodes_of("10.0.0.9") == []


def test_a_bounded_number_of_nodes_behind_one_address_is_remembered(refusals: Refusals) -> None:
    for number in range(1_000):
        refusals.heard_from("10.0.0.1", f"n{number}")
    assert len(refusals.nodes_of("10.0.0.1")) == 64
