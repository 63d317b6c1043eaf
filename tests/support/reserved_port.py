"""Reserves a port for a server that stops and starts again: nobody else gets it meanwhile."""

from __future__ import annotations

import os
import random
import socket
import weakref
from pathlib import Path


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


def quiet_port() -> int:
    """A port of 127.0.0.1, UDP and TCP, that the system gives to nobody by itself: free again after a restart."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_000, first_given)
        try:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(type=kind) as tried:
                    tried.bind(("127.0.0.1", port))
        except OSError:
            continue
        return port
