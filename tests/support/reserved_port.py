"""A port that stays one's own while nobody listens on it: a server that stops and starts again finds it free."""

from __future__ import annotations

import os
import socket
import weakref


class KeptPort:
    """A free port of 127.0.0.1, which the system gives to nobody else as long as this object lives.

    Connections are refused until a server listens on it that sets SO_REUSEADDR, as gRPC's and asyncio's do.

    Attributes:
        number: of the port.
    """

    def __init__(self) -> None:
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        self.number: int = held.getsockname()[1]
        weakref.finalize(self, os.close, held.detach())


_KEPT: list[KeptPort] = []


def kept_ports() -> tuple[int, int]:
    """Two ports for a process that a test stops and starts again: nobody else gets them until all tests are done."""
    both = KeptPort(), KeptPort()
    _KEPT.extend(both)
    return both[0].number, both[1].number


def kept_addresses() -> tuple[str, ...]:
    """Flags for a replica, of which another one started with the same flags takes the place."""
    grpc, http = kept_ports()
    return "--grpc", f"127.0.0.1:{grpc}", "--http", f"127.0.0.1:{http}"
