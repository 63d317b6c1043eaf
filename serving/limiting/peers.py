"""Who is at the other end of a connection, and by what name limits count it."""

from __future__ import annotations

import socket
import struct
from typing import Any, Final, NamedTuple

_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid


class Peer(NamedTuple):
    """Who is at the other end of a connection."""

    host: str  # the address without its port, which limits count by
    name: str  # the address with its port, for messages
    certificate: bytes = b""  # in PEM form, verified; empty: none was shown
    is_secure: bool = False
    uid: int = -1  # the user whose process it is, at a Unix socket; -1: not known

    @property
    def is_local(self) -> bool:
        """Whether the peer is at a Unix socket."""
        return self.host.startswith("unix")


def host_of(peer: str) -> str:
    """The address of a peer without its port: a new connection makes no new peer."""
    return address_of(peer.rpartition(":")[0])


def address_of(host: str) -> str:
    """An address in one form, whichever transport it comes from: no brackets, IPv4 as such."""
    return host.strip("[]").removeprefix("::ffff:") if ":" in host else host


def peer_of(sock: socket.socket | None, address: Any) -> Peer:
    """Who is at the other end of a socket, at this address; None: the peer has left already."""
    if sock is not None and sock.family == socket.AF_UNIX:
        if not hasattr(socket, "SO_PEERCRED"):
            return Peer("unix", "unix")
        # The system says whose process it is: each user has limits of their own.
        pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        return Peer(f"unix:uid={uid}", f"unix:uid={uid}:pid={pid}", uid=uid)
    name = address or ("", 0)
    host = address_of(name[0])
    shown = f"[{host}]" if ":" in host else host
    return Peer(host, f"{shown}:{name[1]}")
