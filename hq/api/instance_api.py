"""hq.v1.InstanceService as a table of methods: how each request is read, which rule it is under, who answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from google.protobuf.message import Message

from hq.api.agents import Agents
from hq.api.edits import Edits
from hq.api.lookups import Lookups, parsed_find, parsed_get
from hq.registry.registry import Registry
from hqpb.v1 import service_pb2
from serving.auth.rules import BEGIN, FETCH, READ, REPORT, UPDATE, UPLOAD, Rule
from serving.auth.subjects import subject
from serving.jsonio import parse_json, parse_proto
from serving.memo import Memo
from serving.methods import Answer, Call, Method, Streaming, Unary

SERVICE = "hq.v1.InstanceService"
M = TypeVar("M", bound=Message)


class InstanceApi:
    """The service. `methods` is what a transport serves."""

    def __init__(self, registry: Registry, json_bytes: int) -> None:
        self._lookups = Lookups(registry, json_bytes)
        self._edits = Edits(registry)
        self._agents = Agents(registry)

    def methods(self) -> list[Method]:
        """All calls. GetInstance and FindInstances remember the requests that repeat."""
        edits, lookups, agents = self._edits, self._lookups, self._agents
        return [
            _plain("CreateInstance", service_pb2.CreateInstanceRequest, edits.create, UPLOAD),
            _plain("UpdateInstance", service_pb2.UpdateInstanceRequest, edits.update, UPDATE),
            _plain("DeleteInstance", service_pb2.DeleteInstanceRequest, edits.delete, UPLOAD),
            _plain("ApplyInstances", service_pb2.ApplyInstancesRequest, edits.apply, UPLOAD),
            _plain("PutRevision", service_pb2.PutRevisionRequest, edits.put_revision, UPLOAD),
            _plain("DeleteRevision", service_pb2.DeleteRevisionRequest, edits.delete_revision, UPLOAD),
            _memoized("GetInstance", service_pb2.GetInstanceRequest, parsed_get, lookups.get),
            _memoized("FindInstances", service_pb2.FindInstancesRequest, parsed_find, lookups.find),
            _plain("CountInstances", service_pb2.CountInstancesRequest, lookups.count, READ),
            Streaming(
                f"{SERVICE}/WatchInstances",
                parse_proto(service_pb2.WatchInstancesRequest),
                parse_json(service_pb2.WatchInstancesRequest),
                lookups.watch,
                READ,
            ),
            _plain("GetRevision", service_pb2.GetRevisionRequest, agents.get_revision, FETCH),
            _plain("BeginReporting", service_pb2.BeginReportingRequest, agents.begin, BEGIN),
            _plain("ReportStatus", service_pb2.ReportStatusRequest, agents.report, REPORT),
            _plain("ReportStatuses", service_pb2.ReportStatusesRequest, agents.report_many, REPORT),
            _plain("ExplainInstance", service_pb2.ExplainInstanceRequest, lookups.explain, READ),
        ]


def _plain(name: str, request: type[M], run: Callable[[M, Call], Awaitable[Answer]], rule: Rule) -> Unary:
    return Unary(f"{SERVICE}/{name}", parse_proto(request), parse_json(request), run, rule, subject)


def _memoized(
    name: str, request: type[M], compiled: Callable[[M], Any], run: Callable[..., Awaitable[Answer]]
) -> Unary:
    proto, json = parse_proto(request), parse_json(request)
    return Unary(
        f"{SERVICE}/{name}",
        Memo(lambda body: compiled(proto(body))),
        Memo(lambda body: compiled(json(body))),
        run,
        READ,
    )
