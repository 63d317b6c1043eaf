"""Accepts connections of a TLS listener: they count from here on, not only once they have shaken hands."""

from __future__ import annotations

import asyncio
import logging
import socket
from ssl import SSLContext
from typing import Any, Final

from serving.sockets import set_tcp
from serving.transport.arrival import Arrival, peer_of
from serving.transport.connection import SURPLUS_S, Core
from serving.transport.exchange import Peer

log = logging.getLogger(__name__)

_PER_TURN: Final = 4  # connections taken before others have their turn (decision 063)
_MAX_SURPLUS: Final = 256  # beyond the limits that may still shake hands to be told so; more are closed at once
_RETRY_S: Final = 1.0  # after accepting failed, say for want of file descriptors


class TlsAcceptor:
    """Takes connections from a listening socket, counts them, and hands those that have shaken hands to an Arrival."""

    def __init__(self, core: Core, listening: socket.socket, tls: SSLContext) -> None:
        self._core, self._listening, self._tls = core, listening, tls
        self._handshakes: set[asyncio.Task[None]] = set()
        self._surplus = 0
        self._retry: asyncio.TimerHandle | None = None
        self._resume()

    def close(self) -> None:
        """Take no more, and break off what shakes hands. The socket is left to whoever made it."""
        if self._retry is not None:
            self._retry.cancel()
        self._core.loop.remove_reader(self._listening)
        for handshake in self._handshakes:
            handshake.cancel()

    def _resume(self) -> None:
        self._retry = None
        self._core.loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(_PER_TURN):
            try:
                sock, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("cannot accept connections, retrying in %g s: %s", _RETRY_S, error)
                self._core.loop.remove_reader(self._listening)
                self._retry = self._core.loop.call_later(_RETRY_S, self._resume)
                return
            self._take(sock, address)

    def _take(self, sock: socket.socket, address: Any) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            set_tcp(sock, TCP_NODELAY=1)
        peer = peer_of(sock, address)
        surplus = self._core.open_connection(peer)
        if surplus and self._surplus >= _MAX_SURPLUS:
            self._core.admission.refused[surplus] += 1
            sock.close()
            return
        self._surplus += bool(surplus)
        handshake = self._core.loop.create_task(self._shake_hands(sock, peer, surplus), name="TLS handshake")
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, sock: socket.socket, peer: Peer, surplus: str) -> None:
        core = self._core
        arrival = Arrival(core, (peer, surplus))
        patience_s = SURPLUS_S if surplus else core.limits.slow_request_s
        try:
            await core.loop.connect_accepted_socket(
                lambda: arrival, sock, ssl=self._tls, ssl_handshake_timeout=patience_s
            )
        except OSError:  # the peer left, spoke something else, was refused by TLS, or took too long
            sock.close()
        finally:
            self._surplus -= bool(surplus)
            if not surplus and not arrival.is_made:
                core.close_connection(peer)
