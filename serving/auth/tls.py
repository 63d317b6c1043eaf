"""TLS of the servers, 1.2 or newer. Certificates are read again when their files change; open connections stay."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from cryptography import x509

from serving.auth.watched_files import BadSecurity, WatchedFiles
from serving.clock import Clock

_NO_PASSWORD: Final = ""  # without it, an encrypted key would be asked for at the terminal


class Pair(NamedTuple):
    """A certificate (with its chain) and its key that belong together."""

    chain: bytes
    key: bytes
    expires_at: float


NewestContext = Callable[[], ssl.SSLContext]


class ServerTls:
    """Credentials of all listeners from one certificate; `client_ca` signs the certificates of clients.

    Attributes:
        files: to be read again now and then.
        client_ca: the CAs for certificates of clients (PEM); None: there are none.
    """

    def __init__(self, cert: Path, key: Path, client_ca: Path | None, clock: Clock) -> None:
        """Raises BadSecurity."""
        self._pair = WatchedFiles("tls-cert", (cert, key), _reader(cert, key, clock))
        self.client_ca = WatchedFiles("client-ca", (client_ca,), _authority) if client_ca else None
        self.files: list[WatchedFiles[Any]] = [self._pair, *([self.client_ca] if self.client_ca else [])]

    @property
    def expires_at(self) -> float:
        """When the certificate in force expires, Unix time in seconds."""
        return self._pair.current.expires_at

    def listening(self, *, require_clients: bool = False) -> NewestContext:
        """Returns the context for the next connection of one listener that speaks HTTP/2 and HTTP/1.1.

        Clients' certificates are asked for if there is a CA for them; they are optional, or required.
        """
        context: ssl.SSLContext | None = None
        made_of: tuple[object, object] = None, None

        def newest() -> ssl.SSLContext:
            # Replaced, not changed: sessions that a former bundle let in, by ticket or by id, end with its context.
            nonlocal context, made_of
            state = self._state()
            if context is None or state != made_of:
                context, made_of = (
                    self._create_context(ssl.CERT_REQUIRED if require_clients else ssl.CERT_OPTIONAL),
                    state,
                )
            return context

        return newest

    def _create_context(self, clients: ssl.VerifyMode) -> ssl.SSLContext:
        """A context of what is in force. `clients`: whether they must show certificates, if there is a CA for these."""
        context, pair = _context(), self._pair.current
        context.set_alpn_protocols(["h2", "http/1.1"])
        context.options |= ssl.OP_NO_RENEGOTIATION
        with _as_file(pair.chain + b"\n" + pair.key) as path:
            context.load_cert_chain(path, password=_NO_PASSWORD)
        if self.client_ca is not None:
            context.verify_mode = clients
            context.load_verify_locations(cadata=self.client_ca.current.decode())
            # A resumed connection would keep the identity of an earlier one, whose certificate nobody verifies again.
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        return context

    def _state(self) -> tuple[object, object]:
        return self._pair.current, self.client_ca.current if self.client_ca else None


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _reader(cert: Path, key: Path, clock: Clock) -> Callable[[Sequence[bytes]], Pair]:
    def read_pair(contents: Sequence[bytes]) -> Pair:
        expires_at = _check_time(contents[0], clock.wall_ms() / 1000)
        try:
            _context().load_cert_chain(cert, key, password=_NO_PASSWORD)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise BadSecurity(f"the certificate and key do not match or are invalid: {error}") from error
        try:
            now = cert.read_bytes(), key.read_bytes()
        except OSError:
            now = b"", b""
        if now != tuple(contents):
            raise BadSecurity("the files changed while being read")
        return Pair(contents[0], contents[1], expires_at)

    return read_pair


def _check_time(chain: bytes, now_s: float) -> float:
    """When the first certificate expires. Raises BadSecurity: it has already, or there is none."""
    try:
        leaf = x509.load_pem_x509_certificate(chain)
    except ValueError as error:
        raise BadSecurity("it contains no PEM certificate") from error
    expires_at = leaf.not_valid_after_utc.timestamp()
    if expires_at <= now_s:
        raise BadSecurity(f"the certificate expired at {datetime.fromtimestamp(expires_at, UTC):%Y-%m-%d %H:%M} UTC")
    return expires_at


@contextmanager
def _as_file(contents: bytes) -> Iterator[str]:
    """A path for OpenSSL, which reads keys only from files; the bytes stay in memory if the system can do that."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("tls"), "wb") as file:
            file.write(contents)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(contents)
            file.flush()
            yield file.name


def _authority(contents: Sequence[bytes]) -> bytes:
    try:
        x509.load_pem_x509_certificates(contents[0])
    except ValueError as error:
        raise BadSecurity("it contains no PEM certificate") from error
    return contents[0]
