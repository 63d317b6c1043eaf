"""The Nanny server, for the commands that send orders to it: where it is, calls to it, and how they fail."""

from __future__ import annotations

import asyncio
import functools
import getpass
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from hqcli.controllers import AWAY, ControllerOption, Processes, controller_options
from hqcli.exits import Exit as HqctlExit
from hqcli.exits import exit_of
from hqclient.credential_files import BadCredentials
from nannyctl.exits import NannyExit
from nannyctl.session import complain

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from hqclient.errors import HqApiError
    from nannypb.v1 import service_pb2 as pb

NANNY: Final = ControllerOption("Nanny", "--nanny", "NANNY_SERVER", "127.0.0.1:7371")
F = TypeVar("F", bound=Callable[..., Any])
_SEEN_BAD_S: Final = 1.0


class NannyServer(Processes):
    """Processes of one Nanny, and how to get in."""

    async def call(self, method: str, request: Message) -> Any:
        """One call, at the first process that answers. Orders carry a request id, so a repeated call orders once.

        Raises HqApiError.
        """
        from nannypb.v1 import service_stubs

        async def ask(address: str) -> Any:
            async with self.open_channel(address) as (channel, metadata):
                stub = service_stubs.NannyServiceStub(channel)
                return await getattr(stub, method)(request, timeout=self.timeout_s, metadata=metadata)

        return await self.first(ask)

    async def watch(self, request: pb.WatchServiceRequest) -> AsyncIterator[pb.Service]:
        """A service now and after each change, from whichever process answers.

        Raises HqApiError: the failure is final, or no process has answered at all.
        """
        from hqclient.errors import HqApiError

        has_answered = False
        while True:
            for address in self.addresses:
                try:
                    async for service in self._stream(address, request):
                        has_answered = True
                        yield service
                except HqApiError as error:
                    if error.code.name not in AWAY or (not has_answered and address == self.addresses[-1]):
                        raise
                    complain(f"{address}: the connection was lost: trying again.")
            await asyncio.sleep(_SEEN_BAD_S)

    async def _stream(self, address: str, request: pb.WatchServiceRequest) -> AsyncIterator[pb.Service]:
        from nannypb.v1 import service_stubs

        async with self.open_channel(address) as (channel, metadata):
            async for answer in service_stubs.NannyServiceStub(channel).WatchService(request, metadata=metadata):
                yield answer.service


nanny_server = controller_options(NANNY, NannyServer)
"""Gives a command the options that say where Nanny is, and a NannyServer as its first argument."""


def why_options(function: F) -> F:
    """Give a command --comment and --ticket as one argument `by`, the author of an order."""

    @click.option("-m", "--comment", default="", metavar="TEXT", help="Why; recorded in the history.")
    @click.option("--ticket", default="", metavar="ID", help="Where it is tracked (a ticket); recorded in the history.")
    @functools.wraps(function)
    def command(*args: Any, comment: str, ticket: str, **kwargs: Any) -> Any:
        from nannypb.v1 import service_pb2 as pb

        return function(*args, by=pb.Authorship(author=_user(), comment=comment, ticket=ticket), **kwargs)

    return command  # type: ignore[return-value]


def new_request_id() -> str:
    """A new request id for one order."""
    return f"cli-{secrets.token_hex(12)}"


def run(work: Awaitable[NannyExit]) -> NoReturn:
    """Run to the end, and leave with the exit code; failures are printed on stderr."""

    async def whole() -> NannyExit:
        from hqclient.errors import HqApiError

        try:
            return await work
        except BadCredentials as error:
            complain(str(error))
            return NannyExit.NOT_ALLOWED
        except HqApiError as error:
            return _print_error(error)

    try:
        sys.exit(asyncio.run(whole()))
    except KeyboardInterrupt:
        complain("interrupted; orders that were given stand: see `nanny watch`.")
        sys.exit(NannyExit.INTERRUPTED)


def _print_error(error: HqApiError) -> NannyExit:
    if not error.from_hq and error.code.name in AWAY:
        complain(NANNY.unreachable(error))
        return NannyExit.UNAVAILABLE
    if error.violations:
        for violation in error.violations:
            complain(f"{violation.field}: {violation.description}" if violation.field else violation.description)
    else:
        complain(error.message)
    code = exit_of(error, writing=True)
    if code == HqctlExit.TIMEOUT:
        return NannyExit.UNAVAILABLE
    return NannyExit(code) if code in [*map(int, NannyExit)] else NannyExit.REFUSED


def _user() -> str:
    try:
        return os.environ.get("NANNY_USER") or getpass.getuser()
    except (KeyError, OSError):
        return ""
