"""The console as a process: its pages over one transport, started and stopped in order."""

from __future__ import annotations

import asyncio
import secrets
import time

from console.app import App
from console.backends.servers import Servers
from console.pages.routes import routes
from console.site.rendering import Templates
from console.site.sealing import Seal
from console.site.shield import Shield
from console.site.visits import Routes
from serving.context import ServerContext, process_metrics
from serving.listeners import Addresses, Transports


class ConsoleHealth:
    """The console keeps nothing: if it answers at all, it is live and ready."""

    leaving = False

    def live(self) -> bool:
        return True

    def has_loaded(self) -> bool:
        return not self.leaving

    def staleness_s(self) -> float | None:
        return 0.0

    def doubt(self) -> str:
        return ""

    def why(self) -> str:
        return "shutting down" if self.leaving else ""


class ConsoleServer:
    """`serve` runs until `stop` is called."""

    def __init__(
        self,
        servers: Servers,
        shared: ServerContext,
        http: str,
        key: bytes,
        *,
        public_url: str = "",
        grace_s: float = 2.0,
        is_open: bool = True,
    ) -> None:
        """`key`: the key that seals sessions.

        `is_open`: visitors who are not signed in see what the servers show to anybody.
        """
        self._servers, self._health, self._public_url = servers, ConsoleHealth(), public_url
        templates = Templates({"parts": servers.parts(), "is_open": is_open, "fresh_id": lambda: secrets.token_hex(8)})
        self.app = App(Routes(routes(servers, is_open=is_open)), templates, Seal(key), time.time, is_open=is_open)
        self._is_tls = shared.security is not None and shared.security.tls is not None
        addresses = Addresses(http, http, allowed_hosts=("*",), env="HQ_CONSOLE_")  # the Shield checks names
        metrics = process_metrics(shared)
        self._transports = Transports((), self._health, shared, metrics, addresses, grace_s, site=self.app)
        self.listening = self._transports.listening

    def stop(self) -> None:
        """Begin to shut down."""
        self._transports.stop()

    async def serve(self) -> None:
        """Listen and answer until stopped. Raises OSError if the address cannot be bound."""
        try:
            await self._transports.serve(self._work(), self._leave)
        finally:
            await self._servers.close()

    async def _work(self) -> None:
        where = await asyncio.shield(self.listening)
        self.app.shield = Shield(where.http, self._public_url, is_tls=self._is_tls)
        await asyncio.Event().wait()

    def _leave(self) -> None:
        self._health.leaving = True
