"""The handful of fields of an instance that are indexed and asked by filters."""

from __future__ import annotations

from typing import Any, NamedTuple

from hqpb.v1 import instance_pb2

# Where equal strings and tuples are kept once; a million instances share few services and labels.
Pool = dict[Any, Any]


class Traits(NamedTuple):
    """The indexed fields of an instance. Watches remember those from before a change."""

    id: str
    uid: int
    service: str
    node: str
    cluster: str
    labels: tuple[tuple[str, str], ...]
    revisions: tuple[str, ...]
    ready: bool
    allocated: bool


def traits_of(instance_id: str, meta: instance_pb2.InstanceMeta, spec: instance_pb2.InstanceSpec, pool: Pool) -> Traits:
    """The traits of an instance that is not ready. `instance_id` is meta.id, as the string that others hold too."""
    once = pool.setdefault
    service, node, cluster = meta.service_id, spec.node_name, meta.cluster
    labels = tuple(sorted(meta.labels.items())) if meta.labels else ()
    revisions = tuple([revision.id for revision in spec.revision])
    return Traits(
        instance_id,
        meta.uid,
        once(service, service),
        once(node, node),
        once(cluster, cluster),
        once(labels, labels),
        once(revisions, revisions),
        False,
        spec.HasField("allocation"),
    )
