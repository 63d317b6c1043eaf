"""Sockets that listen, and whether an address can be reached from this machine only."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final

_TCP_PROBE_AFTER_S: Final = 60  # of silence; finds streams whose client vanished without a word
_UNSENT_BYTES: Final = 128 * 1024  # how much unsent data the system takes: the rest waits with us


def is_loopback(address: str) -> bool:
    """Whether host:port, or unix:PATH, can be reached from this machine only."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, whatever it begins with
        return False


def address_fault(address: str, *, is_own: bool = False) -> str:
    """Find the fault of a host:port (or unix:PATH), with what to write instead; empty: none. `is_own`: to listen on."""
    if address.startswith("unix:"):
        return ""
    if "://" in address:
        return "give HOST:PORT, without a scheme"
    host, _, port = address.rpartition(":")
    free = ", port 0 for a free one" if is_own else ""
    if not (host or is_own) or address.endswith("]"):
        return f"names no port: write HOST:PORT{free}"
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        return "is not HOST:PORT: write an IPv6 address in brackets, e.g. [::1]:7071"
    if not port.isdecimal() or not (0 if is_own else 1) <= int(port) < 65_536:
        return f"{port!r} is not a valid port: write HOST:PORT{free}, e.g. 127.0.0.1:7071"
    return ""


async def bind_socket(address: str, *, reuse_port: bool, send_buffer_bytes: int = 0) -> socket.socket:
    """A socket bound to host:port, whose connections find out when the other machine is gone.

    With `send_buffer_bytes` the system holds no more than that for each of them. Raises OSError.
    """
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    name = host.strip("[]") or None
    found = await loop.getaddrinfo(name, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, where = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # Accepted sockets inherit all of these.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        set_tcp(listening, TCP_KEEPIDLE=_TCP_PROBE_AFTER_S)
        if send_buffer_bytes:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
            set_tcp(listening, TCP_NOTSENT_LOWAT=_UNSENT_BYTES)
        listening.bind(where)
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
    listening.setblocking(False)
    return listening


def bind_unix_socket(path: str) -> socket.socket:
    """A socket bound to a path. Raises OSError."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(path)
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"cannot listen on unix:{path}: {error.strerror}") from error
    listening.setblocking(False)
    return listening


def probe(sock: socket.socket | None, patience_s: float) -> None:
    """Let the system, too, find out when the other machine of a connection has been gone for `patience_s`."""
    if sock is not None and sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        probes = {"TCP_KEEPIDLE": patience_s, "TCP_KEEPINTVL": patience_s / 4, "TCP_USER_TIMEOUT": 1_000 * patience_s}
        set_tcp(sock, **{name: max(1, round(value)) for name, value in probes.items()})


def set_tcp(sock: socket.socket, **options: int) -> None:
    """Set these options of TCP, as far as the system has them."""
    for name, value in options.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
