"""Filters, compiled: they pass what the proto file says, and equal filters are the same filter."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hq.memory.entry import Entry, Spec, Status, build
from hq.memory.query import Query
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.reference_instances import passes
from tests.support.store_histories import LABELS, NODES, REVISIONS, SERVICES, World, filters, spec_of, status_of

some = settings(suppress_health_check=list(HealthCheck))


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    world = World()
    instance_id = draw(st.sampled_from(("a", "a-1", "b")))
    world.uids[instance_id] = 1
    contents = (draw(st.sampled_from(words)) for words in (SERVICES, NODES, LABELS, range(8)))
    spec = storage_pb2.SpecRecord.FromString(spec_of(world, instance_id, *contents))  # type: ignore[arg-type]
    ready = draw(st.dictionaries(st.sampled_from(REVISIONS), st.booleans(), max_size=2))
    status = storage_pb2.StatusRecord.FromString(status_of(world, instance_id, ready))
    return build(instance_id, Spec(spec, 1, 1), Status(status, 1), None, {})


@some
@given(filters(), entries())
def test_an_instance_passes_as_the_proto_file_says(wanted: pb.InstanceFilter, entry: Entry) -> None:
    query, expected = Query(wanted), passes(wanted, entry.instance())
    assert query.matches(entry.traits) == expected
    assert bool(query.passing([entry], query.fields)) == expected


@some
@given(filters(), filters())
def test_two_filters_have_one_digest_only_if_they_ask_the_same(
    one: pb.InstanceFilter, other: pb.InstanceFilter
) -> None:
    assert (Query(one).digest == Query(other).digest) == (meaning(one) == meaning(other))


def meaning(wanted: pb.InstanceFilter) -> object:
    """What a filter asks, without order and repetition."""
    lists = (wanted.instance_id, wanted.service_id, wanted.node_name, wanted.revision_id, wanted.cluster)
    labels = frozenset(wanted.labels.items())
    rules = frozenset((one.key, one.operator, frozenset(one.value)) for one in wanted.label_requirement)
    return [frozenset(words) for words in lists], labels, rules, wanted.readiness, wanted.allocated


def test_values_of_one_field_are_not_taken_for_those_of_another() -> None:
    digests = {
        Query(wanted).digest
        for wanted in (
            pb.InstanceFilter(service_id=["x"]),
            pb.InstanceFilter(node_name=["x"]),
            pb.InstanceFilter(instance_id=["x"]),
            pb.InstanceFilter(labels={"x": ""}),
            pb.InstanceFilter(labels={"": "x"}),
            pb.InstanceFilter(
                label_requirement=[pb.LabelRequirement(key="x", operator=pb.LABEL_OPERATOR_IN, value=[""])]
            ),
            pb.InstanceFilter(
                label_requirement=[pb.LabelRequirement(key="x", operator=pb.LABEL_OPERATOR_NOT_IN, value=[""])]
            ),
            pb.InstanceFilter(label_requirement=[pb.LabelRequirement(key="x", operator=pb.LABEL_OPERATOR_EXISTS)]),
            pb.InstanceFilter(
                label_requirement=[pb.LabelRequirement(key="x", operator=pb.LABEL_OPERATOR_DOES_NOT_EXIST)]
            ),
            pb.InstanceFilter(readiness=pb.READINESS_FILTER_READY),
            pb.InstanceFilter(readiness=pb.READINESS_FILTER_NOT_READY),
        )
    }
    assert len(digests) == 11


def test_an_id_does_not_match_its_prefixes() -> None:
    traits = build("a-1", Spec(_record("a-1"), 1, 1), Status(storage_pb2.StatusRecord(), 0), None, {}).traits
    assert not Query(pb.InstanceFilter(instance_id=["a", "a-", "a-10"])).matches(traits)


def _record(instance_id: str) -> storage_pb2.SpecRecord:
    return storage_pb2.SpecRecord(meta=model.InstanceMeta(id=instance_id).SerializeToString())
