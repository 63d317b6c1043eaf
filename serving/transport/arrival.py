"""Connections that have just come: handshakes, who is at the other end, and which HTTP they speak."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, cast

from serving.h2.frames import PREFACE
from serving.limiting.peers import Peer, peer_of
from serving.sockets import set_tcp
from serving.transport.connection import SURPLUS_S, Core, ServerConnection
from serving.transport.h1_side import H1Side
from serving.transport.h2_side import Http2Connection

log = logging.getLogger(__name__)

_PER_TURN: Final = 4  # connections taken before others have their turn (decision 063)
_MAX_SURPLUS = 256  # connections over the limits that may shake hands; more are closed. Not Final: a test sets it
_DER: Final = 2  # _ssl.ENCODING_DER
_RETRY_S: Final = 1.0  # after accepting failed, say for want of file descriptors


class Arrival(asyncio.Protocol):
    """A connection until it is known which HTTP it speaks."""

    def __init__(self, core: Core, peer: Peer, surplus: str) -> None:
        """`surplus`: the limit that the connection is beyond; empty: none, it was counted in."""
        self._core, self._peer, self._surplus = core, peer, surplus
        self._begun = b""
        self._is_counted = not surplus
        self.is_made = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop's are, but do not say so
        # Written at once, and paused as soon as anything is left, so that what waits is known; TLS pauses from 1 on.
        secure = transport.get_extra_info("ssl_object")
        transport.set_write_buffer_limits(high=1 if secure else 0, low=0)
        self.is_made = True
        self._core.arrivals.add(transport)
        if secure is not None:
            self._peer = self._peer._replace(certificate=_certificate(secure), is_secure=True)
        patience_s = SURPLUS_S if self._surplus else self._core.limits.slow_request_s
        self._timer = self._core.loop.call_later(patience_s, self._core.turns.wait, self._late)
        if secure is not None and secure.selected_alpn_protocol() == "h2":
            self._begin(is_h2=True)

    def data_received(self, data: bytes) -> None:
        begun = self._begun = self._begun + data
        if len(begun) >= len(PREFACE) or not PREFACE.startswith(begun):
            self._begin(is_h2=begun.startswith(PREFACE))

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._core.arrivals.discard(self._transport)
        if self._is_counted:
            self._core.close_connection(self._peer)

    def _late(self) -> None:
        connection = self._begin(is_h2=False)
        if connection is not None and self._surplus:
            connection.turn_away(self._surplus)

    def _begin(self, *, is_h2: bool) -> ServerConnection | None:
        self._timer.cancel()
        self._core.arrivals.discard(self._transport)
        if self._transport.is_closing():
            return None
        side: type[ServerConnection] = Http2Connection if is_h2 else H1Side
        connection = side(self._core, self._transport, self._peer, self._surplus)
        self._is_counted = False
        self._transport.set_protocol(cast("asyncio.Protocol", connection))
        connection.data_received(self._begun)
        return connection


def _certificate(secure: Any) -> bytes:
    """The certificate that the client showed, and which CA verified it; empty: it showed none."""
    der = secure.getpeercert(True)
    if not der:
        return b""
    from serving.auth.certificates import VERIFIED_BY, fingerprint  # 9 MB, for servers that take certificates

    pem = ssl.DER_cert_to_PEM_cert(der).encode()
    try:  # up to Python 3.12 only the object inside tells; a resumed session has no chain
        chain = getattr(secure, "_sslobj", secure).get_verified_chain()
    except (AttributeError, ssl.SSLError):
        return pem
    return pem + VERIFIED_BY + fingerprint(chain[-1].public_bytes(_DER)).encode() if chain else pem


class Acceptor:
    """Accepts connections, few at a time, counts them, and hands each to an Arrival; with TLS after the handshake."""

    def __init__(self, core: Core, listening: socket.socket, tls: Callable[[], ssl.SSLContext] | None) -> None:
        """`tls`: gives the context for each connection; None: plain text."""
        self._core, self._listening, self._tls = core, listening, tls
        self._handshakes: dict[asyncio.Task[None], Arrival] = {}
        self._surplus = 0
        self._retry: asyncio.TimerHandle | None = None
        self._resume()

    def close(self) -> None:
        """Take no more connections, and break off handshakes. The socket is left to whoever made it."""
        if self._retry is not None:
            self._retry.cancel()
        self._core.loop.remove_reader(self._listening)
        for handshake, arrival in self._handshakes.items():
            if self._tls is not None and not arrival.is_made:  # else uvloop ends it without a word
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
        arrival = Arrival(self._core, peer, surplus)
        shaking = self._shake_hands(sock, peer, surplus, arrival)
        handshake = self._core.loop.create_task(shaking, name="handshake")
        self._handshakes[handshake] = arrival
        handshake.add_done_callback(self._handshakes.pop)

    async def _shake_hands(self, sock: socket.socket, peer: Peer, surplus: str, arrival: Arrival) -> None:
        core, connect = self._core, self._core.loop.connect_accepted_socket
        patience_s = None if self._tls is None else SURPLUS_S if surplus else core.limits.slow_request_s
        try:
            context = None if self._tls is None else self._tls()
            await connect(lambda: arrival, sock, ssl=context, ssl_handshake_timeout=patience_s)
        except OSError:  # the peer left, spoke something else, was refused by TLS, or took too long
            sock.close()
        finally:
            self._surplus -= bool(surplus)
            if not surplus and not arrival.is_made:
                core.close_connection(peer)
