"""The calls about notices: what people were notified of, and that somebody knows."""

from __future__ import annotations

from typing import Final

from control.paging import page_of
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import invalid
from serving.rights.reach import Of, checked_reach, narrowed_reach
from serving.rights.rules import READ
from walle.api.submitting import submit
from walle.process.automaton import WalleSupervisor
from walle.reach import ORDER
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.project_pb2 import NoticeRecord

_LATEST_MS: Final = 1 << 62
MAX_REASON: Final = 500


class NoticesApi:
    """The calls of walle.v1.WalleService about notices."""

    def __init__(self, automaton: WalleSupervisor) -> None:
        self._walle = automaton

    def methods(self, service: ServiceTable) -> list[Method]:
        reach = self._walle.reaches
        return [
            service.unary(pb.ListNoticesRequest, self._list, READ, narrowed_reach(Of.PROJECT)),
            service.unary(
                pb.AcknowledgeNoticeRequest, self._acknowledge, ORDER, checked_reach(Of.PROJECT, reach.check_notice)
            ),
        ]

    def _list(self, request: pb.ListNoticesRequest, call: Call) -> Answer:
        self._walle.controller.check_loaded()
        sees = self._walle.reaches.may_see_notice
        keys = {_latest_first(one): one for one in self._walle.notices.values() if _matches(one, request)}
        later = ((key, keys[key]) for key in sorted(keys) if key > request.page_token and sees(keys[key], call.access))
        notices, token = page_of(later, request.page_size)
        return MessageAnswer(pb.ListNoticesResponse(notices=notices, next_page_token=token))

    async def _acknowledge(self, request: pb.AcknowledgeNoticeRequest, call: Call) -> Answer:
        if not request.reason or len(request.reason) > MAX_REASON:
            raise invalid("reason", f"write who does what about it, in 1 to {MAX_REASON} characters")
        await submit(self._walle, f"notice/{request.notice}", pb.Order(acknowledge_notice=request), call)
        return MessageAnswer(pb.AcknowledgeNoticeResponse())


def _matches(notice: NoticeRecord, request: pb.ListNoticesRequest) -> bool:
    return (
        request.project in ("", notice.project)
        and request.host in ("", notice.host)
        and notice.severity >= request.severity
        and (request.all or not notice.HasField("acknowledged"))
    )


def _latest_first(notice: NoticeRecord) -> str:
    return f"{_LATEST_MS - notice.last_ms:019d} {notice.id}"
