"""A gateway as a process: what it follows, and what it serves, started and stopped in order."""

from __future__ import annotations

import asyncio
import math
import secrets
import socket
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import click

from gateways.picture.addresses import Addressing
from gateways.picture.metrics import METRICS, ViewMetricSources
from gateways.picture.picture import EndpointView
from hqclient.discovery import Discovery
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.calls.methods import Method
from serving.clock import Clock
from serving.context import ServerContext, process_metrics
from serving.limiting.limits import Limits
from serving.listeners import Addresses, Transports
from serving.process import run
from serving.sockets import is_loopback
from serving.standard.site import Site
from serving.telemetry.logs import set_up_logs
from serving.telemetry.metrics import Declared, Table

Work = Callable[[], Coroutine[Any, Any, None]]
_CURRENT_S: Final = 2.0


@dataclass(slots=True)
class DiscoveryHealth:
    """The health that /livez, /readyz and grpc.health.v1 report.

    A gateway can serve as soon as there is a list, even from a file: an old answer is better than none.
    """

    picture: EndpointView
    leaving: bool = False

    def live(self) -> bool:
        return True

    def has_loaded(self) -> bool:
        return self.picture.coverage.is_known and not self.leaving

    def staleness_s(self) -> float | None:
        age_s = self.picture.condition.age_s if self.picture.coverage.is_known else math.inf
        return age_s if math.isfinite(age_s) else None

    def doubt(self) -> str:
        return self.picture.condition.doubt if self.picture.coverage.is_known else ""

    def why(self) -> str:
        if self.leaving:
            return "this gateway is shutting down"
        condition = self.picture.condition
        error = f"HQ cannot be followed: {condition.error}" if condition.error else ""
        away = f"no answer from {', '.join(sorted(condition.away))}" if condition.away else ""
        nothing = "" if self.picture.coverage.is_known else "nothing is known about any service yet"
        return "; ".join(filter(None, (nothing, error, away)))


class DiscoveryGateway:
    """A picture with the transports that show it. Made inside the event loop that is to serve.

    `serve` runs until `stop` is called; a part that dies ends it with the error.
    """

    def __init__(
        self,
        kind: str,
        discovery: Discovery,
        services: Iterable[str],
        clock: Clock,
        limits: Limits,
        security: Security | None = None,
        grace_s: float = 5.0,
    ) -> None:
        self.picture = EndpointView()
        self.addressing = Addressing(self.picture.hosts)
        self.health = DiscoveryHealth(self.picture)
        self.clock = clock
        name = f"{socket.gethostname()}-{kind}-{secrets.token_hex(4)}"
        self.context = ServerContext(limits, clock, RequestIds(name), security)
        self.metrics = process_metrics(self.context)
        self.metrics.register(Table(METRICS, ViewMetricSources(self.picture, self.addressing)))
        self._discovery, self._services, self._grace_s = discovery, tuple(services), grace_s
        self._transports: Transports | None = None

    def count(self, metrics: Sequence[Declared[Any]], subject: Any) -> None:
        """Add these metrics."""
        self.metrics.register(Table(metrics, subject))

    def listen(
        self, addresses: Addresses, methods: Sequence[Method] = (), site: Site | None = None
    ) -> asyncio.Future[Addresses]:
        """Add a listener; the future holds its address once it serves."""
        self._transports = Transports(
            methods, self.health, self.context, self.metrics, addresses, self._grace_s, site=site
        )
        return self._transports.listening

    def stop(self) -> None:
        """Begin to shut down."""
        assert self._transports is not None
        self._transports.stop()

    async def serve(self, *beside: Work, leave: Callable[[], None] = lambda: None) -> None:
        """Listen, follow and answer until stopped; `beside` runs meanwhile. Raises OSError."""
        assert self._transports is not None, "listen first"

        def leaving() -> None:
            self.health.leaving = True
            leave()

        async with self._discovery:
            following = asyncio.create_task(self.picture.follow(self._discovery, self._services), name="follow HQ")
            try:
                await self._wait_for_a_current_list(following)
                await self._transports.serve(self._work(following, beside), leaving)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    async def _wait_for_a_current_list(self, following: asyncio.Task[None]) -> None:
        """Wait for HQ before showing a saved list: clients may know newer changes from another gateway.

        If HQ stays away, the saved list is shown.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_CURRENT_S):
                while not following.done() and self.picture.may_become_current:
                    await asyncio.sleep(0.01)

    async def _work(self, following: asyncio.Task[None], beside: Sequence[Work]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_end_with(following))
            for work in beside:
                group.create_task(work())


async def _end_with(task: asyncio.Task[None]) -> None:
    await task


def check_http(given: Mapping[str, Any], *names: str) -> None:
    """Raises UsageError: unauthenticated pages would be reachable from other machines."""
    for name in names:
        if not given["insecure"] and not is_loopback(given[name]):
            raise click.UsageError(
                f"--{name} {given[name]} is reachable from other machines: serve on 127.0.0.1, or give --insecure "
                "if the network itself is protected"
            )


def run_gateway(given: Mapping[str, Any], serve: Work) -> None:
    """Run until told to stop; the exit code is 1 if an address cannot be bound."""
    set_up_logs(given["log_level"], given["log_format"])
    try:
        run(serve)
    except OSError as error:
        click.echo(f"hq-gateway: {error}", err=True)
        sys.exit(1)
