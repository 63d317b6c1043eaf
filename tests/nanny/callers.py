"""Callers of a service: they follow discovery, keep their connections open, and retry nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from hqclient import Discovery
from hqclient.discovery.service import Service

SERVER: Final = """
import os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
served, lock = 0, threading.Lock()
class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global served
        if self.path == "/":
            with lock: served += 1
        body = (str(served) if self.path == "/served" else sys.argv[1]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
    def setup(self):
        super().setup()
        self.connection.setsockopt(6, 1, 1)
ThreadingHTTPServer((os.environ["HQ_HOST"], int(os.environ["HQ_PORT_HTTP"])), Answer).serve_forever()
"""
"""An HTTP server with connections that stay open, which dies at once of SIGTERM; it answers its first argument, and at
`/served` how many requests for `/` came."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: web\r\n\r\n"
_TIMEOUT_S: Final = 5.0


class Callers:
    """So many callers, each with one connection to each endpoint.

    Attributes:
        answers: how many requests were answered, by body.
        failures: what came instead of an answer.
        connections: how many were opened.
    """

    def __init__(self, gateway: str, service: str, *, count: int = 8, pause_s: float = 0.0) -> None:
        self._gateway, self._service = gateway, service
        self._count, self._pause_s = count, pause_s
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []
        self.connections = 0

    async def run(self) -> None:
        """Call until cancelled."""
        async with Discovery([self._gateway]).service(self._service, port="http") as service:
            await service.ready(30.0)
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._count):
                    tasks.create_task(self._caller(service))

    async def _caller(self, service: Service) -> None:
        kept: dict[tuple[object, ...], Connection] = {}
        try:
            while True:
                endpoint = service.pick()
                known = {one.identity for one in service.endpoints}
                for gone in kept.keys() - known:
                    kept.pop(gone)[1].close()
                try:
                    async with asyncio.timeout(_TIMEOUT_S):
                        if endpoint.identity not in kept:
                            kept[endpoint.identity] = await asyncio.open_connection(endpoint.host, endpoint.port)
                            self.connections += 1
                        self.answers[await _call(*kept[endpoint.identity])] += 1
                except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
                    self.failures.append(f"{endpoint.instance_id} {endpoint.revision}: {error!r}")
                    if (broken := kept.pop(endpoint.identity, None)) is not None:
                        broken[1].close()
                await asyncio.sleep(self._pause_s)
        finally:
            for _, writer in kept.values():
                writer.close()


async def _call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """One request; the body of its answer."""
    writer.write(_REQUEST)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
    if " 200 " not in status:
        raise ValueError(status)
    return (await reader.readexactly(length)).decode()
