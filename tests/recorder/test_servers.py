"""Servers are followed without losing what they decided: over polls that break, clocks that differ, and days' ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from grpc import aio

from cmspb.v1 import record_pb2
from nannypb.v1 import service_pb2 as npb
from recorder.decided import DecisionRow
from recorder.decision_tables import LedgerChunk
from recorder.main import serve
from recorder.servers import DAY_MS, CmsSource, FusesSource, NannySource, ServerProcesses, ServerSource, WalleSource
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import Retry
from serving.rights.reach import SHOWN
from serving.rights.rules import READ
from tests.console.fakes import serving

_PATIENCE_S = 30.0
_NOW_MS = 1_000_000


class Kept:
    """What a source said."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.gaps: list[str] = []
        self.polls, self.time_ms = 0, _NOW_MS

    def now_ms(self) -> int:
        return self.time_ms

    def add_decisions(self, server: str, rows: Sequence[DecisionRow], chunks: Sequence[LedgerChunk] = ()) -> bool:
        self.rows += [f"{one.subject}: {one.event}" for one in rows]
        self.polls += 1
        return True

    def lose_server(self, server: str, reason: str) -> None:
        self.gaps.append(reason)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(_PATIENCE_S):
            while not holds():
                await asyncio.sleep(0.01)


class Histories:
    """Nanny, with the histories of two services, newest first; `breaks`: how often that of the second is not read."""

    def __init__(self) -> None:
        self.services = [npb.Service(id=name, version=1) for name in ("mail", "web")]
        self.entries: dict[str, list[npb.HistoryEntry]] = {"mail": [], "web": []}
        self.breaks = 0

    def tell(self, service: str, what: str, at_ms: int = _NOW_MS + 10) -> None:
        entry = npb.HistoryEntry(what=what)
        entry.time.FromMilliseconds(at_ms)
        self.entries[service].insert(0, entry)
        next(one for one in self.services if one.id == service).version += 1

    def methods(self) -> list[Method]:
        table = ServiceTable("nanny.v1.NannyService")

        def services(_request: npb.ListServicesRequest, _call: Call) -> Answer:
            return MessageAnswer(npb.ListServicesResponse(service=self.services))

        def history(request: npb.ListHistoryRequest, _call: Call) -> Answer:
            if request.service_id == "web" and self.breaks:
                self.breaks -= 1
                raise Retry("its store is away")
            return MessageAnswer(npb.ListHistoryResponse(entry=self.entries[request.service_id]))

        return [
            table.unary(npb.ListServicesRequest, services, READ, SHOWN),
            table.unary(npb.ListHistoryRequest, history, READ, SHOWN),
        ]


@asynccontextmanager
async def following(source: ServerSource) -> AsyncIterator[Kept]:
    kept = Kept()
    task = asyncio.create_task(source.run(kept, 0))
    try:
        yield kept
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def following_nanny(nanny: Histories, processes: int) -> AsyncIterator[Kept]:
    async with AsyncExitStack() as stack:
        addresses = [await stack.enter_async_context(serving(nanny.methods())) for _ in range(processes)]
        yield await stack.enter_async_context(following(NannySource(ServerProcesses(addresses), 0.01)))


@pytest.mark.parametrize("source", [CmsSource, NannySource, WalleSource, FusesSource])
def test_the_flag_named_when_a_server_cannot_be_followed_exists(
    source: Callable[[ServerProcesses], ServerSource],
) -> None:
    flags = [flag for parameter in serve.params for flag in parameter.opts]
    assert f"--{source(ServerProcesses([])).flag}" in flags


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_poll_that_breaks_in_the_middle_loses_nothing(processes: int) -> None:
    """What it had read of `mail` was noted as read, and recorded by nobody."""
    nanny = Histories()
    async with following_nanny(nanny, processes) as kept:
        await kept.until(lambda: kept.polls > 0)
        nanny.breaks = 1
        for service in ("mail", "web"):
            nanny.tell(service, "stopped")
        await kept.until(lambda: "web: stopped" in kept.rows)
        assert sorted(kept.rows) == ["mail: stopped", "web: stopped"]


async def test_entries_of_a_leader_whose_clock_is_behind_are_recorded() -> None:
    nanny = Histories()
    async with following_nanny(nanny, 1) as kept:
        nanny.tell("web", "started", _NOW_MS + 60_000)
        await kept.until(lambda: len(kept.rows) == 1)
        nanny.tell("web", "paused", _NOW_MS - 60_000)
        nanny.tell("web", "resumed", _NOW_MS - 59_000)
        await kept.until(lambda: len(kept.rows) > 1)
        assert kept.rows == ["web: started", "web: paused", "web: resumed"]
        assert not kept.gaps


async def test_a_list_that_dropped_entries_before_they_were_read_is_a_gap() -> None:
    nanny = Histories()
    async with following_nanny(nanny, 1) as kept:
        nanny.tell("web", "started")
        await kept.until(lambda: len(kept.rows) == 1)
        nanny.entries["web"].clear()
        nanny.tell("web", "paused")
        await kept.until(lambda: len(kept.rows) > 1)
        assert kept.rows == ["web: started", "web: paused"]
        assert kept.gaps == ["a list begins after what was read last: entries may be missing"]


class Ledger:
    """A process of the CMS: it says one thing when it is followed, if it leads, and more until `over`.

    Attributes:
        calls, ended: how often it was followed, and that was over.
    """

    def __init__(self, *, leads: bool) -> None:
        self.leads, self.calls, self.ended = leads, 0, 0
        self.over = asyncio.Event()

    def methods(self) -> list[Method]:
        table = ServiceTable("cms.v1.LedgerService")

        async def follow(_request: record_pb2.FollowLedgerRequest, _call: Call) -> AsyncIterator[Answer]:
            self.calls += 1
            try:
                while self.leads and not self.over.is_set():
                    yield MessageAnswer(record_pb2.FollowLedgerResponse())
                    await asyncio.sleep(0.01)
                if not self.leads:
                    await self.over.wait()
            finally:
                self.ended += 1

        return [table.streaming(record_pb2.FollowLedgerRequest, follow, READ, SHOWN)]


@asynccontextmanager
async def following_cms() -> AsyncIterator[tuple[Ledger, Ledger, Kept]]:
    """Beside the process that leads there is one that does not answer."""
    leader, stuck = Ledger(leads=True), Ledger(leads=False)
    async with AsyncExitStack() as stack:
        addresses = [await stack.enter_async_context(serving(one.methods())) for one in (leader, stuck)]
        kept = await stack.enter_async_context(following(CmsSource(ServerProcesses(addresses))))
        await kept.until(lambda: kept.polls > 0)
        yield leader, stuck, kept


async def test_a_new_day_begins_at_the_process_that_was_followed_the_day_before() -> None:
    """All others were once asked first: one that did not answer took 15 s, of which nothing was recorded."""
    async with following_cms() as (leader, stuck, kept):
        kept.time_ms += DAY_MS
        await kept.until(lambda: leader.calls == 2)
        assert (stuck.calls, kept.gaps) == (0, [])


async def test_a_gap_begins_when_the_stream_ends_and_not_once_the_others_did_not_answer_either() -> None:
    async with following_cms() as (leader, stuck, kept):
        leader.over.set()
        await kept.until(lambda: len(kept.gaps) > 0)
        assert kept.gaps == ["the CMS cannot be followed: it ended the stream"]
        assert stuck.ended == 0


class _Told(CmsSource):
    """Its stream says something at the very moment at which whoever follows is told to stop."""

    def _call(self, _channel: aio.Channel, _metadata: Any) -> Any:
        task = asyncio.current_task()
        assert task is not None
        return _Stream(task)


class _Stream:
    def __init__(self, follower: asyncio.Task[Any]) -> None:
        self._follower = follower

    async def __aiter__(self) -> AsyncIterator[record_pb2.FollowLedgerResponse]:
        yield record_pb2.FollowLedgerResponse()
        self._follower.cancel()
        while True:
            yield record_pb2.FollowLedgerResponse()
            await asyncio.sleep(0.01)

    def cancel(self) -> None:
        pass


async def test_a_source_that_is_told_to_stop_as_an_answer_arrives_does() -> None:
    task = asyncio.create_task(_Told(ServerProcesses(["127.0.0.1:9"])).run(Kept(), 0))
    done, _ = await asyncio.wait({task}, timeout=_PATIENCE_S)
    assert done
    assert task.cancelled()
