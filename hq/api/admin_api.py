"""hq.v1.AdminService as a table of methods."""

from __future__ import annotations

from typing import Any

from hq.registry.registry import Registry
from hq.validation import check_confirmation, check_guard_order, check_id, check_page_size, check_suspension, require
from hqapi.reach import SUSPENDED
from hqapi.rules import SILENCE, SUSPEND
from hqpb.v1 import admin_pb2, service_pb2
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.rights.reach import EVERYTHING, SHOWN, Of, narrowed_reach
from serving.rights.rules import INSPECT, OPERATE


def _subject(request: Any) -> str:
    return getattr(request, "node_name", "") or "guard"


_SERVICE = ServiceTable("hq.v1.AdminService", _subject)


class AdminApi:
    """The service. `methods` is what a transport serves."""

    def __init__(self, registry: Registry) -> None:
        self._registry, self._admin = registry, registry.admin

    def methods(self) -> list[Method]:
        """All calls."""
        return [
            _SERVICE.unary(admin_pb2.GetGuardRequest, self._get_guard, SILENCE, SHOWN),
            _SERVICE.unary(admin_pb2.ReleaseGuardRequest, self._release, OPERATE, EVERYTHING),
            _SERVICE.unary(admin_pb2.ForceGuardRequest, self._force, OPERATE, EVERYTHING, only_stops=lambda _: True),
            _SERVICE.unary(admin_pb2.ListReplicasRequest, self._replicas, INSPECT, SHOWN),
            _SERVICE.unary(admin_pb2.ListQuarantineRequest, self._quarantine, INSPECT, EVERYTHING),
            _SERVICE.unary(admin_pb2.ListTransitionsRequest, self._transitions, INSPECT, narrowed_reach(Of.INSTANCE)),
            _SERVICE.unary(admin_pb2.SuspendNodeRequest, self._suspend, SUSPEND, SUSPENDED),
            _SERVICE.unary(admin_pb2.ResumeNodeRequest, self._resume, SUSPEND, SUSPENDED),
            _SERVICE.unary(admin_pb2.ListSuspensionsRequest, self._suspensions, SILENCE, narrowed_reach(Of.NODE)),
            _SERVICE.unary(admin_pb2.GetEpochRequest, self._get_epoch, INSPECT, SHOWN),
            _SERVICE.unary(admin_pb2.ConfirmEpochRequest, self._confirm_epoch, OPERATE, EVERYTHING),
        ]

    async def _get_guard(self, request: admin_pb2.GetGuardRequest, call: Call) -> Answer:
        return MessageAnswer(admin_pb2.GetGuardResponse(guard=self._admin.guard(), source=self._source()))

    async def _release(self, request: admin_pb2.ReleaseGuardRequest, call: Call) -> Answer:
        guard = await self._order(service_pb2.GUARD_OVERRIDE_KIND_RELEASE, request, call)
        return MessageAnswer(admin_pb2.ReleaseGuardResponse(guard=guard))

    async def _force(self, request: admin_pb2.ForceGuardRequest, call: Call) -> Answer:
        guard = await self._order(service_pb2.GUARD_OVERRIDE_KIND_FORCE, request, call)
        return MessageAnswer(admin_pb2.ForceGuardResponse(guard=guard))

    async def _order(
        self, kind: int, request: admin_pb2.ReleaseGuardRequest | admin_pb2.ForceGuardRequest, call: Call
    ) -> service_pb2.GuardState:
        check_guard_order(request)
        return await self._admin.order_guard(kind, *_words(request, call), self._registry.deadline(call.deadline))

    async def _replicas(self, request: admin_pb2.ListReplicasRequest, call: Call) -> Answer:
        members = await self._admin.members()
        used_bytes, most_bytes = self._admin.room()
        answer = admin_pb2.ListReplicasResponse(
            replicas=self._admin.replicas(),
            members=members,
            source=self._source(),
            store_bytes=used_bytes,
            max_store_bytes=most_bytes,
            proof=self._admin.proof(),
        )
        return MessageAnswer(answer)

    async def _quarantine(self, request: admin_pb2.ListQuarantineRequest, call: Call) -> Answer:
        answer = admin_pb2.ListQuarantineResponse(records=self._admin.quarantine(), source=self._source())
        return MessageAnswer(answer)

    async def _transitions(self, request: admin_pb2.ListTransitionsRequest, call: Call) -> Answer:
        require(check_page_size(request.page_size))
        if request.instance_id:
            require(check_id(request.instance_id, "instance_id"))
        found = self._admin.transitions(request.instance_id, request.page_size, call.access.covers)
        return MessageAnswer(admin_pb2.ListTransitionsResponse(transitions=found, source=self._source()))

    async def _suspend(self, request: admin_pb2.SuspendNodeRequest, call: Call) -> Answer:
        check_suspension(request)
        suspension = await self._admin.suspend(
            request.node_name, *_words(request, call), self._registry.deadline(call.deadline)
        )
        return MessageAnswer(admin_pb2.SuspendNodeResponse(suspension=suspension))

    async def _resume(self, request: admin_pb2.ResumeNodeRequest, call: Call) -> Answer:
        require(check_id(request.node_name, "node_name"))
        await self._admin.resume(request.node_name, self._registry.deadline(call.deadline))
        return MessageAnswer(admin_pb2.ResumeNodeResponse())

    async def _suspensions(self, request: admin_pb2.ListSuspensionsRequest, call: Call) -> Answer:
        found = [one for one in self._admin.suspensions() if call.access.covers_node(one.node_name)]
        answer = admin_pb2.ListSuspensionsResponse(suspensions=found, source=self._source())
        return MessageAnswer(answer)

    async def _get_epoch(self, request: admin_pb2.GetEpochRequest, call: Call) -> Answer:
        return MessageAnswer(admin_pb2.GetEpochResponse(state=self._admin.epoch(), source=self._source()))

    async def _confirm_epoch(self, request: admin_pb2.ConfirmEpochRequest, call: Call) -> Answer:
        check_confirmation(request)
        identity = call.access.identity
        state = await self._admin.confirm_epoch(
            request.epoch,
            identity.name if identity else request.by,
            request.reason,
            self._registry.deadline(call.deadline),
        )
        return MessageAnswer(admin_pb2.ConfirmEpochResponse(state=state))

    def _source(self) -> service_pb2.Source:
        return self._registry.freshness.source().message()


def _words(
    order: admin_pb2.ReleaseGuardRequest | admin_pb2.ForceGuardRequest | admin_pb2.SuspendNodeRequest, call: Call
) -> tuple[int, str, str]:
    """Duration in milliseconds, who, and why. The name in the token takes precedence over the one in the order."""
    identity = call.access.identity
    return order.duration.ToMilliseconds(), identity.name if identity else order.by, order.reason
