"""hq.v1.InstanceService as a gateway serves it: a table of methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from federated.calls.lists import CompiledFind, compile_find
from federated.calls.single import One, compiled_get
from federated.encoded.answers import RawAnswer
from federated.gateway import FederatedGateway
from hqapi.reach import FOUND, INSTANCE, INSTANCES
from hqapi.requests import subject
from hqapi.rules import BEGIN, FETCH, REPORT, SILENCE, SUSPEND, UPDATE, UPLOAD
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Answer, Call, Method, ServiceTable, UnaryMethod
from serving.rights.reach import SHOWN, Reach
from serving.rights.rules import INSPECT, OPERATE, READ, Rule

_SERVICE = ServiceTable("hq.v1.InstanceService", subject)
_ADMIN = ServiceTable("hq.v1.AdminService", lambda _: "")
_OF_HEALERS = {"GetGuard": SILENCE, "ListSuspensions": SILENCE, "SuspendNode": SUSPEND, "ResumeNode": SUSPEND}
M = TypeVar("M", bound=Message)


class GatewayApi:
    """The service. `methods` is what a transport serves."""

    def __init__(self, gateway: FederatedGateway) -> None:
        self._gateway = gateway

    def methods(self) -> list[Method]:
        """All calls; those of agents are refused with the address to ask."""
        gateway = self._gateway
        writes, refusals = gateway.writes, gateway.refusals
        return [
            _raw(pb.CreateInstanceRequest, pb.CreateInstanceResponse, writes.create, UPLOAD, INSTANCE),
            _raw(pb.UpdateInstanceRequest, pb.UpdateInstanceResponse, writes.update, UPDATE, INSTANCE),
            _raw(pb.DeleteInstanceRequest, pb.DeleteInstanceResponse, writes.delete, UPLOAD, INSTANCE),
            _raw(pb.ApplyInstancesRequest, pb.ApplyInstancesResponse, gateway.applying.apply, UPLOAD, INSTANCES),
            _raw(pb.PutRevisionRequest, pb.PutRevisionResponse, writes.put_revision, UPLOAD, INSTANCE),
            _raw(pb.DeleteRevisionRequest, pb.DeleteRevisionResponse, writes.delete_revision, UPLOAD, INSTANCE),
            _SERVICE.memoized_unary(pb.GetInstanceRequest, compiled_get, self._get, READ, INSTANCE),
            _SERVICE.memoized_unary(pb.FindInstancesRequest, compile_find, self._find, READ, FOUND),
            _raw(pb.CountInstancesRequest, pb.CountInstancesResponse, gateway.counts.count, READ, FOUND),
            _SERVICE.streaming(pb.WatchInstancesRequest, self._watch, READ, FOUND),
            _raw(pb.GetRevisionRequest, pb.GetRevisionResponse, refusals.get_revision, FETCH, SHOWN),
            _raw(pb.BeginReportingRequest, pb.BeginReportingResponse, refusals.begin_reporting, BEGIN, SHOWN),
            _raw(pb.BeginReportingsRequest, pb.BeginReportingsResponse, refusals.begin_many, BEGIN, SHOWN),
            _raw(pb.ReportStatusRequest, pb.ReportStatusResponse, refusals.report, REPORT, SHOWN),
            _raw(pb.ReportStatusesRequest, pb.ReportStatusesResponse, refusals.report_many, REPORT, SHOWN),
            _raw(pb.ListSilencesRequest, pb.ListSilencesResponse, refusals.silences, READ, SHOWN),
            _raw(pb.ExplainInstanceRequest, pb.ExplainInstanceResponse, gateway.single.explain, READ, INSTANCE),
        ]

    def refused_methods(self) -> list[Method]:
        """AdminService's calls, which only tell callers where to go."""
        return [
            self._refused_method(method) for method in admin_pb2.DESCRIPTOR.services_by_name["AdminService"].methods
        ]

    def _refused_method(self, method: MethodDescriptor) -> UnaryMethod:
        request: type[Message] = GetMessageClass(method.input_type)

        async def refuse(message: Message, call: Call) -> Answer:
            return await self._gateway.refusals.admin(method.name)

        usual = INSPECT if method.name.startswith(("Get", "List")) else OPERATE
        return _ADMIN.unary(request, refuse, _OF_HEALERS.get(method.name, usual), SHOWN)

    async def _get(self, wanted: One, call: Call) -> Answer:
        return RawAnswer(await self._gateway.single.get(wanted, call), pb.GetInstanceResponse)

    def _find(self, find: CompiledFind, call: Call) -> Answer | Awaitable[Answer]:
        """Answer without awaiting if memory has the list."""
        lists = self._gateway.lists
        return self._gateway.followed.answer(find, call) or lists.page(find, lists.ask(find, call))

    async def _watch(self, request: pb.WatchInstancesRequest, call: Call) -> AsyncIterator[Answer]:
        async for body in self._gateway.watches.watch(request, call):
            yield RawAnswer(body, pb.WatchInstancesResponse)


def _raw(
    request: type[M], response: type[Message], run: Callable[[M, Call], Awaitable[bytes]], rule: Rule, reach: Reach
) -> UnaryMethod:
    async def answer(message: M, call: Call) -> Answer:
        return RawAnswer(await run(message, call), response)

    return _SERVICE.unary(request, answer, rule, reach)
