"""The CMS, for the commands that are about it: where it is, calls to it, and how they fail."""

from __future__ import annotations

import asyncio
import functools
import getpass
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from hqcli.options import credential_options
from hqclient.credential_files import BadCredentials, CredentialFiles
from hqctl.asking.exits import Exit, exit_of
from hqctl.asking.session import complain

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from hqclient.errors import HqApiError

DEFAULT_ADDRESS: Final = "127.0.0.1:7271"
F = TypeVar("F", bound=Callable[..., Any])
_AWAY: Final = ("UNAVAILABLE", "DEADLINE_EXCEEDED")


@dataclass(frozen=True, slots=True)
class Cms:
    """Processes of one CMS, and how to get in."""

    addresses: tuple[str, ...]
    timeout_s: float
    credentials: CredentialFiles

    async def call(self, method: str, request: Message) -> Any:
        """One call of CmsService or CmsAdminService, at the first process that answers. Raises HqApiError."""
        from hqclient.errors import HqApiError

        last: HqApiError | None = None
        for address in self.addresses:
            try:
                return await self._at(address, method, request)
            except HqApiError as error:
                if error.code.name not in _AWAY:
                    raise
                last = error
        assert last is not None
        raise last

    def run(self, work: Awaitable[Exit]) -> NoReturn:
        """Run to the end and leave with the exit code; what failed is one line on stderr."""
        try:
            sys.exit(int(asyncio.run(self._run(work))))
        except KeyboardInterrupt:
            sys.exit(Exit.INTERRUPTED)

    async def _run(self, work: Awaitable[Exit]) -> Exit:
        from hqclient.errors import HqApiError

        try:
            return await work
        except BadCredentials as error:
            complain(str(error))
            return Exit.NOT_ALLOWED
        except HqApiError as error:
            away = not error.from_hq and error.code.name in _AWAY
            hint = "; name the CMS with --cms or HQ_CMS" if away else ""
            complain(f"{error.message}{hint}")
            return exit_of(error, writing=False)

    async def _at(self, address: str, method: str, request: Message) -> Any:
        import grpc

        from cmspb.v1 import cms_pb2_grpc
        from hqclient.credentials import Credentials
        from hqclient.errors import decode

        credentials = Credentials(self.credentials)
        async with credentials.channel(address) as channel:
            stubs = (cms_pb2_grpc.CmsServiceStub(channel), cms_pb2_grpc.CmsAdminServiceStub(channel))
            stub = next(one for one in stubs if hasattr(one, method))
            try:
                return await getattr(stub, method)(
                    request, timeout=self.timeout_s, metadata=tuple(credentials.metadata())
                )
            except grpc.aio.AioRpcError as error:
                raise decode(error, address) from None


def at_cms(function: F) -> F:
    """Give a command the options that say where the CMS is, and a Cms as its first argument."""

    @click.option(
        "--cms",
        "addresses",
        envvar="HQ_CMS",
        default=DEFAULT_ADDRESS,
        show_default=True,
        metavar="HOST:PORT,...",
        help="Processes of the CMS (or HQ_CMS).",
    )
    @click.option("--timeout", "timeout_s", type=float, default=10.0, show_default=True, help="Seconds for each call.")
    @credential_options
    @functools.wraps(function)
    def command(*args: Any, addresses: str, timeout_s: float, credentials: CredentialFiles, **kwargs: Any) -> Any:
        named = tuple(part.strip() for part in addresses.split(",") if part.strip())
        if not named:
            raise click.BadParameter("is empty: write HOST:PORT", param_hint="--cms")
        return function(Cms(named, timeout_s, credentials), *args, **kwargs)

    return command  # type: ignore[return-value]


def ordering(function: F) -> F:
    """Give a command --reason and --by."""
    reason = click.option("--reason", required=True, help="Reason, kept with the record.")
    by = click.option("--by", default=_who, help="Who does this; default: you.")
    return reason(by(function))


def _who() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"
