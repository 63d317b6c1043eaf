"""cms.v1.LedgerService: the ledger as recorders follow it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from cms.desk import CmsController
from cmspb.v1 import record_pb2 as pb
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import FailedPrecondition, StartOver
from serving.rights.reach import EVERYTHING
from serving.rights.rules import READ

_SERVICE: Final = ServiceTable("cms.v1.LedgerService")
_AT_ONCE: Final = 1_000
_SIGN_OF_LIFE_S: Final = 5.0


class LedgerApi:
    """The service. `methods` is what a transport serves."""

    def __init__(self, desk: CmsController) -> None:
        self._desk = desk

    def methods(self) -> list[Method]:
        return [_SERVICE.streaming(pb.FollowLedgerRequest, self._follow, READ, EVERYTHING)]

    async def _follow(self, _request: pb.FollowLedgerRequest, _call: Call) -> AsyncIterator[Answer]:
        self._desk.controller.check_loaded()
        if not self._desk.controller.is_acting:
            raise FailedPrecondition("this process does not lead: follow the one that does", "leader")
        self._desk.look_around()
        with self._desk.journal.follow() as follower:
            while self._desk.controller.is_acting:
                found = await follower.take(_AT_ONCE, _SIGN_OF_LIFE_S)
                if follower.is_over:
                    break
                yield MessageAnswer(pb.FollowLedgerResponse(entry=found))
        raise StartOver("another process leads, or too much was left unread: follow anew", "leader")
