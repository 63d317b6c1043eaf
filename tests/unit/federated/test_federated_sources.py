"""What an answer of a gateway says about each location."""

from __future__ import annotations

from federated.encoded.answers import last_good_source
from federated.errors import NoAnswer
from hqpb.v1 import service_pb2


def test_a_repeated_answer_has_aged_and_an_unknown_age_stays_unknown() -> None:
    known, unknown = service_pb2.Source(cluster="east"), service_pb2.Source(cluster="east")
    known.staleness.FromMilliseconds(500)
    old = [
        service_pb2.Source.FromString(last_good_source(one.SerializeToString(), 2.0, NoAnswer("it is away")))
        for one in (known, unknown)
    ]
    assert [one.stale for one in old] == [True, True]
    assert old[0].staleness.ToMilliseconds() == 2_500
    assert not old[1].HasField("staleness")
