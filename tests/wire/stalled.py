"""Readers that ask for much and take little or nothing, and what the machine holds for them meanwhile."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from hqpb.v1 import service_pb2
from serving.encoding.envelopes import envelope
from serving.h2 import frames, hpack
from serving.limiting.limits import KIB, MIB
from tests.wire.fake_table import GET, WATCH
from tests.wire.raw_http import post

DRIP_BYTES_PER_S: Final = 200
ADDRESSES: Final = ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")
_DRIP_S: Final = 0.25
_SAMPLE_S: Final = 0.1
_CALLS: Final = 4  # of each reader of answers

BIG: Final = service_pb2.GetInstanceRequest(id=f"big:{MIB}")
ENDLESS: Final = service_pb2.WatchInstancesRequest(resume_token="endless")


class Kind(NamedTuple):
    """What a reader asks for, over which HTTP, and whether it drips. `windows`: it is HTTP/2's that stay shut."""

    http: int
    streams: bool
    drips: bool
    windows: bool = False

    def __str__(self) -> str:
        what = "a stream" if self.streams else "large answers"
        how = "dripping" if self.drips else "stalled"
        return f"{how} on {what} over HTTP/{self.http}{' by its windows' if self.windows else ''}"


KINDS: Final = [
    *[Kind(http, streams, drips) for http in (1, 2) for streams in (False, True) for drips in (False, True)],
    Kind(2, streams=False, drips=False, windows=True),
    Kind(2, streams=True, drips=False, windows=True),
]


def asking(kind: Kind) -> bytes:
    """What it says, all at once."""
    if kind.http == 1:
        if kind.streams:
            body = envelope(0, b'{"resumeToken":"endless"}')
            return post(body, f"/{WATCH}", content_type="application/connect+json")
        return _CALLS * post(json.dumps({"id": BIG.id}).encode())
    wide = {} if kind.windows else {frames.INITIAL_WINDOW_SIZE: frames.MAX_WINDOW}
    opened = b"" if kind.windows else frames.window_update(0, 1 << 30)
    path, message = (WATCH, ENDLESS) if kind.streams else (GET, BIG)
    calls = [_grpc(2 * i + 1, path, message.SerializeToString()) for i in range(_CALLS)]
    return frames.PREFACE + frames.settings(wide) + opened + b"".join(calls)


def _grpc(stream_id: int, path: str, message: bytes) -> bytes:
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/" + path.encode()), (b":authority", b"x")]
    block = hpack.encode([*fields, (b"te", b"trailers"), (b"content-type", b"application/grpc")])
    head = frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block)
    return head + frames.frame(frames.DATA, frames.END_STREAM, stream_id, envelope(0, message))


class Reader:
    """One connection, which stays open on this side whatever the server does."""

    def __init__(self, kind: Kind, address: str) -> None:
        self.kind = kind
        self._sock = socket.socket()
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        self._sock.setblocking(False)
        self._sock.bind((address, 0))
        self._dripping: asyncio.Task[None] | None = None

    async def ask(self, port: int) -> None:
        """Connect, ask, and take next to nothing from then on."""
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._sock, ("127.0.0.1", port))
        await loop.sock_sendall(self._sock, asking(self.kind))
        if self.kind.drips:
            self._dripping = asyncio.create_task(self._drip())

    async def _drip(self) -> None:
        try:
            while self._sock.recv(int(DRIP_BYTES_PER_S * _DRIP_S)):
                await asyncio.sleep(_DRIP_S)
        except BlockingIOError:
            await asyncio.sleep(_DRIP_S)
        except OSError:
            return

    async def takes_rest(self) -> int:
        """Read as fast as can be until nothing comes for half a second; how many bytes."""
        if self._dripping is not None:
            self._dripping.cancel()
        loop, taken = asyncio.get_running_loop(), 0
        try:
            while True:
                async with asyncio.timeout(0.5):
                    part = await loop.sock_recv(self._sock, MIB)
                taken += len(part)
                if not part or taken > 8 * MIB:
                    return taken
        except (TimeoutError, ConnectionError):
            return taken

    def close(self) -> None:
        if self._dripping is not None:
            self._dripping.cancel()
        self._sock.close()


class Held(NamedTuple):
    """Bytes at one moment, or the most of many: of the process, and of the system's queues of unsent bytes.

    `orphans`: of these, on connections that the server has closed already.
    """

    rss: int
    kernel: int
    orphans: int


def held(process: psutil.Process, port: int) -> Held:
    """What is held now by and for a server."""
    kernel = orphans = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues, *_ = line.split()
        if int(local.partition(":")[2], 16) == port:
            unsent = int(queues.partition(":")[0], 16)
            kernel += unsent
            orphans += unsent if state != "01" else 0
    return Held(process.memory_info().rss, kernel, orphans)


class Watcher:
    """Looks ten times a second how much is held. `most`: of each, beyond what the process held at the beginning."""

    def __init__(self, process: psutil.Process, port: int) -> None:
        self._process, self._port = process, port
        self._before = held(process, port).rss
        self.most = Held(0, 0, 0)
        self.most_together = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        task = asyncio.create_task(self._watch())
        try:
            yield
            assert not task.done(), task
        finally:
            task.cancel()

    async def _watch(self) -> None:
        while True:
            now = await asyncio.to_thread(held, self._process, self._port)
            grown = now._replace(rss=now.rss - self._before)
            self.most = Held(*map(max, self.most, grown))
            self.most_together = max(self.most_together, grown.rss + grown.kernel)
            await asyncio.sleep(_SAMPLE_S)

    def __str__(self) -> str:
        mib = [f"{name} {value / MIB:.1f} MiB" for name, value in self.most._asdict().items()]
        return f"{', '.join(mib)}; RSS and kernel together {self.most_together / MIB:.1f} MiB"
