"""What etcd itself says: a process that watches and reads it and shares no code with HQ but the generated stubs.

    python -m tests.rig.witness OUT.jsonl.gz PREFIX LIFE SEEN ENDPOINT...

It writes every revision after SEEN as etcd sends it (0: after a first reading of everything under the prefix), and says
"at REVISION" on its standard output as it goes. The word "end" on its standard input makes it read everything once
more, wait until the watch has passed that point, and leave. What etcd sent twice or out of order is dropped and noted.
Exit code 3: history was compacted before it was seen.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import sys
import time
from typing import Any, TextIO

import grpc
from aetcd import rpc

_SILENCE_S = 4.0  # replicas put fences every few seconds
_QUIET_S = 3.0
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
COMPACTED = 3


class Compacted(Exception):
    """etcd gave up history that was not seen."""


class Witness:
    """Follows the prefix over any member that answers."""

    def __init__(self, out: TextIO, prefix: bytes, history: int, endpoints: list[str]) -> None:
        self._out, self._prefix, self._history = out, prefix, history
        self._end = prefix[:-1] + bytes((prefix[-1] + 1,))
        self._channels = [grpc.aio.insecure_channel(endpoint, options=_OPTIONS) for endpoint in endpoints]
        self._current = 0
        self._pending: list[list[Any]] = []
        self._pending_at = 0
        self.seen = self.newest = 0
        self.is_open = False
        self.moved = asyncio.Event()

    async def list(self, name: str) -> int:
        """Write all records as they are now; return the revision of the reading."""
        while True:
            try:
                request = rpc.RangeRequest(key=self._prefix, range_end=self._end)
                answer = await rpc.KVStub(self._channels[self._current]).Range(request, timeout=5.0)
            except grpc.aio.AioRpcError:
                self._leave()
                await asyncio.sleep(0.1)
                continue
            events = [_put(kv) for kv in answer.kvs]
            self.newest = max((kv.mod_revision for kv in answer.kvs), default=0)
            self._write({"raw": True, name: True, "revision": answer.header.revision, "events": events})
            return int(answer.header.revision)

    async def follow(self) -> None:
        """Write revisions for ever. Raises Compacted."""
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError, TimeoutError, asyncio.InvalidStateError):
                await self._stream()
            self._pending, self._pending_at = [], 0
            self._leave()
            await asyncio.sleep(0.1)

    async def passed(self, head: int, following: asyncio.Task[None]) -> None:
        """Return when everything up to `head` was seen: a later revision, or nothing more although the watch stands.

        What moved the head may lie outside the prefix, or nobody may be left who writes.
        """
        quiet_since, before = time.monotonic(), self.seen
        while self.seen <= head and not following.done():
            await asyncio.sleep(0.05)
            if self.seen != before or not self.is_open:
                quiet_since, before = time.monotonic(), self.seen
            if self.seen >= self.newest and time.monotonic() - quiet_since > _QUIET_S:
                return

    async def _stream(self) -> None:
        call = rpc.WatchStub(self._channels[self._current]).Watch(metadata=(("hasleader", "true"),))
        try:
            create = rpc.WatchCreateRequest(
                key=self._prefix, range_end=self._end, start_revision=self.seen + 1, fragment=True
            )
            async with asyncio.timeout(_SILENCE_S):
                await call.write(rpc.WatchRequest(create_request=create))
            while True:
                async with asyncio.timeout(_SILENCE_S):
                    answer = await call.read()
                if answer is grpc.aio.EOF:
                    return
                if answer.canceled:
                    if answer.compact_revision:
                        raise Compacted(f"compacted at {answer.compact_revision}, seen up to {self.seen}")
                    return
                self.is_open = True
                self._take(answer)
        finally:
            self.is_open = False
            call.cancel()

    def _take(self, answer: Any) -> None:
        """Revisions may come in fragments: one is complete when a later one begins, or with the last fragment."""
        for event in answer.events:
            revision = event.kv.mod_revision
            if revision <= self.seen or revision < self._pending_at:
                self._write({"raw_anomaly": "replayed", "revision": revision, "seen": self.seen})
                continue
            if revision > self._pending_at:
                self._complete()
            self._pending_at = revision
            self._pending.append(_put(event.kv) if event.type == 0 else _delete(event.kv))
        if not answer.fragment:
            self._complete()

    def _complete(self) -> None:
        if self._pending:
            self._write({"raw": True, "revision": self._pending_at, "events": self._pending})
            self.seen = self._pending_at
            self.moved.set()
        self._pending, self._pending_at = [], 0

    def _write(self, event: dict[str, Any]) -> None:
        line = {**event, "life": self._history, "seen_ns": time.monotonic_ns()}
        self._out.write(json.dumps(line, separators=(",", ":")) + "\n")

    def _leave(self) -> None:
        self._current = (self._current + 1) % len(self._channels)

    async def tell(self) -> None:
        """Say how far it is, a few times a second."""
        while True:
            await self.moved.wait()
            self.moved.clear()
            print(f"at {self.seen}", flush=True)
            await asyncio.sleep(0.2)


def _put(kv: Any) -> list[Any]:
    return ["put", kv.key.decode(), kv.mod_revision, kv.create_revision, base64.b64encode(kv.value).decode()]


def _delete(kv: Any) -> list[Any]:
    return ["delete", kv.key.decode(), kv.mod_revision, 0, None]


async def _until_told() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    if await reader.readline() != b"end\n":
        raise SystemExit(1)  # the rig is gone


async def _main(path: str, prefix: str, history: int, seen: int, endpoints: list[str]) -> None:
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as out:
        witness = Witness(out, prefix.encode(), history, endpoints)
        witness.seen = seen or await witness.list("listing")
        witness.moved.set()
        working = [asyncio.create_task(witness.follow()), asyncio.create_task(witness.tell())]
        told = asyncio.create_task(_until_told())
        await asyncio.wait((working[0], told), return_when=asyncio.FIRST_COMPLETED)
        if working[0].done():
            working[0].result()
        told.result()
        head = await witness.list("final")
        await witness.passed(head, working[0])
        for task in working:
            task.cancel()
        for result in await asyncio.gather(*working, return_exceptions=True):
            if isinstance(result, Compacted):
                raise result


def main() -> None:
    path, prefix, history, seen, *endpoints = sys.argv[1:]
    try:
        asyncio.run(_main(path, prefix, int(history), int(seen), endpoints))
    except* Compacted as lost:
        print(f"witness: {lost.exceptions[0]}", file=sys.stderr, flush=True)
        sys.exit(COMPACTED)


if __name__ == "__main__":
    main()
