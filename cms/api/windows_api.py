"""Windows, over cms.v1: when planned work and roll-outs may begin."""

from __future__ import annotations

from cms.api.tasks_api import SERVICE
from cms.calendar_rules import rule_of
from cms.desk import CmsController
from cms.permits import owner_of
from cmspb.storage.v1 import ledger_pb2
from cmspb.v1 import cms_pb2 as pb
from control import EventRefused
from serving.calls.methods import Answer, Call, Method
from serving.encoding.jsonio import MessageAnswer
from serving.errors import NotFound
from serving.rights.reach import Of, narrowed_reach
from serving.rights.rules import BUDGET, READ
from serving.rights.stored import encode_access


class WindowsApi:
    """Its part of the service. `methods` is what a transport serves."""

    def __init__(self, desk: CmsController) -> None:
        self._desk, self._clock = desk, desk.clock

    def methods(self) -> list[Method]:
        reaches = self._desk.reaches()
        return [
            SERVICE.unary(pb.PutWindowsRequest, self.put, BUDGET, reaches.put_windows),
            SERVICE.unary(pb.ListWindowsRequest, self.list, READ, narrowed_reach(Of.SERVICE)),
            SERVICE.unary(pb.DeleteWindowsRequest, self.delete, BUDGET, reaches.deleted_windows),
        ]

    async def put(self, request: pb.PutWindowsRequest, call: Call) -> Answer:
        rule_of(request.windows)
        record = ledger_pb2.Windows(windows=request.windows, by=owner_of(call), at_ms=self._clock.wall_ms())
        await self._desk.orders.submit(
            request.windows.name, ledger_pb2.Order(put_windows=record, access=encode_access(call.access)), record.by
        )
        return MessageAnswer(pb.PutWindowsResponse(windows=request.windows))

    async def list(self, request: pb.ListWindowsRequest, call: Call) -> Answer:
        """Windows of a project, or of all work, are for everybody to see: they keep everybody waiting."""
        self._desk.controller.check_loaded()
        found = (record.windows for _, record in sorted(self._desk.windows.items()))
        shown = (
            one
            for one in found
            if request.service in ("", one.service) or not (one.service or one.project)
            if not one.service or call.access.covers_service(one.service)
        )
        return MessageAnswer(pb.ListWindowsResponse(state=[self._state(one) for one in shown]))

    async def delete(self, request: pb.DeleteWindowsRequest, call: Call) -> Answer:
        try:
            await self._desk.orders.submit(
                request.name,
                ledger_pb2.Order(delete_windows=request.name, access=encode_access(call.access)),
                owner_of(call),
            )
        except EventRefused as error:
            raise NotFound(str(error)) from None
        return MessageAnswer(pb.DeleteWindowsResponse())

    def _state(self, windows: pb.Windows) -> pb.WindowsState:
        opening = rule_of(windows).opening(self._clock.wall_ms() / 1000)
        state = pb.WindowsState(windows=windows, is_open=not opening.why, message=opening.why)
        if opening.why and opening.at is not None:
            state.open_time.FromMilliseconds(round(opening.at * 1000))
        return state
