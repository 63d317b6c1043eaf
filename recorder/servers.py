"""The CMS, Nanny and Wall-E, followed: what they say becomes rows and chunks of the record."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import takewhile
from typing import Any, Final, Protocol, TypeVar

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio

from cmspb.v1 import record_pb2, record_stubs
from hqclient import Credentials
from hqclient.errors import decode
from hqclient.pages import ask_pages
from nannypb.v1 import service_pb2 as npb
from nannypb.v1 import service_stubs as nanny_stubs
from recorder.decided import DecisionRow, ObservedLedger, nanny_rows, repair_rows, switching_rows
from recorder.decision_tables import LedgerChunk
from wallepb.v1 import host_pb2
from wallepb.v1 import service_pb2 as wpb
from wallepb.v1 import service_stubs as walle_stubs

log = logging.getLogger(__name__)

DAY_MS: Final = 86_400_000
_RETRY_S: Final = 2.0
_SILENT_S: Final = 15.0  # a stream says at least every 5 s that nothing was missed
_CALL_S: Final = 10.0
_POLL_S: Final = 5.0
_HOSTS_S: Final = 30.0
_NAMES: Final = {"cms": "the CMS", "walle-fuses": "fuses of Wall-E"}
T = TypeVar("T")


class ServerFeed(Protocol):
    """Takes what is heard from servers."""

    def now_ms(self) -> int:
        """Now, never earlier than before."""
        ...

    def add_decisions(self, server: str, rows: Sequence[DecisionRow], chunks: Sequence[LedgerChunk] = ()) -> bool:
        """Record these; the server is known up to now. False: nothing is recorded now, start over later."""
        ...

    def lose_server(self, server: str, reason: str) -> None:
        """Note that nothing is heard from a server."""
        ...


class ServerSource(Protocol):
    """A server that is followed. `flag`: the recorder's flag that says where the server is."""

    server: str
    flag: str

    async def run(self, feed: ServerFeed, newest_ms: int) -> None:
        """Follow until cancelled. `newest_ms`: when its newest decision on record is from; 0: there is none."""
        ...


class ServerProcesses:
    """Channels to all processes of one server."""

    def __init__(self, addresses: Sequence[str], credentials: Credentials | None = None) -> None:
        self._credentials = credentials or Credentials()
        self.metadata: Callable[[], Any] = self._credentials.metadata
        self._addresses = addresses

    async def channels(self, stack: AsyncExitStack) -> dict[str, aio.Channel]:
        """A channel to each process, by its address, as long as the stack is open."""
        open_channel = self._credentials.channel
        return {address: await stack.enter_async_context(open_channel(address)) for address in self._addresses}

    async def why_failed(self, address: str, error: aio.AioRpcError) -> str:
        """Why a call to one of the processes failed."""
        return (await self._credentials.explain(decode(error, address))).message


class StreamedSource:
    """A server that streams all it knows, then what changes; followed at the first of its processes that does."""

    server = ""
    flag = ""

    def __init__(self, processes: ServerProcesses) -> None:
        self._processes = processes

    def _call(self, channel: aio.Channel, metadata: Any) -> Any:
        """The stream of one process."""
        raise NotImplementedError

    def _record_of(self, entries: Sequence[Any], now_ms: int) -> tuple[list[DecisionRow], LedgerChunk]:
        """Make of entries the rows and the chunk that are recorded."""
        raise NotImplementedError

    async def run(self, feed: ServerFeed, newest_ms: int) -> None:  # each stream begins with all there is
        async with AsyncExitStack() as stack:
            channels = await self._processes.channels(stack)
            while True:
                reasons = []
                for address, channel in channels.items():
                    while not (reason := await self._follow(address, channel, feed)):
                        pass  # a day ended: the next one begins at once, with the same process
                    reasons.append(reason)
                feed.lose_server(self.server, next((one for one in reasons if "does not lead" not in one), reasons[0]))
                await asyncio.sleep(_RETRY_S)  # what is missed meanwhile is behind a gap

    async def _follow(self, address: str, channel: aio.Channel, feed: ServerFeed) -> str:
        """Follow one process; return why that ended; empty: the day did, and a new stream begins with all there is."""
        call = self._call(channel, tuple(self._processes.metadata()))
        day, is_heard, why = feed.now_ms() // DAY_MS, False, "it ended the stream"
        try:
            async for entries in _answers(call):
                if not self._take(entries, feed):
                    return "the record is not written"
                is_heard = True
                if feed.now_ms() // DAY_MS != day:
                    return ""
        except aio.AioRpcError as error:
            why = await self._processes.why_failed(address, error)
        except TimeoutError:
            why = "it is silent"
        finally:
            call.cancel()
        reason = f"{_NAMES[self.server]} cannot be followed: {why}"
        if is_heard:
            feed.lose_server(self.server, reason)  # before the others are asked, which may not answer
        return reason

    def _take(self, entries: Sequence[Any], feed: ServerFeed) -> bool:
        if not entries:
            return feed.add_decisions(self.server, [])
        rows, chunk = self._record_of(entries, feed.now_ms())
        return feed.add_decisions(self.server, rows, [chunk])


class CmsSource(StreamedSource):
    """The ledger of the CMS, from the process that leads."""

    server = flag = "cms"

    def __init__(self, processes: ServerProcesses) -> None:
        super().__init__(processes)
        self._observed = ObservedLedger()

    def _call(self, channel: aio.Channel, metadata: Any) -> Any:
        stub = record_stubs.LedgerServiceStub(channel)
        return stub.FollowLedger(record_pb2.FollowLedgerRequest(), metadata=metadata)

    def _record_of(self, entries: Sequence[Any], now_ms: int) -> tuple[list[DecisionRow], LedgerChunk]:
        rows = [row for entry in entries for row in self._observed.apply(entry, now_ms)]
        return rows, LedgerChunk.of(now_ms, entries)


class FusesSource(StreamedSource):
    """The fuses and limits of Wall-E, from any process."""

    server, flag = "walle-fuses", "walle"

    def _call(self, channel: aio.Channel, metadata: Any) -> Any:
        return walle_stubs.WalleServiceStub(channel).FollowFuses(wpb.FollowFusesRequest(), metadata=metadata)

    def _record_of(self, entries: Sequence[Any], now_ms: int) -> tuple[list[DecisionRow], LedgerChunk]:
        return [], LedgerChunk.of_fuses(now_ms, entries)


async def _answers(call: Any) -> AsyncIterator[Sequence[Any]]:
    stream = aiter(call)
    while True:
        try:
            async with asyncio.timeout(_SILENT_S):
                answer = await anext(stream)
        except StopAsyncIteration:
            return
        yield answer.entry


class PolledSource:
    """A server that keeps its own lists of what was done: they are read again and again."""

    def __init__(self, server: str, processes: ServerProcesses, every_s: float = _POLL_S) -> None:
        self.server = self.flag = server
        self._processes, self._every_s = processes, every_s
        self._newest: dict[str, bytes] = {}  # by list: the mark of the newest entry read; empty: the list had none
        self._versions: dict[str, int] = {}
        self._torn = ""

    async def run(self, feed: ServerFeed, newest_ms: int) -> None:
        since_ms = newest_ms or feed.now_ms()
        async with AsyncExitStack() as stack:
            channels = await self._processes.channels(stack)
            while True:
                try:
                    await _first([*channels.values()], lambda channel: self._poll_or_forget(channel, feed, since_ms))
                except (aio.AioRpcError, TimeoutError) as error:
                    why = "it does not answer in time"
                    if isinstance(error, aio.AioRpcError):
                        why = await self._processes.why_failed([*channels][-1], error)
                    feed.lose_server(self.server, f"{self.server} cannot be followed: {why}")
                await asyncio.sleep(self._every_s)

    async def _poll_or_forget(self, channel: aio.Channel, feed: ServerFeed, since_ms: int) -> None:
        """Record what is new. If that fails, the next poll reads the same again."""
        before, self._torn, is_recorded = (dict(self._newest), dict(self._versions)), "", False
        try:
            rows = await self._poll(channel, since_ms)
            if self._torn:
                feed.lose_server(self.server, self._torn)  # a gap that ends at once, with the next line
            is_recorded = feed.add_decisions(self.server, rows)
        finally:
            if not is_recorded:
                self._newest, self._versions = before

    async def _poll(self, channel: aio.Channel, since_ms: int) -> list[DecisionRow]:
        """Return the new rows."""
        raise NotImplementedError

    def _unread(self, key: str, newest_first: Sequence[Any], since_ms: int) -> list[Any]:
        """Entries of a list that were not read before, earliest first.

        The entry that was read last is found by its whole content: its time is by the clock of whoever led then.
        At the first look at a list there is no such entry: those after `since_ms`, by the server's clock, are new.
        """
        before = self._newest.get(key)
        self._newest[key] = _mark(newest_first[0]) if newest_first else b""
        if before is None:
            return [one for one in reversed(newest_first) if _time_ms(one) > since_ms]
        new = list(takewhile(lambda one: _mark(one) != before, newest_first))
        if before and new and len(new) == len(newest_first):
            log.warning("%s: %s: its list begins after what was read last", self.server, key)
            # Without the key: whoever may read of gaps may not know what lists there are.
            self._torn = "a list begins after what was read last: entries may be missing"
        return new[::-1]

    async def _ask(self, method: Any, request: Any) -> Any:
        return await method(request, timeout=_CALL_S, metadata=tuple(self._processes.metadata()))


class NannySource(PolledSource):
    """Orders to Nanny, and what it did, by the history of each service that has changed."""

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
        return nanny_rows(service, self._unread(f"service {service}", answer.entry, since_ms))


class WalleSource(PolledSource):
    """Switchings of Wall-E's fuses, and how operations on hosts ended."""

    def __init__(self, processes: ServerProcesses, every_s: float = _HOSTS_S) -> None:
        super().__init__("walle", processes, every_s)

    async def _poll(self, channel: aio.Channel, since_ms: int) -> list[DecisionRow]:
        stub = walle_stubs.WalleServiceStub(channel)
        settings = await self._ask(stub.GetSettings, wpb.GetSettingsRequest())
        projects = (await ask_pages(partial(self._ask, stub.ListProjects), wpb.ListProjectsRequest())).projects
        hosts = (await ask_pages(partial(self._ask, stub.ListHosts), wpb.ListHostsRequest())).hosts
        owners: Mapping[str, Iterable[str]] = {one.project.id: one.project.owners for one in projects}
        rows = switching_rows(None, self._unread("all projects", settings.fuse.switching, since_ms))
        for one in projects:
            new = self._unread(f"project {one.project.id}", one.fuse.switching, since_ms)
            rows += switching_rows(one.project, new)
        for each in hosts:
            new = self._unread(f"host {each.host.name}", each.host.history, since_ms)
            rows += repair_rows(each.host.name, owners.get(each.host.project, ()), new)
        return rows


def _mark(entry: Any) -> bytes:
    """Return a mark that tells an entry from the others of its list."""
    return hashlib.blake2b(entry.SerializeToString(deterministic=True), digest_size=16).digest()


def _time_ms(entry: Any) -> int:
    time: Timestamp = entry.ended if isinstance(entry, host_pb2.Finished) else entry.time
    return time.ToMilliseconds()


async def _first(channels: Sequence[aio.Channel], ask: Callable[[aio.Channel], Awaitable[T]]) -> T:
    """The answer of the first process that gives one. Raises AioRpcError, TimeoutError."""
    for channel in channels[:-1]:
        try:
            return await ask(channel)
        except aio.AioRpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise
    return await ask(channels[-1])
