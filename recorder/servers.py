"""The CMS, Nanny and Wall-E, followed: what they say becomes rows and chunks of the record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import grpc
from grpc import aio

from cmspb.v1 import record_pb2, record_stubs
from hqclient import Credentials
from hqclient.links import insecure_channel
from nannypb.v1 import service_pb2 as npb
from nannypb.v1 import service_stubs as nanny_stubs
from recorder.decided import DecisionRow, ObservedLedger, nanny_rows, repair_rows, switching_rows
from recorder.decision_tables import LedgerChunk
from wallepb.v1 import service_pb2 as wpb
from wallepb.v1 import service_stubs as walle_stubs

log = logging.getLogger(__name__)

DAY_MS: Final = 86_400_000
_RETRY_S: Final = 2.0
_SILENT_S: Final = 15.0  # the CMS says at least every 5 s that nothing was missed
_CALL_S: Final = 10.0
_POLL_S: Final = 5.0
_HOSTS_S: Final = 30.0
T = TypeVar("T")


class ServerFeed(Protocol):
    """Where what a server said goes."""

    def now_ms(self) -> int:
        """Now, never earlier than before."""
        ...

    def add_decisions(self, server: str, rows: Sequence[DecisionRow], chunks: Sequence[LedgerChunk] = ()) -> bool:
        """Record these; the server is known up to now. False: nothing is recorded now, begin anew later."""
        ...

    def lose_server(self, server: str, reason: str) -> None:
        """Nothing is heard from it."""
        ...


class ServerSource(Protocol):
    """A server that is followed."""

    server: str

    async def run(self, feed: ServerFeed, newest_ms: int) -> None:
        """Until cancelled. `newest_ms`: when the newest decision on record is from; 0: there is none."""
        ...


class ServerProcesses:
    """Channels to all processes of one server."""

    def __init__(self, addresses: Sequence[str], credentials: Credentials | None = None) -> None:
        self._addresses = addresses
        self._open = credentials.channel if credentials is not None else insecure_channel
        self.metadata: Callable[[], Any] = credentials.metadata if credentials is not None else tuple

    async def channels(self, stack: AsyncExitStack) -> list[aio.Channel]:
        """A channel to each, as long as the stack is open."""
        return [await stack.enter_async_context(self._open(address)) for address in self._addresses]


class CmsSource:
    """The ledger of the CMS, from the process that leads."""

    server = "cms"

    def __init__(self, processes: ServerProcesses) -> None:
        self._processes, self._observed = processes, ObservedLedger()

    async def run(self, feed: ServerFeed, newest_ms: int) -> None:  # a beginning says all there is
        async with AsyncExitStack() as stack:
            channels = await self._processes.channels(stack)
            while True:
                reasons = [await self._follow(channel, feed) for channel in channels]
                if not all(reasons):
                    continue  # a day ended
                feed.lose_server(self.server, next((one for one in reasons if "does not lead" not in one), reasons[0]))
                await asyncio.sleep(_RETRY_S)  # what is missed meanwhile is behind a gap

    async def _follow(self, channel: aio.Channel, feed: ServerFeed) -> str:
        """Follow one process; return why that ended, empty: a day did, and each day begins with all there is."""
        call = record_stubs.LedgerServiceStub(channel).FollowLedger(
            record_pb2.FollowLedgerRequest(), metadata=tuple(self._processes.metadata())
        )
        day = feed.now_ms() // DAY_MS
        try:
            async for entries in _answers(call):
                if not self._take(entries, feed):
                    return "the record is not written"
                if feed.now_ms() // DAY_MS != day:
                    return ""
        except aio.AioRpcError as error:
            return f"the CMS cannot be followed: {error.details()}"
        except TimeoutError:
            return "the CMS cannot be followed: it is silent"
        finally:
            call.cancel()
        return "the CMS cannot be followed: it ended the stream"

    def _take(self, entries: Sequence[record_pb2.LedgerEntry], feed: ServerFeed) -> bool:
        now_ms = feed.now_ms()
        rows = [row for entry in entries for row in self._observed.apply(entry, now_ms)]
        return feed.add_decisions(self.server, rows, [LedgerChunk.of(now_ms, entries)] if entries else [])


async def _answers(call: Any) -> AsyncIterator[Sequence[record_pb2.LedgerEntry]]:
    stream = aiter(call)
    while True:
        try:
            answer = await asyncio.wait_for(anext(stream), _SILENT_S)
        except StopAsyncIteration:
            return
        yield answer.entry


class PolledSource:
    """A server that keeps its own lists of what was done: they are read again and again."""

    def __init__(self, server: str, processes: ServerProcesses, every_s: float = _POLL_S) -> None:
        self.server, self._processes, self._every_s = server, processes, every_s
        self._newest: dict[str, int] = {}  # by what has a list: when its newest entry here is from
        self._versions: dict[str, int] = {}

    async def run(self, feed: ServerFeed, newest_ms: int) -> None:
        since_ms = newest_ms or feed.now_ms()
        async with AsyncExitStack() as stack:
            channels = await self._processes.channels(stack)
            while True:
                before = dict(self._newest), dict(self._versions)
                try:
                    rows = await _first(channels, lambda channel: self._poll(channel, since_ms))
                    if not feed.add_decisions(self.server, rows):
                        self._newest, self._versions = before
                except (aio.AioRpcError, TimeoutError) as error:
                    why = error.details() if isinstance(error, aio.AioRpcError) else "it does not answer in time"
                    feed.lose_server(self.server, f"{self.server} cannot be followed: {why}")
                await asyncio.sleep(self._every_s)

    async def _poll(self, channel: aio.Channel, since_ms: int) -> list[DecisionRow]:
        """What is new."""
        raise NotImplementedError

    async def _ask(self, method: Any, request: Any) -> Any:
        return await method(request, timeout=_CALL_S, metadata=tuple(self._processes.metadata()))


class NannySource(PolledSource):
    """What was ordered of Nanny, and what it did, by the history of each service that has changed."""

    def __init__(self, processes: ServerProcesses, every_s: float = _POLL_S) -> None:
        super().__init__("nanny", processes, every_s)

    async def _poll(self, channel: aio.Channel, since_ms: int) -> list[DecisionRow]:
        stub, rows = nanny_stubs.NannyServiceStub(channel), []
        request, is_more = npb.ListServicesRequest(), True
        while is_more:
            page = await self._ask(stub.ListServices, request)
            for service in page.service:
                if self._versions.get(service.id) != service.version:
                    rows += await self._history(stub, service.id, since_ms)
                    self._versions[service.id] = service.version
            request.page_token, is_more = page.next_page_token, bool(page.next_page_token)
        return rows

    async def _history(self, stub: nanny_stubs.NannyServiceStub, service: str, since_ms: int) -> list[DecisionRow]:
        answer = await self._ask(stub.ListHistory, npb.ListHistoryRequest(service_id=service))
        found = nanny_rows(service, answer.entry, self._newest.get(service, since_ms))
        self._newest[service] = max((row.at_ms for row in found), default=self._newest.get(service, since_ms))
        return found


class WalleSource(PolledSource):
    """What switched the fuses of Wall-E, and how operations on hosts ended."""

    def __init__(self, processes: ServerProcesses, every_s: float = _HOSTS_S) -> None:
        super().__init__("walle", processes, every_s)

    async def _poll(self, channel: aio.Channel, since_ms: int) -> list[DecisionRow]:
        stub = walle_stubs.WalleServiceStub(channel)
        settings = await self._ask(stub.GetSettings, wpb.GetSettingsRequest())
        projects = (await self._ask(stub.ListProjects, wpb.ListProjectsRequest())).projects
        hosts = (await self._ask(stub.ListHosts, wpb.ListHostsRequest())).hosts
        owners: Mapping[str, Iterable[str]] = {one.project.id: one.project.owners for one in projects}
        rows = self._newer("", partial(switching_rows, None, settings.fuse), since_ms)
        for one in projects:
            newer = partial(switching_rows, one.project, one.fuse)
            rows += self._newer(f"project {one.project.id}", newer, since_ms)
        for each in hosts:
            newer = partial(repair_rows, each.host, owners.get(each.host.project, ()))
            rows += self._newer(each.host.name, newer, since_ms)
        return rows

    def _newer(self, key: str, rows_since: Callable[[int], list[DecisionRow]], since_ms: int) -> list[DecisionRow]:
        found = rows_since(self._newest.get(key, since_ms))
        if found:
            self._newest[key] = max(row.at_ms for row in found)
        return found


async def _first(channels: Sequence[aio.Channel], ask: Callable[[aio.Channel], Awaitable[T]]) -> T:
    """The answer of the first process that gives one. Raises AioRpcError, TimeoutError."""
    for channel in channels[:-1]:
        try:
            return await ask(channel)
        except aio.AioRpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise
    return await ask(channels[-1])
