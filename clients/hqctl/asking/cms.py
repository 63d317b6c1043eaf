"""The CMS and other controllers, for the commands about them: where they are, calls to them, and how they fail."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import click

from hqcli.controllers import AWAY, ControllerOption, Processes, controller_options
from hqcli.exits import Exit, exit_of
from hqclient.credential_files import BadCredentials, CredentialFiles
from hqctl.asking.cluster import named_cluster
from hqctl.asking.session import complain

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from hqclient.credentials import Credentials
    from hqclient.links import ChannelFactory


CMS: Final = ControllerOption("the CMS", "--cms", "HQ_CMS", "127.0.0.1:7271", field="cms")


class ControllerProcesses(Processes):
    """Processes of one controller that `hqctl` asks, and how to get in."""

    controller: ClassVar[ControllerOption]

    def channels(self, credentials: Credentials) -> ChannelFactory:
        from hqctl.asking.connecting import channel_factory

        return channel_factory(credentials, verbose=bool(_root().params.get("verbose")))

    async def call_stubs(self, method: str, request: Message, *stubs: Callable[[Any], Any]) -> Any:
        """One call of the first of these services that has it, at the first process that answers. Raises HqApiError."""

        async def ask(address: str) -> Any:
            async with self.open_channel(address) as (channel, metadata):
                stub = next(one for one in (make(channel) for make in stubs) if hasattr(one, method))
                return await getattr(stub, method)(request, timeout=self.timeout_s, metadata=metadata)

        return await self.first(ask)

    def run(self, work: Awaitable[Exit], *, writing: bool = False) -> NoReturn:
        """Run to the end and leave with the exit code; what failed is one line on stderr."""
        try:
            sys.exit(int(asyncio.run(self._run(work, writing))))
        except KeyboardInterrupt:
            sys.exit(Exit.INTERRUPTED)

    async def _run(self, work: Awaitable[Exit], writing: bool) -> Exit:
        from hqclient.errors import HqApiError

        try:
            return await work
        except BadCredentials as error:
            complain(str(error))
            return Exit.NOT_ALLOWED
        except HqApiError as error:
            away = not error.from_hq and error.code.name in AWAY
            words = self.controller.unreachable(error) if away else error.message
            unsure = "; it may or may not be stored: look before you retry" if writing and error.outcome_unknown else ""
            complain(words + unsure)
            return exit_of(error, writing=writing)


class CmsProcesses(ControllerProcesses):
    """Processes of one CMS."""

    controller = CMS

    async def call(self, method: str, request: Message) -> Any:
        """One call of CmsService or CmsAdminService. Raises HqApiError."""
        from cmspb.v1 import cms_stubs

        return await self.call_stubs(method, request, cms_stubs.CmsServiceStub, cms_stubs.CmsAdminServiceStub)


def _cms(addresses: tuple[str, ...], timeout_s: float, credentials: CredentialFiles) -> CmsProcesses:
    for flag, is_said in (("--server", _root().params.get("servers")), ("--cluster", named_cluster(_root()))):
        if is_said:
            raise click.UsageError(f"{flag} is about HQ; name the CMS with --cms, HQ_CMS or `cms` of a context")
    return CmsProcesses(addresses, timeout_s, credentials)


def _root() -> click.Context:
    return click.get_current_context().find_root()


at_cms = controller_options(CMS, _cms)
"""Gives a command the options that say where the CMS is, and a Cms as its first argument."""
