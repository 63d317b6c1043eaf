"""A CMS of others: v1.0 to v1.4 over HTTP, with verdicts that tests choose, and bad manners on order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.walle.fake_redfish import QuietServer


@dataclass
class FakeCms:
    """A CMS over HTTP that answers as it is told.

    Attributes:
        verdict: of tasks that are created from now on.
        dry_verdict: of dry runs.
        provisional: tasks that are granted wait for a confirmation.
        confirm_verdict: what a confirmation comes to.
        raw: answered instead of everything, as (status, body).
        stalls: never answers.
        calls: method and path of each.
    """

    url: str = ""
    verdict: str = "ok"
    dry_verdict: str = "ok"
    provisional: bool = False
    confirm_verdict: str = "ok"
    message: str = "because"
    raw: tuple[int, bytes] | None = None
    stalls: bool = False
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def answer(self, method: str, path: str, query: str, body: dict[str, Any]) -> tuple[int, Any]:
        _, _, task_path = path.partition("/tasks")
        task_id, _, action = unquote(task_path.strip("/")).partition("/")
        if not task_id:
            return (200, {"result": list(self.tasks.values())}) if method == "GET" else self._create(query, body)
        if task_id not in self.tasks:
            return 404, {"message": f"task {task_id} does not exist"}
        task = self.tasks[task_id]
        if method == "DELETE":
            return 200, self.tasks.pop(task_id)
        if action == "confirm":
            task["status"] = self.confirm_verdict
            task["details"] = {"provisional": False}
            return (200 if self.confirm_verdict == "ok" else 409), task
        return 200, task

    def _create(self, query: str, body: dict[str, Any]) -> tuple[int, Any]:
        is_dry = parse_qs(query).get("dry_run") == ["true"]
        verdict = self.dry_verdict if is_dry else self.verdict
        task = {"id": body["id"], "hosts": body["hosts"], "status": verdict, "message": self.message}
        if self.provisional and verdict == "ok":
            task["details"] = {"provisional": True}
        if is_dry:
            return 200, task
        self.bodies.append(body)
        return 200, self.tasks.setdefault(body["id"], task)

    def decide(self, verdict: str, message: str = "because") -> None:
        """On all tasks that there are."""
        for task in self.tasks.values():
            task["status"], task["message"] = verdict, message


@contextmanager
def fake_cms(**manners: Any) -> Iterator[FakeCms]:
    """A CMS on a free port."""
    cms = FakeCms(**manners)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            parts = urlsplit(self.path)
            cms.calls.append((self.command, parts.path))
            cms.tokens.append(self.headers.get("authorization", ""))
            if cms.stalls:
                cms.released.wait(30)
            status, answer = cms.raw or cms.answer(self.command, parts.path, parts.query, body)
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the names are the library's

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    cms.url = f"http://127.0.0.1:{server.server_port}/cms"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield cms
    finally:
        cms.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
