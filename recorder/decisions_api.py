"""The calls of history.v1.HistoryService about decisions of servers, and the ledger of the CMS."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Final

from historypb.v1 import history_pb2 as pb
from recorder.archive import Archive
from recorder.decided import DecisionRow
from recorder.decision_tables import FUSES, LEDGER, LedgerChunk
from recorder.gaps import server_name
from recorder.history_api import SERVICE, gap_token, page_size, span_of, timestamp
from recorder.record_readers import RecordReaders
from serving.calls.methods import Answer, Call, Method
from serving.clock import Clock
from serving.encoding.jsonio import MessageAnswer
from serving.errors import invalid
from serving.rights.reach import EVERYTHING, Of, narrowed_reach
from serving.rights.rules import READ

SERVERS: Final = ("cms", "nanny", "walle")
_DECISIONS: Final = 100
_CHUNKS: Final = 50


class DecisionsApi:
    """The service's part about decisions. A caller is shown of the past only what it may read of the present."""

    def __init__(self, archive: Archive, clock: Clock, readers: RecordReaders) -> None:
        self._archive, self._clock, self._readers = archive, clock, readers

    def methods(self) -> list[Method]:
        """All calls; each only reads."""
        return [
            SERVICE.unary(pb.ListDecisionsRequest, self._list, READ, narrowed_reach(Of.TASK)),
            SERVICE.streaming(pb.ReadLedgerRequest, self._read_ledger, READ, EVERYTHING),
            SERVICE.streaming(pb.ReadFusesRequest, self._read_fuses, READ, EVERYTHING),
        ]

    async def _list(self, request: pb.ListDecisionsRequest, call: Call) -> Answer:
        if request.server not in ("", *SERVERS):
            raise invalid("server", f"{request.server[:40]!a} is not one of {', '.join(SERVERS)}")
        since_ms, until_ms = span_of(request, self._clock)
        size, until = page_size(request.page_size, _DECISIONS), self._readers.until(call)

        def read() -> pb.ListDecisionsResponse:
            answer, last, is_after = pb.ListDecisionsResponse(), "", not request.page_token
            for token, one in self._events(request, call, since_ms, until_ms, until):
                if is_after and len(answer.decision) == size:
                    answer.next_page_token = last
                    break
                if is_after:
                    answer.decision.append(one)
                    last = token
                is_after = is_after or token == request.page_token
            if not is_after:
                raise invalid("page_token", "is of no decision on record: begin with the first page")
            return answer

        return MessageAnswer(await self._readers.run(read, call))

    def _events(
        self, request: pb.ListDecisionsRequest, call: Call, since_ms: int, until_ms: int, until: float
    ) -> Iterator[tuple[str, pb.Decision]]:
        """Decisions and gaps, latest first, read as far as they are taken."""
        rows = (
            (row.at_ms, token, decision_message(row))
            for token, row in self._readers.in_time(self._archive.decisions(since_ms, until_ms), until)
            if _is_asked_for(row, request) and row.readers.may_read(call.access)
        )
        gaps = sorted(self._gaps(request.server, since_ms, until_ms), key=_latest_first)
        for _, token, message in heapq.merge(rows, gaps, key=_latest_first):
            yield token, message

    def _gaps(self, server: str, since_ms: int, until_ms: int) -> Iterator[tuple[int, str, pb.Decision]]:
        for name in (server,) if server else SERVERS:
            for gap in self._archive.gaps(since_ms, until_ms, server_name(name)):
                message = pb.Decision(time=timestamp(max(gap.since_ms, since_ms)), server=name, message=gap.reason)
                if gap.until_ms is not None:
                    message.gap_until.CopyFrom(timestamp(gap.until_ms))
                yield gap.since_ms, gap_token(gap), message

    async def _read_ledger(self, request: pb.ReadLedgerRequest, call: Call) -> AsyncIterator[Answer]:
        async for chunk in self._chunks(request, LEDGER, call):
            yield MessageAnswer(pb.ReadLedgerResponse(time=timestamp(chunk.at_ms), entry=chunk.entries()))

    async def _read_fuses(self, request: pb.ReadFusesRequest, call: Call) -> AsyncIterator[Answer]:
        async for chunk in self._chunks(request, FUSES, call):
            yield MessageAnswer(pb.ReadFusesResponse(time=timestamp(chunk.at_ms), entry=chunk.fuse_entries()))

    async def _chunks(
        self, request: pb.ReadLedgerRequest | pb.ReadFusesRequest, table: str, call: Call
    ) -> AsyncIterator[LedgerChunk]:
        since_ms, until_ms = span_of(request, self._clock)
        chunks = self._archive.ledger_chunks(since_ms, until_ms, table)

        def take() -> list[LedgerChunk]:
            return list(islice(chunks, _CHUNKS))

        while found := await self._readers.run(take, call):
            for chunk in found:
                yield chunk
                await asyncio.sleep(0)


def _latest_first(item: tuple[int, str, pb.Decision]) -> int:
    return -item[0]


def _is_asked_for(row: DecisionRow, request: pb.ListDecisionsRequest) -> bool:
    return (
        request.server in ("", row.server)
        and request.subject in ("", row.subject)
        and (not request.service_id or request.service_id in row.services)
        and (not request.node or request.node in row.nodes)
    )


def decision_message(row: DecisionRow) -> pb.Decision:
    """A decision as the API shows it."""
    return pb.Decision(
        time=timestamp(row.at_ms),
        server=row.server,
        subject=row.subject,
        event=row.event,
        by=row.by,
        message=row.message,
        based_on=row.based_on,
        service_id=row.services,
        node=row.nodes,
    )
