"""cms.v1.CmsAdminService: orders of operators, each recorded before it is carried out."""

from __future__ import annotations

from cms.checks import check_reason
from cms.leave import TaskService
from cms.permits import owner_of
from cmspb.v1 import cms_pb2 as pb
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.durations import span
from serving.encoding.jsonio import MessageAnswer
from serving.errors import invalid
from serving.rights.reach import EVERYTHING
from serving.rights.rules import OPERATE, STOP

_SERVICE = ServiceTable("cms.v1.CmsAdminService", lambda request: str(getattr(request, "id", "")))
_MOST_S = 30 * 86_400


class CmsAdminApi:
    """The service. `methods` is what a transport serves."""

    def __init__(self, leave: TaskService) -> None:
        self._leave, self._controller = leave, leave.desk.controller

    def methods(self) -> list[Method]:
        return [
            _SERVICE.unary(pb.FreezeRequest, self.freeze, STOP, EVERYTHING, only_stops=lambda _: True),
            _SERVICE.unary(pb.UnfreezeRequest, self.unfreeze, STOP, EVERYTHING),
            _SERVICE.unary(pb.OpenRequest, self.open, STOP, EVERYTHING),
            _SERVICE.unary(pb.ExtendTaskRequest, self.extend, OPERATE, EVERYTHING),
            _SERVICE.unary(pb.ExpediteTaskRequest, self.expedite, OPERATE, EVERYTHING),
            _SERVICE.unary(pb.EndTaskRequest, self.end, OPERATE, EVERYTHING),
        ]

    async def freeze(self, request: pb.FreezeRequest, call: Call) -> Answer:
        await self._controller.freeze(_by(request, call), request.reason)
        return MessageAnswer(pb.FreezeResponse())

    async def unfreeze(self, request: pb.UnfreezeRequest, call: Call) -> Answer:
        await self._controller.unfreeze(_by(request, call), request.reason)
        return MessageAnswer(pb.UnfreezeResponse())

    async def open(self, request: pb.OpenRequest, call: Call) -> Answer:
        await self._controller.open(_by(request, call), request.reason)
        return MessageAnswer(pb.OpenResponse())

    async def extend(self, request: pb.ExtendTaskRequest, call: Call) -> Answer:
        if not 0 < request.seconds <= _MOST_S:
            raise invalid("seconds", f"{span(request.seconds)} is not valid: use 1s to {span(_MOST_S)}")
        await self._leave.extend(request.id, request.seconds, _by(request, call), request.reason)
        return MessageAnswer(pb.ExtendTaskResponse())

    async def expedite(self, request: pb.ExpediteTaskRequest, call: Call) -> Answer:
        await self._leave.expedite(request.id, _by(request, call), request.reason)
        return MessageAnswer(pb.ExpediteTaskResponse())

    async def end(self, request: pb.EndTaskRequest, call: Call) -> Answer:
        await self._leave.end_as_operator(request.id, _by(request, call), request.reason)
        return MessageAnswer(pb.EndTaskResponse())


Request = (
    pb.ExpediteTaskRequest
    | pb.FreezeRequest
    | pb.UnfreezeRequest
    | pb.OpenRequest
    | pb.ExtendTaskRequest
    | pb.EndTaskRequest
)


def _by(request: Request, call: Call) -> str:
    """The order's author, for the record. Raises InvalidRequest: an order without a reason is not carried out."""
    check_reason(request.reason)
    return owner_of(call) or request.by or "unknown"
