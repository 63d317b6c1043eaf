"""A watch that writes down what it was told (recording.py)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

from hq.memory.query import Query
from hq.registry.registry import Registry
from hq.registry.source import Source
from hq.registry.watch_messages import WatchMessage
from hqpb.v1 import service_pb2 as pb
from tests.checker import marks
from tests.checker.history import OK, Op, Seen, Watched
from tests.support.recording import Diary, filter_of


class Watch:
    """One watch through all its streams. `open` again goes on from the last token, or from an older version's."""

    def __init__(self, diary: Diary, name: str, wanted: dict[str, str]) -> None:
        self._diary, self.name, self._wanted = diary, name, wanted
        self._stream = self._pushes = 0
        self._token = ""
        self._version: int | None = None
        self._epoch = ""
        self._task: asyncio.Task[None] | None = None
        self._bookmark = asyncio.Event()

    async def open(self, registry: Registry) -> None:
        """At another replica; what was open ends."""
        await self.close()
        self._stream += 1
        opened = Watched(self.name, "OPENED", resumed_from=self._version, epoch=self._epoch)
        self._note(registry, opened)
        self._task = asyncio.create_task(self._follow(registry, self._token))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def bookmarked(self) -> None:
        """Return when the next bookmark has come."""
        self._bookmark.clear()
        await self._bookmark.wait()

    async def _follow(self, registry: Registry, token: str) -> None:
        def push(payload: bytes) -> bool:  # a reader that lags refuses; this one every third time
            self._pushes += 1
            if is_taken := self._pushes % 3 > 0:
                told = pb.WatchInstancesResponse.FromString(payload)
                epoch, version = told.sources[0].epoch, told.sources[0].version
                source = Source("", "", epoch, version, 0, stale=False, error="", quarantined=())
                self._saw(registry, WatchMessage(told.kind, source, [], told.resume_token))
            return is_taken

        query = Query(filter_of(self._wanted))
        async with aclosing(registry.watches.watch(query, token, push=push)) as messages:
            async for message in messages:
                self._saw(registry, message)

    def _saw(self, registry: Registry, message: WatchMessage) -> None:
        kind = pb.WatchKind.Name(message.kind).removeprefix("WATCH_KIND_")
        events: tuple[Seen, ...] = ()
        if message.events:
            decoded = pb.WatchInstancesResponse.FromString(b"".join(message.events))
            events = tuple(map(marks.seen_of, decoded.events))
        if kind == "BOOKMARK":
            self._bookmark.set()
        source = message.source
        self._note(
            registry,
            Watched(
                self.name,
                kind,
                source.version,
                source.epoch,
                token=bool(message.token),
                events=events,
                collapsed=message.collapsed,
                reason=message.reason,
            ),
        )
        if kind == "RESYNC":
            self._token, self._version = "", None
        elif message.token:
            self._token, self._version, self._epoch = message.token, source.version, source.epoch

    def _note(self, registry: Registry, message: Watched) -> None:
        at = self._diary.now_ns()
        message = replace(message, stream=self._stream, replica=registry.replica.config.replica, wanted=self._wanted)
        self._diary.events.append(Op(self._diary.number(), self.name, "watch", at, at, OK, watch=message))
