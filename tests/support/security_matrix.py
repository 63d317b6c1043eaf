"""docs/security-matrix.txt read as a table, and the request that stands for each of its rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from google.protobuf import duration_pb2, field_mask_pb2
from google.protobuf.message import Message

from hqpb.v1 import admin_pb2, service_pb2
from hqpb.v1 import service_pb2 as pb
from tests.support.rights_requests import instance, report, revision

FILE: Final = Path(__file__).resolve().parents[2] / "docs" / "security-matrix.txt"
YES, NO, WHO = "yes", "no", "who?"
HERE, THERE = "same", "there"
METHODS: Final = {
    method.name: method
    for service in (
        service_pb2.DESCRIPTOR.services_by_name["InstanceService"],
        admin_pb2.DESCRIPTOR.services_by_name["AdminService"],
    )
    for method in service.methods
}


class Row(NamedTuple):
    """One call, who may, and what a gateway does with it.

    Attributes:
        name: of the call, and after a colon what is special.
        allowed: YES, NO or WHO by caller.
        gateway: HERE: the same as a replica; THERE: it says where to go, whoever may.
    """

    name: str
    allowed: dict[str, str]
    gateway: str

    @property
    def call(self) -> str:
        """The name of the method."""
        return self.name.partition(":")[0]


def read() -> list[Row]:
    """The table: lines between the one that begins with `call` and the next empty one."""
    lines = FILE.read_text().splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("call "))
    callers = lines[begin].split()[1:-1]
    rows = []
    for line in lines[begin + 1 :]:
        if not line.strip():
            break
        name, *cells, gateway = line.split()
        assert len(cells) == len(callers), f"{name}: {len(cells)} cells for {len(callers)} callers"
        rows.append(Row(name, dict(zip(callers, cells, strict=True)), gateway))
    return rows


_EVERYTHING_OF_WEB: Final = pb.InstanceFilter(service_id=["web"], node_name=["n1"])
_HOUR: Final = duration_pb2.Duration(seconds=3600)
_OLD: Final = 1 << 60  # a version that no instance has: who may change it is told of a conflict, and nothing changes


def _placed() -> pb.UpdateInstanceRequest:
    mask = field_mask_pb2.FieldMask(paths=["spec.node_name"])
    return pb.UpdateInstanceRequest(instance=instance("web-1"), update_mask=mask, validate_only=True)


def _labelled() -> pb.UpdateInstanceRequest:
    mask = field_mask_pb2.FieldMask(paths=["meta.labels"])
    return pb.UpdateInstanceRequest(instance=instance("web-1"), update_mask=mask, validate_only=True)


def _report(name: str, node: str) -> pb.ReportStatusRequest:
    """Of an earlier uid of the instance: who may report is told so, and nothing changes."""
    made = report(name, node, incarnation=1)
    made.uid = 1
    return made


def _begin(name: str, node: str) -> pb.BeginReportingRequest:
    return pb.BeginReportingRequest(instance_id=name, revision_id="r1", node=node)


# All are about web-1 of service web on node n1, unless the row says otherwise.
REQUESTS: Final[dict[str, Callable[[], Message]]] = {
    "CreateInstance": lambda: pb.CreateInstanceRequest(instance=instance("web-9"), validate_only=True),
    "UpdateInstance": _labelled,
    "UpdateInstance:node_name": _placed,
    "DeleteInstance": lambda: pb.DeleteInstanceRequest(id="web-1", version=_OLD),
    "ApplyInstances": lambda: pb.ApplyInstancesRequest(instance=[instance("web-9")], validate_only=True),
    "PutRevision": lambda: pb.PutRevisionRequest(instance_id="web-1", revision=revision("r1"), validate_only=True),
    "DeleteRevision": lambda: pb.DeleteRevisionRequest(instance_id="web-1", revision_id="r1", version=_OLD),
    "GetInstance": lambda: pb.GetInstanceRequest(id="web-1"),
    "FindInstances": lambda: pb.FindInstancesRequest(filter=_EVERYTHING_OF_WEB),
    "FindInstances:everything": pb.FindInstancesRequest,
    "CountInstances": lambda: pb.CountInstancesRequest(filter=_EVERYTHING_OF_WEB),
    "WatchInstances": lambda: pb.WatchInstancesRequest(filter=_EVERYTHING_OF_WEB),
    "WatchInstances:everything": pb.WatchInstancesRequest,
    "GetRevision": lambda: pb.GetRevisionRequest(instance_id="web-1", revision_id="r1"),
    "BeginReporting": lambda: _begin("web-1", "n1"),
    "BeginReportings": lambda: pb.BeginReportingsRequest(begin=[_begin("web-1", "n1")]),
    "BeginReportings:one-of-n2": lambda: pb.BeginReportingsRequest(
        begin=[_begin("web-1", "n1"), _begin("web-2", "n2")]
    ),
    "ReportStatus": lambda: _report("web-1", "n1"),
    "ReportStatuses": lambda: pb.ReportStatusesRequest(report=[_report("web-1", "n1")]),
    "ReportStatuses:one-of-n2": lambda: pb.ReportStatusesRequest(
        report=[_report("web-1", "n1"), _report("web-2", "n2")]
    ),
    "ListSilences": lambda: pb.ListSilencesRequest(filter=_EVERYTHING_OF_WEB),
    "ExplainInstance": lambda: pb.ExplainInstanceRequest(id="web-1"),
    "GetGuard": admin_pb2.GetGuardRequest,
    "ReleaseGuard": lambda: admin_pb2.ReleaseGuardRequest(duration=_HOUR, by="me", reason="test"),
    "ForceGuard": lambda: admin_pb2.ForceGuardRequest(duration=_HOUR, by="me", reason="test"),
    "ListReplicas": admin_pb2.ListReplicasRequest,
    "ListQuarantine": admin_pb2.ListQuarantineRequest,
    "ListTransitions": admin_pb2.ListTransitionsRequest,
    "SuspendNode": lambda: admin_pb2.SuspendNodeRequest(node_name="n1", duration=_HOUR, by="me", reason="test"),
    "ResumeNode": lambda: admin_pb2.ResumeNodeRequest(node_name="n1"),
    "ListSuspensions": admin_pb2.ListSuspensionsRequest,
    "GetEpoch": admin_pb2.GetEpochRequest,
    "ConfirmEpoch": lambda: admin_pb2.ConfirmEpochRequest(epoch="another", by="me", reason="test"),
}
