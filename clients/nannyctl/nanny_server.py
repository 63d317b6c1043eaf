"""The Nanny server, for the commands that send orders to it: where it is, calls to it, and how they fail."""

from __future__ import annotations

import asyncio
import functools
import getpass
import os
import secrets
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hqcli.call import AWAY, Processes, is_away
from hqcli.controllers import ControllerOption, controller_options
from hqcli.exits import Exit, exit_of
from hqcli.options import gone_option
from nannyctl.session import complain

if TYPE_CHECKING:
    from hqclient.errors import HqApiError
    from nannypb.v1 import service_pb2 as pb

NANNY: Final = ControllerOption("Nanny", "--nanny", "NANNY_SERVER", "127.0.0.1:7371")
F = TypeVar("F", bound=Callable[..., Any])
_SEEN_BAD_S: Final = 1.0


class NannyServer(Processes):
    """Processes of one Nanny."""

    controller = NANNY
    program = "nanny"
    on_interrupt = "interrupted; orders that were given stand: see `nanny watch`."

    async def watch(self, request: pb.WatchServiceRequest) -> AsyncIterator[pb.Service]:
        """A service now and after each change, from whichever process answers.

        Raises HqApiError: the failure is final, or no process has answered at all.
        """
        from hqclient.errors import HqApiError

        has_answered = False
        while True:
            for address in self.addresses:
                try:
                    async for answer in self.stream(address, "WatchService", request):
                        has_answered = True
                        yield answer.service
                except HqApiError as error:
                    if error.code.name not in AWAY or (not has_answered and address == self.addresses[-1]):
                        raise
                    complain(f"{address}: the connection was lost: trying again.")
            await asyncio.sleep(_SEEN_BAD_S)

    def exit_code(self, error: HqApiError, *, writing: bool) -> Exit:
        """Exit code for a lost answer: UNAVAILABLE, because repeating the order is safe (its request id makes it one
        order).
        """
        code = exit_of(error, writing=writing)
        return Exit.UNAVAILABLE if is_away(error) or code is Exit.TIMEOUT else code


nanny_server = controller_options(NANNY, NannyServer)
"""Gives a command the options that say where Nanny is, and a NannyServer as its first argument."""


_SERVERLESS = (
    "a roll-out is an order to a Nanny server: run `nanny serve`, once `nanny service create SERVICE --adopt`, then "
    "`nanny activate SERVICE [SNAPSHOT]`, `nanny rollback SERVICE`, `nanny status SERVICE`"
)


def without_server(function: F) -> F:
    """Add the options of the time before there was a server: each is refused, with what to do instead."""
    valued = gone_option("--service", "--from", "--to", "--timeout-ready", instead=_SERVERLESS)
    return valued(gone_option("--partial", "--at-once", instead=_SERVERLESS, is_flag=True)(function))


def why_options(function: F) -> F:
    """Give a command --comment and --ticket as one argument `by`, the author of an order."""

    @click.option(
        "-m", "--reason", "--comment", "comment", default="", metavar="TEXT", help="Why; recorded in the history."
    )
    @click.option("--ticket", default="", metavar="ID", help="Where it is tracked (a ticket); recorded in the history.")
    @functools.wraps(function)
    def command(*args: Any, comment: str, ticket: str, **kwargs: Any) -> Any:
        from nannypb.v1 import service_pb2 as pb

        return function(*args, by=pb.Authorship(author=_user(), comment=comment, ticket=ticket), **kwargs)

    return command  # type: ignore[return-value]


def new_request_id() -> str:
    """A new request id for one order."""
    return f"cli-{secrets.token_hex(12)}"


def _user() -> str:
    try:
        return os.environ.get("NANNY_USER") or getpass.getuser()
    except (KeyError, OSError):
        return ""
