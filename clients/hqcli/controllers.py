"""Commands of a controller (CMS, Nanny): where its processes are, and calls at the first one that answers."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hqcli.options import credential_options
from hqclient.credential_files import CredentialFiles

if TYPE_CHECKING:
    import grpc

AWAY: Final = ("UNAVAILABLE", "DEADLINE_EXCEEDED")  # another process may answer
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes of one controller, and the caller's credentials."""

    addresses: tuple[str, ...]
    timeout_s: float
    credentials: CredentialFiles

    async def first(self, ask: Callable[[str], Awaitable[T]]) -> T:
        """The answer of the first process that is not away. Raises HqApiError."""
        from hqclient.errors import HqApiError

        last: HqApiError | None = None
        for address in self.addresses:
            try:
                return await ask(address)
            except HqApiError as error:
                if error.code.name not in AWAY:
                    raise
                last = error
        assert last is not None
        raise last

    @asynccontextmanager
    async def connected(self, address: str) -> AsyncIterator[tuple[grpc.aio.Channel, tuple[tuple[str, str], ...]]]:
        """A channel to one process, and the metadata of each call on it; what fails is raised as HqApiError."""
        import grpc

        from hqclient.credentials import Credentials
        from hqclient.errors import decode

        credentials = Credentials(self.credentials)
        async with credentials.channel(address) as channel:
            try:
                yield channel, tuple(credentials.metadata())
            except grpc.aio.AioRpcError as error:
                raise decode(error, address) from None


def controller_options(
    flag: str, envvar: str, default: str, text: str, made: Callable[[tuple[str, ...], float, CredentialFiles], Any]
) -> Callable[[F], F]:
    """Give a command the options that say where a controller is; `made` makes its first argument of them."""

    def decorate(function: F) -> F:
        @click.option(
            flag, "addresses", envvar=envvar, default=default, show_default=True, metavar="HOST:PORT,...", help=text
        )
        @click.option(
            "--timeout", "timeout_s", type=float, default=10.0, show_default=True, help="Seconds for each call."
        )
        @credential_options
        @functools.wraps(function)
        def command(*args: Any, addresses: str, timeout_s: float, credentials: CredentialFiles, **kwargs: Any) -> Any:
            named = tuple(part.strip() for part in addresses.split(",") if part.strip())
            if not named:
                raise click.BadParameter("is empty: write HOST:PORT", param_hint=flag)
            return function(made(named, timeout_s, credentials), *args, **kwargs)

        return command  # type: ignore[return-value]

    return decorate
