"""One run of a command: whom to ask, for how long, and how a failure ends the process."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from clients.hqctl.exits import Exit, exit_of, sentence

if TYPE_CHECKING:
    from clients.client import Client, HqApiError

DEFAULT_SERVER = "127.0.0.1:7071"
DEFAULT_PORT = 7071
DEFAULT_TIMEOUT_S = 10.0

F = TypeVar("F", bound=Callable[..., Any])
Work = Callable[["Client"], Awaitable[Exit]]


@dataclass(frozen=True, slots=True)
class Session:
    """Whom to ask and for how long, in seconds per call."""

    servers: tuple[str, ...]
    timeout_s: float

    def run(self, work: Work, *, writing: bool = False) -> NoReturn:
        """Do `work` with a client and end the process with its exit code. A failed call becomes one line."""
        try:
            sys.exit(asyncio.run(self._run(work, writing)))
        except KeyboardInterrupt:
            sys.exit(Exit.INTERRUPTED)

    async def _run(self, work: Work, writing: bool) -> int:
        # Imported here: `hqctl --help` and mistakes on the command line need no gRPC.
        from clients.client import Client, ClientSettings, HqApiError
        from clients.retry import RetrySettings

        # A person waits: three rounds over all replicas, then the truth.
        settings = ClientSettings(retry=RetrySettings(max_rounds=3))
        try:
            async with Client(self.servers, timeout_s=self.timeout_s, settings=settings) as client:
                return int(await work(client))
        except HqApiError as error:
            return int(self.tell(error, writing=writing))

    def tell(self, error: HqApiError, *, writing: bool, subject: str = "") -> Exit:
        """Say on stderr what went wrong; return the exit code for it."""
        prefix = f"{subject}: " if subject else ""
        if not error.sent and len(self.servers) > 1:
            prefix += f"none of {', '.join(self.servers)} answers: "
        complain(prefix + sentence(error, writing=writing))
        return exit_of(error, writing=writing)


def complain(text: str) -> None:
    """Say on stderr what went wrong."""
    click.secho("hqctl: ", fg="red", bold=True, nl=False, err=True, color=colour_of(sys.stderr))
    click.echo(text, err=True)


def warn(text: str) -> None:
    """Say on stderr what to take into account."""
    click.secho("warning: ", fg="yellow", nl=False, err=True, color=colour_of(sys.stderr))
    click.echo(text, err=True)


def colour_of(stream: Any) -> bool:
    """Colours only on a terminal, and not if NO_COLOR is set."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR")


def connected(function: F) -> F:
    """Give a command --server and --timeout, and a Session as its first argument."""

    @click.option("--server", "servers", multiple=True, metavar="HOST:PORT", help="A replica; may be repeated.")
    @click.option("--timeout", "timeout", type=float, metavar="SECONDS", help="For each call. Default: 10.")
    @click.pass_context
    @functools.wraps(function)
    def command(
        context: click.Context, /, *args: Any, servers: tuple[str, ...], timeout: float | None, **kwargs: Any
    ) -> Any:
        given: dict[str, Any] = context.find_root().params
        session = Session(
            _addresses(servers or given.get("servers") or _from_environment()),
            timeout or given.get("timeout") or DEFAULT_TIMEOUT_S,
        )
        return function(session, *args, **kwargs)

    return command  # type: ignore[return-value]


def _from_environment() -> tuple[str, ...]:
    return (os.environ.get("HQ_SERVER") or DEFAULT_SERVER,)


def _addresses(given: tuple[str, ...]) -> tuple[str, ...]:
    named = [part.strip() for text in given for part in text.split(",") if part.strip()]
    if not named:
        raise click.UsageError("no server is named: give --server HOST:PORT or set HQ_SERVER")
    return tuple(_with_port(address) for address in named)


def _with_port(address: str) -> str:
    if "://" in address:
        raise click.UsageError(f"{address}: give HOST:PORT, without a scheme")
    host, colon, port = address.rpartition(":")
    if colon and not host.endswith("]") and ":" in host:
        return f"[{address}]:{DEFAULT_PORT}"  # a bare IPv6 address
    if colon and "]" not in port:
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise click.UsageError(f"{address}: {port!r} is no port; give HOST:PORT, e.g. {DEFAULT_SERVER}")
        return address
    return f"{address}:{DEFAULT_PORT}"
