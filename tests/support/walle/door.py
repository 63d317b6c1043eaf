"""Doors before real counterparts: each meets one call of one host, and does to it what a test ordered.

`before`: the caller dies, the call is lost. `after`: the call takes effect, the caller dies before it hears so.
`fail`: an error is answered instead. `stall`: nothing is answered, and the call is lost.
"""

from __future__ import annotations

import http.client
import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

STALL_S = 4.0


@dataclass
class Door:
    """What is met, and what passed.

    Attributes:
        kill: ends the caller.
        wanted: by action and host, what to do to the first such call.
        met: those that were met.
        passed: action and host of every call that took effect.
        look: told of each call that is about to take effect.
    """

    kill: Callable[[], None] = lambda: None
    wanted: dict[tuple[str, str], str] = field(default_factory=dict)
    met: list[tuple[str, str]] = field(default_factory=list)
    passed: list[tuple[str, str]] = field(default_factory=list)
    look: Callable[[str, str], None] = lambda action, host: None
    url: str = ""
    _hosts: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def meet(self, action: str, host: str) -> str:
        """What happens to this call; empty: it passes."""
        with self._lock:
            what = self.wanted.pop((action, host), "")
            if what:
                self.met.append((action, host))
            if what in ("", "after"):
                self.look(action, host)
                self.passed.append((action, host))
        return what

    def named(self, method: str, path: str, body: bytes) -> tuple[str, str]:
        """Action and host of a call of a CMS or a management controller; empty: it is let through unseen."""
        parts = urlsplit(path)
        if "Actions/ComputerSystem.Reset" in parts.path:
            return "reset", parts.path.split("/Systems/")[1].split("/")[0]
        _, tasks, task = parts.path.partition("/tasks")
        task_id = task.strip("/").removesuffix("/confirm")
        if not tasks or method == "GET":
            return "", ""
        if method == "DELETE":
            return "delete", self._hosts.get(task_id, "")
        if task.endswith("/confirm"):
            return "confirm", self._hosts.get(task_id, "")
        asked = json.loads(body)
        self._hosts[asked["id"]] = asked["hosts"][0]
        return ("dry run" if "dry_run" in parts.query else "create"), asked["hosts"][0]


class _HttpServer(ThreadingHTTPServer):
    def __init__(self, upstream: str, door: Door) -> None:
        self.target, self.door, self.gone = urlsplit(upstream), door, threading.Event()
        super().__init__(("127.0.0.1", 0), _HttpHandler)


class _HttpHandler(BaseHTTPRequestHandler):
    server: _HttpServer

    def _pass(self) -> None:
        door, body = self.server.door, self.rfile.read(int(self.headers.get("content-length") or 0))
        action, host = door.named(self.command, self.path, body)
        what = door.meet(action, host) if action else ""
        if what == "fail":
            self.send_error(503)
        if what == "stall":
            self.server.gone.wait(STALL_S)
        if what in ("", "after"):
            self._forward(body, answers=not what)
        if what in ("before", "after"):
            door.kill()
        self.close_connection = True

    def _forward(self, body: bytes, *, answers: bool) -> None:
        target = self.server.target
        connection = http.client.HTTPConnection(target.hostname or "", target.port or 0, timeout=20)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")}
        connection.request(self.command, target.path + self.path, body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        if answers:
            with suppress(OSError):  # the caller may be dead by now
                self.send_response(response.status)
                self.send_header("content-type", response.headers.get("content-type", "application/json"))
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _pass  # noqa: N815 - the names are the library's

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet."""


@contextmanager
def http_door(upstream: str, door: Door) -> Iterator[Door]:
    """A door before an HTTP server."""
    server = _HttpServer(upstream, door)
    with _served(server) as port:
        door.url = f"http://127.0.0.1:{port}"
        yield door
        server.gone.set()


@contextmanager
def dns_door(port: int, host_of: Callable[[bytes], str], door: Door) -> Iterator[int]:
    """A door before a name server's TCP port: meets updates, lets questions through. Yields its own port."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            (length,) = struct.unpack("!H", self.rfile.read(2))
            message = self.rfile.read(length)
            is_update = (message[2] >> 3) & 15 == 5
            what = door.meet("update", host_of(message)) if is_update else ""
            if what != "before":
                answer = self._forward(message)
                if not what:
                    self.wfile.write(struct.pack("!H", len(answer)) + answer)
            if what:
                door.kill()

        def _forward(self, message: bytes) -> bytes:
            with socket.create_connection(("127.0.0.1", port), 5) as upstream:
                upstream.sendall(struct.pack("!H", len(message)) + message)
                answers = upstream.makefile("rb")
                (length,) = struct.unpack("!H", answers.read(2))
                return answers.read(length)

    with _served(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as own:
        yield own


@contextmanager
def _served(server: socketserver.ThreadingTCPServer | ThreadingHTTPServer) -> Iterator[int]:
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
