"""Requests that are right as such, some of them about what is out of reach: whether they are let in says who calls."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import field_mask_pb2, json_format, message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

_INSTANCES: Final = ("fuzz-1", "fuzz-2", "vault-1")
_SERVICES: Final = ("svc", "vault")
_NODES: Final = ("node-1", "node-9")


def plausible(rng: random.Random, method: MethodDescriptor) -> Message:
    """A request of this method about an instance, service and node that there are."""
    instance_id, service, node = rng.choice(_INSTANCES), rng.choice(_SERVICES), rng.choice(_NODES)
    made = message_factory.GetMessageClass(method.input_type)()
    names = {field.name for field in method.input_type.fields}
    values = {"id": instance_id, "instance_id": instance_id, "node": node, "node_name": node, "reason": "fuzz"}
    for name in names & values.keys():
        setattr(made, name, values[name])
    if "filter" in names and rng.random() < 0.8:
        words = {"serviceId": service, "nodeName": node, "instanceId": instance_id}
        name = rng.choice(tuple(words))
        json_format.ParseDict({"filter": {name: [words[name]]}}, made)
    json_format.ParseDict(_OTHERS.get(method.name, {}), made)
    _about(made, instance_id, service, node)
    return made


_OTHERS: Final[Mapping[str, dict[str, Any]]] = {
    "BeginReporting": {"revisionId": "r1"},
    "DeleteRevision": {"revisionId": "r1"},
    "PutRevision": {"revision": {"id": "r2", "target": "REVISION_TARGET_READY"}},
    "ReportStatus": {"revision": {"id": "r1"}},
    "SuspendNode": {"duration": "60s"},
    "ForceGuard": {"duration": "60s"},
    "ReleaseGuard": {"duration": "60s"},
}


def _about(made: Message, instance_id: str, service: str, node: str) -> None:
    """Instances within a request."""
    whole = instance_pb2.Instance(meta=instance_pb2.InstanceMeta(id=instance_id, service_id=service))
    whole.spec.node_name = node
    whole.meta.labels["taken"] = "over"
    if isinstance(made, pb.CreateInstanceRequest | pb.UpdateInstanceRequest):
        made.instance.CopyFrom(whole)
    if isinstance(made, pb.UpdateInstanceRequest):
        paths = ("meta.labels", "meta.service_id", "spec.node_name")
        made.update_mask.CopyFrom(field_mask_pb2.FieldMask(paths=paths[len(instance_id) % 3 :]))
    if isinstance(made, pb.ApplyInstancesRequest):
        made.instance.add().CopyFrom(whole)
    if isinstance(made, pb.ReportStatusesRequest):
        made.report.add(instance_id=instance_id, node=node, revision=instance_pb2.RevisionStatus(id="r1"))
