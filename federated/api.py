"""hq.v1.InstanceService as a front serves it: a table of methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from federated.answers import ListAnswer, RawAnswer
from federated.front import Front
from federated.lists import Find, compiled
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb
from serving.auth.rules import BEGIN, FETCH, INSPECT, OPERATE, READ, REPORT, UPDATE, UPLOAD, Rule
from serving.auth.subjects import subject
from serving.jsonio import parse_json, parse_proto
from serving.memo import Memo
from serving.methods import Answer, Call, Method, Streaming, Unary

SERVICE = "hq.v1.InstanceService"
M = TypeVar("M", bound=Message)


class FrontApi:
    """The service. `methods` is what a transport serves."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def methods(self) -> list[Method]:
        """All calls; those of agents are refused with the address to ask."""
        front = self._front
        writes, refusals = front.writes, front.refusals
        return [
            _unary(pb.CreateInstanceRequest, pb.CreateInstanceResponse, writes.create, UPLOAD),
            _unary(pb.UpdateInstanceRequest, pb.UpdateInstanceResponse, writes.update, UPDATE),
            _unary(pb.DeleteInstanceRequest, pb.DeleteInstanceResponse, writes.delete, UPLOAD),
            _unary(pb.ApplyInstancesRequest, pb.ApplyInstancesResponse, front.applying.apply, UPLOAD),
            _unary(pb.PutRevisionRequest, pb.PutRevisionResponse, writes.put_revision, UPLOAD),
            _unary(pb.DeleteRevisionRequest, pb.DeleteRevisionResponse, writes.delete_revision, UPLOAD),
            _unary(pb.GetInstanceRequest, pb.GetInstanceResponse, front.single.get, READ),
            self._find_method(),
            _unary(pb.CountInstancesRequest, pb.CountInstancesResponse, front.counts.count, READ),
            Streaming(
                f"{SERVICE}/WatchInstances",
                parse_proto(pb.WatchInstancesRequest),
                parse_json(pb.WatchInstancesRequest),
                self._watch,
                READ,
            ),
            _unary(pb.GetRevisionRequest, pb.GetRevisionResponse, refusals.get_revision, FETCH),
            _unary(pb.BeginReportingRequest, pb.BeginReportingResponse, refusals.begin_reporting, BEGIN),
            _unary(pb.ReportStatusRequest, pb.ReportStatusResponse, refusals.report, REPORT),
            _unary(pb.ReportStatusesRequest, pb.ReportStatusesResponse, refusals.report_many, REPORT),
            _unary(pb.ExplainInstanceRequest, pb.ExplainInstanceResponse, front.single.explain, READ),
        ]

    def refused_methods(self) -> list[Method]:
        """AdminService, so that its callers are told where to go."""
        return [self._refused(method) for method in admin_pb2.DESCRIPTOR.services_by_name["AdminService"].methods]

    def _refused(self, method: MethodDescriptor) -> Unary:
        request: type[Message] = GetMessageClass(method.input_type)

        async def refuse(message: Message, call: Call) -> Answer:
            return await self._front.refusals.admin(method.name)

        path = f"{method.containing_service.full_name}/{method.name}"
        rule = INSPECT if method.name.startswith(("Get", "List")) else OPERATE
        return Unary(path, parse_proto(request), parse_json(request), refuse, rule)

    def _find_method(self) -> Unary:
        proto, json = parse_proto(pb.FindInstancesRequest), parse_json(pb.FindInstancesRequest)
        return Unary(
            f"{SERVICE}/FindInstances",
            Memo(lambda body: compiled(proto(body))),
            Memo(lambda body: compiled(json(body))),
            self._find,
            READ,
        )

    async def _find(self, find: Find, call: Call) -> Answer:
        return ListAnswer(await self._front.lists.find(find, call))

    async def _watch(self, request: pb.WatchInstancesRequest, call: Call) -> AsyncIterator[Answer]:
        async for body in self._front.watches.watch(request, call):
            yield RawAnswer(body, pb.WatchInstancesResponse)


def _unary(request: type[M], response: type[Message], run: Callable[[M, Call], Awaitable[bytes]], rule: Rule) -> Unary:
    async def answer(message: M, call: Call) -> Answer:
        return RawAnswer(await run(message, call), response)

    name = request.DESCRIPTOR.name.removesuffix("Request")
    return Unary(f"{SERVICE}/{name}", parse_proto(request), parse_json(request), answer, rule, subject)
