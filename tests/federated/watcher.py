"""A watch of a gateway, followed as a client has to: each location has a continuity of its own."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from hqpb.v1 import service_pb2 as pb


class Watcher:
    """What a watch has shown: `known` by cluster and id; who was lost, doubled or out of order raises at once."""

    def __init__(self, stub: Any, token: str = "", before: Watcher | None = None) -> None:
        self.known: dict[str, dict[str, int]] = {c: dict(k) for c, k in before.known.items()} if before else {}
        self.version: dict[str, int] = dict(before.version) if before else {}
        self.synced: set[str] = set()
        self.token = token
        self.kinds: defaultdict[str, list[str]] = defaultdict(list)
        self.trouble: dict[str, str] = {}
        self.shown: list[tuple[str, str, int]] = list(before.shown) if before else []
        self.error: BaseException | None = None
        self._opened = False
        self._call = stub.WatchInstances(pb.WatchInstancesRequest(resume_token=token))
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            async for message in self._call:
                self._take(message)
        except Exception as error:
            self.error = error

    def _take(self, message: pb.WatchInstancesResponse) -> None:
        for source in message.sources:
            self.trouble[source.cluster] = source.error
        if not self._opened:
            assert message.kind == pb.WATCH_KIND_BOOKMARK
            self._opened = True
            return
        assert len(message.sources) == 1
        cluster = message.sources[0].cluster
        if message.kind != pb.WATCH_KIND_BOOKMARK:  # they come by the clock
            self.kinds[cluster].append(pb.WatchKind.Name(message.kind).removeprefix("WATCH_KIND_"))
        if message.kind == pb.WATCH_KIND_RESYNC:
            self.known.pop(cluster, None)
            self.version.pop(cluster, None)
            self.synced.discard(cluster)
        if message.kind == pb.WATCH_KIND_SYNCED:
            self.synced.add(cluster)
        is_snapshot = message.kind == pb.WATCH_KIND_SNAPSHOT
        for event in message.events:
            self._event(cluster, event, is_snapshot)
        is_resync = message.kind == pb.WATCH_KIND_RESYNC
        self.token = message.resume_token if is_resync else message.resume_token or self.token

    def _event(self, cluster: str, event: pb.WatchEvent, is_snapshot: bool) -> None:
        known = self.known.setdefault(cluster, {})
        if not is_snapshot:
            assert event.version >= self.version.get(cluster, 0), "out of order"
            self.version[cluster] = event.version
        if event.HasField("put"):
            assert event.put.meta.cluster == cluster
            if not is_snapshot:
                self.shown.append((cluster, event.put.meta.id, event.version))
            known[event.put.meta.id] = event.put.meta.version
        else:
            self.shown.append((cluster, event.delete.id, event.version))
            known.pop(event.delete.id, None)

    async def end(self) -> None:
        self._call.cancel()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
