"""Well-formed instances for property tests of all kinds, with unknown fields in their parts.

`new_instances()` are as a deploy system creates them, `instances()` as HQ serves them; `revisions()` and
`reports()` are their likes for PutRevision and ReportStatus.
"""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from hqpb.v1 import instance_pb2 as pb
from tests.support import value_strategies as words
from tests.support.arbitrary_messages import draw_unknown_fields, with_unknown_fields
from tests.support.revision_strategies import revisions
from tests.support.status_strategies import instance_statuses, reports

__all__ = ["instances", "new_instances", "reports", "revisions", "specs"]


@cache
def new_instances() -> st.SearchStrategy[pb.Instance]:
    """With all that the deploy system and a scheduler may say, and nothing that HQ or an agent says."""
    return st.builds(pb.Instance, meta=with_unknown_fields(_new_metas()), spec=specs())


@cache
@st.composite
def instances(draw: st.DrawFn) -> pb.Instance:
    """Instances as GetInstance returns them: HQ's own fields and a status are set, secret descriptors are counted."""
    instance = draw(new_instances())
    meta = instance.meta
    meta.uid = draw(st.integers(1, (1 << 63) - 1))
    meta.cluster = draw(words.ids(max_size=20))
    meta.creation_time.CopyFrom(draw(words.timestamps()))
    meta.modification_time.CopyFrom(draw(words.timestamps()))
    meta.version = draw(st.integers(1, (1 << 63) - 1))
    meta.status_version = draw(st.integers(1, (1 << 63) - 1))
    for revision in instance.spec.revision:
        revision.secret_count = len(revision.secret)
        revision.ClearField("secret")
    instance.status.CopyFrom(draw(instance_statuses([revision.id for revision in instance.spec.revision])))
    return instance


@cache
@st.composite
def specs(draw: st.DrawFn) -> pb.InstanceSpec:
    """Up to three revisions, at most one of them wanted READY."""
    spec = pb.InstanceSpec(
        resource_request=draw(st.none() | resource_requests()),
        allocation=draw(st.none() | resource_allocations()),
        node_name=draw(st.just("") | words.ids(max_size=40)),
        revision=draw(st.lists(revisions(), max_size=3, unique_by=lambda revision: revision.id)),
    )
    ready = [revision for revision in spec.revision if revision.target == pb.REVISION_TARGET_READY]
    for revision in ready[1:]:
        revision.target = pb.REVISION_TARGET_INSTALLED
    return draw_unknown_fields(draw, spec)


@cache
@st.composite
def resource_requests(draw: st.DrawFn) -> pb.ResourceRequest:
    request = pb.ResourceRequest(**draw(_amounts()))
    for name in draw(words.unique_names()):
        request.disk.add(name=name, size_bytes=draw(_disk_sizes()), storage_class=draw(_storage_classes()))
    for name in draw(words.unique_names()):
        number = draw(st.just(0) | _port_numbers())
        is_free = number not in [port.number for port in request.port]
        request.port.add(name=name, number=number if is_free else 0)
    return draw_unknown_fields(draw, request)


@cache
@st.composite
def resource_allocations(draw: st.DrawFn) -> pb.ResourceAllocation:
    allocation = pb.ResourceAllocation(**draw(_amounts()), host=draw(st.just("") | words.ids(max_size=40)))
    for name in draw(words.unique_names()):
        allocation.disk.add(name=name, size_bytes=draw(_disk_sizes()), path="/disks/1")
    port_names = draw(words.unique_names())
    numbers = draw(st.lists(_port_numbers(), unique=True, min_size=len(port_names), max_size=len(port_names)))
    for name, number in zip(port_names, numbers, strict=True):
        allocation.port.add(name=name, number=number)
    return draw_unknown_fields(draw, allocation)


@cache
def _new_metas() -> st.SearchStrategy[pb.InstanceMeta]:
    return st.builds(
        pb.InstanceMeta,
        id=words.ids(),
        service_id=words.ids(max_size=40),
        labels=words.labels(),
        annotations=words.annotations(),
    )


@cache
def _amounts() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "cpu_millicores": st.integers(0, 10**7),
            "memory_bytes": st.integers(0, 1 << 50),
            "network_bytes_per_second": st.integers(0, 1 << 50),
        }
    )


@cache
def _port_numbers() -> st.SearchStrategy[int]:
    return st.integers(1, 65_535)


@cache
def _disk_sizes() -> st.SearchStrategy[int]:
    return st.integers(0, 1 << 60)


@cache
def _storage_classes() -> st.SearchStrategy[str]:
    return st.just("") | words.ids(max_size=20)
