"""The call by which recorders follow fuses and limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import StartOver
from serving.rights.reach import EVERYTHING
from serving.rights.rules import READ
from walle.process.automaton import WalleSupervisor
from walle.process.fuse_journal import FuseJournal
from wallepb.v1 import service_pb2 as pb

_AT_ONCE: Final = 100
_SIGN_OF_LIFE_S: Final = 5.0


class FuseFeed:
    """FollowFuses of walle.v1.WalleService."""

    def __init__(self, automaton: WalleSupervisor) -> None:
        self._controller = automaton.controller
        self._journal = FuseJournal(automaton.controller, automaton.world.global_limits)

    def methods(self, service: ServiceTable) -> list[Method]:
        return [service.streaming(pb.FollowFusesRequest, self._follow, READ, EVERYTHING)]

    async def _follow(self, _request: pb.FollowFusesRequest, _call: Call) -> AsyncIterator[Answer]:
        self._controller.check_loaded()
        with self._journal.follow() as follower:
            while not self._controller.why_not_loaded():
                entries = await follower.take(_AT_ONCE, _SIGN_OF_LIFE_S)
                if follower.is_over:
                    break
                yield MessageAnswer(pb.FollowFusesResponse(entry=entries))
        raise StartOver("the store is read anew, or too much was left unread: follow anew", "fuses")
