"""The one place that knows how our server is made: a table of methods, perhaps TLS, a port."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from serving.calls.incoming import RequestIds
from serving.calls.methods import Method
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.transport.server import Server


class TlsFiles(NamedTuple):
    """PEM files of the server; with `client_ca`, clients must show a certificate of it."""

    cert: Path
    key: Path
    client_ca: Path | None = None


class _Healthy:
    """A process without troubles."""

    def live(self) -> bool:
        return True

    def has_loaded(self) -> bool:
        return True

    def staleness_s(self) -> float | None:
        return 0.0

    def doubt(self) -> str:
        return ""

    def why(self) -> str:
        return ""


async def listening(methods: Sequence[Method], tls: TlsFiles | None, limits: Limits) -> tuple[Server, int]:
    """A server that serves these methods on a free port of 127.0.0.1, and the port."""
    shared = ServerContext(limits, SystemClock(), RequestIds("judge"))
    server = Server(methods, _Healthy(), shared, registry=CollectorRegistry(), pages={})
    context = _context(tls) if tls is not None else None
    return server, await server.listen("127.0.0.1:0", tls=None if context is None else lambda: context)


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    if files.client_ca is not None:
        context.load_verify_locations(files.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the judge's certificate is its own authority
    return context
