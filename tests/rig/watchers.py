"""Watchers: one stream after the other, each at another replica, going on from the last token that they were given."""

from __future__ import annotations

import asyncio
import random

import grpc

from hqpb.v1 import service_pb2 as pb
from hqpb.v1 import service_stubs
from tests.checker.history import Watched
from tests.checker.marks import seen_of
from tests.rig.recording import Log
from tests.rig.trust import Trust

_SILENCE_S = 12.0  # bookmarks come every five seconds


class RigWatcher:
    """One watch through all its streams. It tells what the wire tells, unlike the library, which smoothes it."""

    def __init__(
        self,
        name: str,
        addresses: list[str],
        trust: Trust,
        log: Log,
        wanted: dict[str, str],
        rng: random.Random,
        stay_s: float,
    ) -> None:
        self._name, self._addresses, self._log, self._rng, self._stay_s = name, addresses, log, rng, stay_s
        self._trust = trust
        self._wanted = wanted
        self._filter = pb.InstanceFilter(**{field: [value] for field, value in wanted.items()})  # type: ignore[arg-type]
        self._token, self._token_version, self._stream = "", 0, 0

    async def run(self) -> None:
        """Watch for ever, moving on after about `stay_s` seconds."""
        while True:
            address = self._rng.choice(self._addresses)
            async with self._trust.channel(address) as channel:
                try:
                    async with asyncio.timeout(self._rng.uniform(0, 2 * self._stay_s)):
                        await self._follow(channel)
                except (TimeoutError, grpc.aio.AioRpcError):
                    pass
            await asyncio.sleep(0.2)

    async def _follow(self, channel: grpc.aio.Channel) -> None:
        request = pb.WatchInstancesRequest(filter=self._filter, resume_token=self._token)
        call = service_stubs.InstanceServiceStub(channel).WatchInstances(request)
        self._stream += 1
        resumed_from = self._token_version if self._token else None
        self._tell("OPENED", pb.WatchInstancesResponse(), resumed_from)
        try:
            while True:
                async with asyncio.timeout(_SILENCE_S):
                    message = await call.read()
                if not isinstance(message, pb.WatchInstancesResponse):
                    return
                self._take(message, resumed_from)
        finally:
            call.cancel()

    def _take(self, message: pb.WatchInstancesResponse, resumed_from: int | None) -> None:
        self._tell(pb.WatchKind.Name(message.kind).removeprefix("WATCH_KIND_"), message, resumed_from)
        if message.kind == pb.WATCH_KIND_RESYNC:
            self._token = ""
        if message.resume_token:
            self._token, self._token_version = message.resume_token, message.sources[0].version

    def _tell(self, kind: str, message: pb.WatchInstancesResponse, resumed_from: int | None) -> None:
        source = message.sources[0] if message.sources else pb.Source()
        self._log.watched(
            self._name,
            Watched(
                id=self._name,
                kind=kind,
                version=source.version,
                epoch=source.epoch,
                stream=self._stream,
                token=bool(message.resume_token),
                events=tuple(seen_of(event) for event in message.events),
                resumed_from=resumed_from,
                replica=source.replica,
                collapsed=message.collapsed,
                reason=message.reason,
                wanted=self._wanted,
            ),
        )
