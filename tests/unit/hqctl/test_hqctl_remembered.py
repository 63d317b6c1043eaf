"""The transitions that several replicas remember, merged into one list."""

from __future__ import annotations

from hqctl.asking.transitions import merged_transitions
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb


def told(replica: str, *versions: int) -> admin_pb2.ListTransitionsResponse:
    moves = [admin_pb2.Transition(instance_id=f"web-{v}", revision_id="r1", version=v) for v in versions]
    return admin_pb2.ListTransitionsResponse(transitions=moves, source=pb.Source(replica=replica))


def test_transitions_that_one_replica_missed_come_from_another() -> None:
    found = merged_transitions([told("hq-2", 9), told("hq-1", 9, 7, 4), told("hq-3")], limit=10)
    assert [one.version for one in found.transitions] == [9, 7, 4]
    assert [source.replica for source in found.sources] == ["hq-2", "hq-1", "hq-3"]


def test_the_newest_transitions_are_kept() -> None:
    found = merged_transitions([told("hq-1", 4, 3), told("hq-2", 5)], limit=2)
    assert [one.version for one in found.transitions] == [5, 4]
