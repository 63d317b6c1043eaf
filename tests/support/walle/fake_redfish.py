"""Management controllers of many machines: Redfish as Wall-E uses it, with the time of the last reset."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SYSTEMS = "/redfish/v1/Systems/"
RESET = "/Actions/ComputerSystem.Reset"


@dataclass
class FakeRedfish:
    """Attributes:
    resets: of each machine, when they took effect (monotonic seconds).
    look: told of each reset just before it takes effect.
    dead: machines whose controller answers nothing but an error.
    """

    address: str = ""
    resets: dict[str, list[float]] = field(default_factory=dict)
    look: Callable[[str], None] = lambda machine: None
    dead: set[str] = field(default_factory=set)

    def reset(self, machine: str) -> None:
        self.look(machine)
        self.resets.setdefault(machine, []).append(time.monotonic())

    def shown(self, machine: str) -> dict[str, object]:
        action = {"target": f"{SYSTEMS}{machine}{RESET}", "ResetType@Redfish.AllowableValues": ["ForceRestart"]}
        last = str(self.resets.get(machine, [0.0])[-1])
        return {"PowerState": "On", "LastResetTime": last, "Actions": {"#ComputerSystem.Reset": action}}


class QuietServer(ThreadingHTTPServer):
    """Callers that die or are cut off are what it is there for."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Quiet."""


@contextmanager
def fake_redfish() -> Iterator[FakeRedfish]:
    """Controllers on a free port; every machine that is asked for is there."""
    bmc = FakeRedfish()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            machine, _, action = self.path.removeprefix(SYSTEMS).partition("/")
            is_dead = machine in bmc.dead
            if action and not is_dead:
                bmc.reset(machine)
            content = b"" if action or is_dead else json.dumps(bmc.shown(machine)).encode()
            self.send_response(503 if is_dead else 204 if action else 200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815 - the names are the library's

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    bmc.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield bmc
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
