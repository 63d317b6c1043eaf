"""nanny.v1.NannyService: the right that each call needs, and what the call does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any, Final

from control import Controller
from nanny.api.orders import NannyOrders, check_id, check_mask, default_request_id
from nanny.api.policies import check_info, merge_info
from nanny.api.queries import Queries
from nanny.api.shown import NannyMessages
from nanny.reach import DESCRIBE, MANAGERS, ORDER, OWNERS, SEEN, service_in
from nanny.records import kinds
from nanny.world.leave import ApprovalPort
from nanny.world.pictures import ServiceViews
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import Adoption, InstanceKey, InstanceOrder, ServiceEvent, StepOrder, TargetOrder
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import invalid
from serving.rights.reach import EVERYTHING, SHOWN, Of, narrowed_reach
from serving.rights.rules import INSPECT, READ, STOP

_SERVICE: Final = ServiceTable("nanny.v1.NannyService", lambda request: getattr(request, "service_id", "") or "nanny")
_PAGE: Final = 1_000


class NannyApi:
    """The service. `methods` is what a transport serves."""

    def __init__(
        self,
        controller: Controller,
        orders: NannyOrders,
        queries: Queries,
        shown: NannyMessages,
        pictures: ServiceViews,
        leave: ApprovalPort,
        prometheus: Collection[str] = (),
    ) -> None:
        self._controller, self._orders, self._queries = controller, orders, queries
        self._shown, self._pictures, self._leave = shown, pictures, leave
        self._prometheus = prometheus

    def methods(self) -> list[Method]:
        """All calls. Owners (uploaders of the service) order; operations managers (operators) pause and resume."""
        return [
            _SERVICE.unary(pb.CreateServiceRequest, self._create, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.UpdateServiceRequest, self._update, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.DeleteServiceRequest, self._delete, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.GetServiceRequest, self._get, READ, SEEN),
            _SERVICE.unary(pb.ListServicesRequest, self._list, READ, narrowed_reach(Of.SERVICE)),
            _SERVICE.unary(pb.CreateSnapshotRequest, self._add_snapshot, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.GetSnapshotRequest, self._get_snapshot, DESCRIBE, service_in(OWNERS)),
            _SERVICE.unary(pb.ListSnapshotsRequest, self._snapshots, READ, SEEN),
            _SERVICE.unary(pb.SetTargetRequest, self._target, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.SetInstanceTargetRequest, self._instance_target, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.PauseActionsRequest, self._pause, STOP, service_in(MANAGERS), only_stops=lambda _: True),
            _SERVICE.unary(pb.ResumeActionsRequest, self._resume, STOP, service_in(MANAGERS)),
            _SERVICE.unary(pb.PromoteRolloutRequest, self._promote, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.AbortRolloutRequest, self._abort, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.RestartServiceRequest, self._restart, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.StopServiceRequest, self._stop, ORDER, service_in(OWNERS)),
            _SERVICE.unary(pb.ListInstancesRequest, self._instances, READ, SEEN),
            _SERVICE.unary(pb.ListHistoryRequest, self._history, READ, SEEN),
            _SERVICE.unary(pb.GetRolloutRequest, self._rollout, READ, SEEN),
            _SERVICE.streaming(pb.WatchServiceRequest, self._watch, READ, SEEN),
            _SERVICE.unary(pb.GetControlRequest, self._control, INSPECT, SHOWN),
            _SERVICE.unary(
                pb.SetControlRequest,
                self._set_control,
                STOP,
                EVERYTHING,
                only_stops=lambda request: request.order == pb.CONTROL_ORDER_FREEZE,
            ),
        ]

    async def _create(self, request: pb.CreateServiceRequest, call: Call) -> Answer:
        check_id(request.service_id)
        check_info(request.info, self._pictures.locations, self._prometheus)
        event = ServiceEvent(created=request.info)
        if request.adopt:
            instances = await self._queries.instances_in_hq(request.service_id)
            snapshot = await self._orders.adoption(request.service_id, instances)
            event = ServiceEvent(adopted=Adoption(info=request.info, snapshot=snapshot))
        await self._send(request, event, call)
        return MessageAnswer(pb.CreateServiceResponse(service=self._shown.service(request.service_id)))

    async def _update(self, request: pb.UpdateServiceRequest, call: Call) -> Answer:
        check_id(request.service_id)
        check_mask(request.update_mask)
        before = self._queries.record(request.service_id).info
        merged = merge_info(before, request.info, request.update_mask)
        check_info(merged, self._pictures.locations, self._prometheus, before)
        event = ServiceEvent(
            updated=request.info, updated_fields=request.update_mask, info_version=request.info_version
        )
        await self._send(request, event, call)
        return MessageAnswer(pb.UpdateServiceResponse(service=self._shown.service(request.service_id)))

    async def _delete(self, request: pb.DeleteServiceRequest, call: Call) -> Answer:
        check_id(request.service_id)
        await self._send(request, ServiceEvent(deleted=True), call)
        return MessageAnswer(pb.DeleteServiceResponse())

    async def _get(self, request: pb.GetServiceRequest, call: Call) -> Answer:
        check_id(request.service_id)
        return MessageAnswer(pb.GetServiceResponse(service=await self._queries.service(request.service_id)))

    async def _list(self, request: pb.ListServicesRequest, call: Call) -> Answer:
        self._controller.check_loaded()
        names = sorted(name for name in self._controller.records(kinds.SERVICE) if name > request.page_token)
        seen = [name for name in names if call.access.covers_service(name)]
        page = seen[: min(request.page_size or _PAGE, _PAGE)]
        token = page[-1] if len(page) < len(seen) else ""
        found = [self._shown.service(name) for name in page]
        return MessageAnswer(pb.ListServicesResponse(service=found, next_page_token=token))

    async def _add_snapshot(self, request: pb.CreateSnapshotRequest, call: Call) -> Answer:
        check_id(request.service_id)
        self._queries.record(request.service_id)
        return MessageAnswer(pb.CreateSnapshotResponse(snapshot=await self._orders.add_snapshot(request, call)))

    async def _get_snapshot(self, request: pb.GetSnapshotRequest, call: Call) -> Answer:
        check_id(request.service_id)
        snapshot = self._orders.snapshot_id(request.service_id, request.snapshot_id)
        return MessageAnswer(pb.GetSnapshotResponse(snapshot=self._queries.snapshot(request.service_id, snapshot)))

    async def _snapshots(self, request: pb.ListSnapshotsRequest, call: Call) -> Answer:
        check_id(request.service_id)
        return MessageAnswer(pb.ListSnapshotsResponse(snapshot=self._queries.snapshots(request.service_id)))

    async def _target(self, request: pb.SetTargetRequest, call: Call) -> Answer:
        check_id(request.service_id)
        if request.target not in pb.Target.values() or not request.target:
            raise invalid("target", "write DESTROYED, CREATED, PREPARED or ACTIVE")
        if request.fill_pods_configuration and request.target != pb.TARGET_CREATED:
            raise invalid("fill_pods_configuration", "is for the target CREATED only")
        if request.skip_steps and request.target != pb.TARGET_ACTIVE:
            raise invalid("skip_steps", "is for the target ACTIVE only")
        if request.roll_back and request.target != pb.TARGET_ACTIVE:
            raise invalid("roll_back", "is for the target ACTIVE only")
        snapshot = self._orders.snapshot_id(request.service_id, request.snapshot_id)
        request.request_id = request.request_id or default_request_id(call)
        order = TargetOrder(
            snapshot_id=snapshot,
            target=request.target,
            fill=request.fill_pods_configuration,
            order_id=request.request_id,
            skip_steps=request.skip_steps,
            roll_back=request.roll_back,
        )
        await self._send(request, ServiceEvent(target=order), call)
        return MessageAnswer(pb.SetTargetResponse(service=self._shown.service(request.service_id)))

    async def _instance_target(self, request: pb.SetInstanceTargetRequest, call: Call) -> Answer:
        check_id(request.service_id)
        if request.target not in (pb.TARGET_CREATED, pb.TARGET_PREPARED, pb.TARGET_ACTIVE):
            raise invalid("target", "write CREATED, PREPARED or ACTIVE")
        service, snapshot = request.service_id, self._orders.snapshot_id(request.service_id, request.snapshot_id)
        key = await self._orders.instance_key(service, snapshot, request.location, request.instance_id)
        instance = InstanceKey(location=key[0], id=key[1])
        order = InstanceOrder(snapshot_id=snapshot, instance=instance, target=request.target)
        await self._send(request, ServiceEvent(instance=order), call)
        return MessageAnswer(pb.SetInstanceTargetResponse(service=self._shown.service(service)))

    async def _pause(self, request: pb.PauseActionsRequest, call: Call) -> Answer:
        check_id(request.service_id)
        await self._send(request, ServiceEvent(paused=True), call)
        return MessageAnswer(pb.PauseActionsResponse(service=self._shown.service(request.service_id)))

    async def _resume(self, request: pb.ResumeActionsRequest, call: Call) -> Answer:
        check_id(request.service_id)
        await self._send(request, ServiceEvent(paused=False), call)
        return MessageAnswer(pb.ResumeActionsResponse(service=self._shown.service(request.service_id)))

    async def _promote(self, request: pb.PromoteRolloutRequest, call: Call) -> Answer:
        await self._send(request, ServiceEvent(promoted=_step_order(request)), call)
        return MessageAnswer(pb.PromoteRolloutResponse(service=self._shown.service(request.service_id)))

    async def _abort(self, request: pb.AbortRolloutRequest, call: Call) -> Answer:
        await self._send(request, ServiceEvent(aborted=_step_order(request)), call)
        return MessageAnswer(pb.AbortRolloutResponse(service=self._shown.service(request.service_id)))

    async def _restart(self, request: pb.RestartServiceRequest, call: Call) -> Answer:
        check_id(request.service_id)
        record = self._queries.record(request.service_id)
        request.request_id = request.request_id or default_request_id(call)
        if all(one.order.id != request.request_id for one in record.snapshot):  # else it is under way, or was
            instances = await self._queries.instances_in_hq(request.service_id)
            restart = await self._orders.restart(request.service_id, instances, request.request_id)
            await self._send(request, ServiceEvent(restarted=restart), call)
        return MessageAnswer(pb.RestartServiceResponse(service=self._shown.service(request.service_id)))

    async def _stop(self, request: pb.StopServiceRequest, call: Call) -> Answer:
        check_id(request.service_id)
        await self._send(request, ServiceEvent(stopped=True), call)
        return MessageAnswer(pb.StopServiceResponse(service=self._shown.service(request.service_id)))

    async def _instances(self, request: pb.ListInstancesRequest, call: Call) -> Answer:
        check_id(request.service_id)
        record = self._queries.record(request.service_id)
        active = next((one.snapshot_id for one in record.snapshot if one.target == pb.TARGET_ACTIVE), "")
        snapshot = self._orders.snapshot_id(request.service_id, request.snapshot_id or active)
        return MessageAnswer(await self._queries.instances(request.service_id, snapshot))

    async def _history(self, request: pb.ListHistoryRequest, call: Call) -> Answer:
        check_id(request.service_id)
        return MessageAnswer(pb.ListHistoryResponse(entry=self._queries.history(request.service_id)))

    async def _rollout(self, request: pb.GetRolloutRequest, call: Call) -> Answer:
        check_id(request.service_id)
        self._queries.record(request.service_id)
        snapshot = request.snapshot_id and self._orders.snapshot_id(request.service_id, request.snapshot_id)
        return MessageAnswer(pb.GetRolloutResponse(rollout=self._queries.rollout(request.service_id, snapshot)))

    async def _watch(self, request: pb.WatchServiceRequest, call: Call) -> AsyncIterator[Answer]:
        check_id(request.service_id)
        async for service in self._queries.watch(request.service_id):
            yield MessageAnswer(pb.WatchServiceResponse(service=service))

    async def _control(self, request: pb.GetControlRequest, call: Call) -> Answer:
        return MessageAnswer(pb.GetControlResponse(control=self._state()))

    async def _set_control(self, request: pb.SetControlRequest, call: Call) -> Answer:
        identity = call.access.identity
        by, reason = identity.name if identity else request.by.author, request.by.comment
        orders = {
            pb.CONTROL_ORDER_FREEZE: self._controller.freeze,
            pb.CONTROL_ORDER_UNFREEZE: self._controller.unfreeze,
            pb.CONTROL_ORDER_OPEN_EPOCH: self._controller.open,
        }
        if request.order not in orders:
            raise invalid("order", "write FREEZE, UNFREEZE or OPEN_EPOCH")
        await orders[request.order](by, reason)
        call.note_write("nanny")
        return MessageAnswer(pb.SetControlResponse(control=self._state()))

    def _state(self) -> pb.ControlState:
        controller = self._controller
        state = pb.ControlState(
            process=controller.config.process,
            acting=controller.acting_process,
            why_not=controller.why_nothing_begins(),
            epoch=controller.epoch,
            open=controller.is_open,
            location=self._pictures.away_locations(),
            cms=self._leave.address,
            mended=controller.repairs,
        )
        if (frozen := controller.frozen) is not None:
            state.frozen.author, state.frozen.comment = frozen.by, frozen.reason
            state.frozen.time.FromMilliseconds(frozen.since_unix_ms)
        return state

    async def _send(self, request: Any, event: ServiceEvent, call: Call) -> None:
        await self._orders.send(request.service_id, event, request.by, call, request.request_id)


def _step_order(request: pb.PromoteRolloutRequest | pb.AbortRolloutRequest) -> StepOrder:
    """Raises InvalidRequest."""
    check_id(request.service_id)
    if not request.order_id:
        raise invalid("order_id", "name the order that is under way: GetService shows it")
    return StepOrder(order_id=request.order_id, number=request.step_number)
