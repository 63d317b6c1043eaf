"""The instances that HQ wants on this node, kept by one watch; each supervisor gets its own instance."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection
from contextlib import aclosing
from typing import Final

import grpc

from hqclient.backoff import backoff_limit_s
from hqclient.clock import ClientClock
from hqclient.watch_items import Bookmark, Changes, Resync, SnapshotPart, Synced, WatchItem, WatchProgress
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from instancectl.hostagent.upstream import UpstreamError
from serving.errors import Retry, ServiceError, ShuttingDown

_SILENCE_S: Final = 15.0  # three bookmarks; then the watchers are told
_FIRST_BACKOFF_S: Final = 0.1
_MAX_BACKOFF_S: Final = 10.0
_RENEW_S: Final = 1_800.0  # about so long after a snapshot another one is taken: nothing that was lost stays lost
_MOST_WAITING: Final = 1_000  # messages of one watch
# Resuming with this token brings a snapshot, as only the newest state is kept.
_TOKEN: Final = "host-agent"
_VOID: Final = (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.OUT_OF_RANGE)

Watch = Callable[[bytes], AsyncGenerator[bytes, None]]  # raises UpstreamError


class _SupervisorWatch:
    """One supervisor's watch."""

    def __init__(self, ids: Collection[str]) -> None:
        self.ids = frozenset(ids)
        self.end: ServiceError | None = None
        self._waiting: deque[pb.WatchInstancesResponse] = deque()
        self._arrived = asyncio.Event()

    def push(self, message: pb.WatchInstancesResponse) -> None:
        if self.end is not None:
            return
        if len(self._waiting) >= _MOST_WAITING:
            self.close(Retry("this watch is too far behind: start it again", 0.1))
            return
        self._waiting.append(message)
        self._arrived.set()

    def close(self, error: ServiceError) -> None:
        self.end = error
        self._arrived.set()

    async def next(self) -> pb.WatchInstancesResponse:
        """The next message. Raises ServiceError: the watch ends; TimeoutError: nothing came."""
        async with asyncio.timeout(_SILENCE_S):
            await self._arrived.wait()
        if self.end is not None:
            raise self.end
        message = self._waiting.popleft()
        if not self._waiting:
            self._arrived.clear()
        return message


class NodeInstances:
    """The instances of the node, in memory only: a new host agent fetches them again.

    Attributes:
        trouble: why HQ cannot be watched; empty: it can.
    """

    def __init__(self, node: str, watch: Watch, clock: ClientClock, rng: random.Random) -> None:
        self._node, self._watch, self._clock, self._rng = node, watch, clock, rng
        self._instances: dict[str, instance_pb2.Instance] = {}
        self._building: dict[str, instance_pb2.Instance] | None = {}
        self._sources: tuple[pb.Source, ...] = ()
        self._complete = asyncio.Event()
        self._watchers: set[_SupervisorWatch] = set()
        self._is_closing = False
        self._renew_at = float("inf")
        self._on_change: Callable[[], None] = lambda: None
        self.trouble = "HQ was not reached yet"

    def __len__(self) -> int:
        return len(self._instances)

    @property
    def ids(self) -> frozenset[str] | None:
        """The instances of the node; None: not known yet."""
        return frozenset(self._instances) if self._complete.is_set() else None

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Call `on_change`, which must not fail, when an instance came or went."""
        self._on_change = on_change

    async def run(self) -> None:
        """Follow until cancelled."""
        progress, failures = WatchProgress(), 0
        while True:
            try:
                is_due = False
                async with aclosing(self._stream(progress.resume_token)) as messages:
                    async for message in messages:
                        failures, self.trouble = 0, ""
                        self._take_all(progress.apply_message(message))
                        if is_due := self._clock.now() >= self._renew_at and bool(progress.resume_token):
                            break
                self._take_all(
                    progress.start_over("starting over, to compare with HQ") if is_due else progress.on_stream_end()
                )
            except UpstreamError as failed:
                self._complain(failed)
                is_void = failed.error.code in _VOID and bool(progress.resume_token)
                self._take_all(progress.start_over(str(failed)) if is_void else progress.on_stream_end())
                failures += 1
            limit_s = backoff_limit_s(failures + 1, _FIRST_BACKOFF_S, _MAX_BACKOFF_S)
            await self._clock.sleep(limit_s * self._rng.uniform(0.5, 1.0))

    async def watch(self, ids: Collection[str], *, resumes: bool) -> AsyncIterator[pb.WatchInstancesResponse]:
        """The current instances with these ids, then every change. Raises ServiceError."""
        try:
            async with asyncio.timeout(_SILENCE_S):
                await self._complete.wait()
        except TimeoutError:
            raise Retry(f"HQ cannot be watched: {self.trouble or 'its snapshot takes long'}") from None
        watcher = _SupervisorWatch(ids)
        if resumes:
            watcher.push(
                self._message(pb.WATCH_KIND_RESYNC, reason="the host agent keeps no history: start a new watch")
            )
        self._show(watcher)
        self._watchers.add(watcher)
        if self._is_closing:
            watcher.close(_leaving())
        try:
            while True:
                yield await watcher.next()
        except TimeoutError:
            raise Retry(f"no message from HQ for {_SILENCE_S:g} s: {self.trouble or 'its watch is silent'}") from None
        finally:
            self._watchers.discard(watcher)

    def close(self) -> None:
        """End the supervisors' watches: they reconnect to the next host agent."""
        self._is_closing = True
        for watcher in self._watchers:
            watcher.close(_leaving())

    async def _stream(self, resume_token: str) -> AsyncGenerator[pb.WatchInstancesResponse, None]:
        request = pb.WatchInstancesRequest(filter={"node_name": [self._node]}, resume_token=resume_token)
        async with aclosing(self._watch(request.SerializeToString())) as messages:
            async for message in messages:
                yield pb.WatchInstancesResponse.FromString(message)

    # --- incoming ---

    def _take_all(self, items: list[WatchItem]) -> None:
        for item in items:
            self._take(item)

    def _take(self, item: WatchItem) -> None:
        match item:
            case Resync():
                self._building = {}
            case SnapshotPart():
                if self._building is None:
                    self._building = {}
                self._building.update((instance.meta.id, instance) for instance in item.instances)
            case Synced():
                self._sources = item.sources
                self._on_synced()
            case Changes():
                self._sources = item.sources
                self._apply_changes(item)
            case Bookmark():
                self._sources = item.sources
                self._tell_all(self._message(pb.WATCH_KIND_BOOKMARK))

    def _on_synced(self) -> None:
        if self._building is None:
            return  # the watch was resumed, and nothing was missed
        self._instances, self._building = self._building, None
        self._renew_at = self._clock.now() + _RENEW_S * self._rng.uniform(0.8, 1.2)
        self._complete.set()
        self._tell_all(self._message(pb.WATCH_KIND_RESYNC, reason="the host agent lost continuity"))
        for watcher in self._watchers:
            self._show(watcher)
        self._on_change()

    def _apply_changes(self, changes: Changes) -> None:
        has_changed = False
        for event in changes.events:
            match event.WhichOneof("change"):
                case "put":
                    name = event.put.meta.id
                    has_changed |= name not in self._instances
                    self._instances[name] = event.put
                case "delete" | "left" as kind:
                    name = getattr(event, kind).id
                    has_changed |= self._instances.pop(name, None) is not None
                case _:
                    continue
            message = self._message(pb.WATCH_KIND_EVENTS, [event])
            message.collapsed = changes.collapsed
            for watcher in self._watchers:
                if name in watcher.ids:
                    watcher.push(message)
        if has_changed:
            self._on_change()

    def _show(self, watcher: _SupervisorWatch) -> None:
        """Send a watcher a snapshot."""
        for name in sorted(watcher.ids & self._instances.keys()):
            put = pb.WatchEvent(put=self._instances[name], version=self._instances[name].meta.version)
            watcher.push(self._message(pb.WATCH_KIND_SNAPSHOT, [put]))
        watcher.push(self._message(pb.WATCH_KIND_SYNCED))

    def _tell_all(self, message: pb.WatchInstancesResponse) -> None:
        for watcher in self._watchers:
            watcher.push(message)

    def _message(
        self, kind: pb.WatchKind, events: Collection[pb.WatchEvent] = (), reason: str = ""
    ) -> pb.WatchInstancesResponse:
        token = _TOKEN if kind in (pb.WATCH_KIND_SYNCED, pb.WATCH_KIND_EVENTS, pb.WATCH_KIND_BOOKMARK) else ""
        return pb.WatchInstancesResponse(
            kind=kind, events=events, sources=self._sources, resume_token=token, reason=reason
        )

    def _complain(self, failed: UpstreamError) -> None:
        if self.trouble != str(failed):
            words = "the node's instances cannot be watched (check --server): %s; trying again"
            logging.getLogger(__name__).warning(words, failed)
        self.trouble = str(failed)


def _leaving() -> ServiceError:
    return ShuttingDown("the host agent is stopping: watch again, its successor will answer", 0.2)
