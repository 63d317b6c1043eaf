"""A watch followed in the background, as a plain client without any cleverness would."""

from __future__ import annotations

import asyncio
from typing import Any

from hqpb.v1 import service_pb2 as pb


class Watching:
    """What a watch has shown so far: `known` by id, and every message."""

    def __init__(self, call: Any) -> None:
        self.known: dict[str, Any] = {}
        self.messages: list[pb.WatchInstancesResponse] = []
        self.synced = False
        self.error: BaseException | None = None
        self._call = call
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            async for message in self._call:
                self.messages.append(message)
                self._take(message)
        except Exception as error:
            self.error = error

    def _take(self, message: pb.WatchInstancesResponse) -> None:
        if message.kind == pb.WATCH_KIND_RESYNC:
            self.known.clear()
            self.synced = False
        self.synced = self.synced or message.kind == pb.WATCH_KIND_SYNCED
        for event in message.events:
            if event.HasField("put"):
                self.known[event.put.meta.id] = event.put
            else:
                gone = event.delete if event.HasField("delete") else event.left
                self.known.pop(gone.id, None)

    @property
    def token(self) -> str:
        """The newest resume token."""
        return next((m.resume_token for m in reversed(self.messages) if m.resume_token), "")

    def kinds(self) -> list[int]:
        return [m.kind for m in self.messages]

    def holds(self, ids: set[str]) -> bool:
        """Whether synced, and exactly these instances are known."""
        return self.synced and set(self.known) == ids

    async def end(self) -> None:
        self._call.cancel()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
