"""The CMS, for the commands that are about it: where it is, calls to it, and how they fail."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from hqcli.controllers import AWAY, Processes, controller_options
from hqcli.exits import Exit, exit_of
from hqclient.credential_files import BadCredentials
from hqctl.asking.session import complain

if TYPE_CHECKING:
    from google.protobuf.message import Message


DEFAULT_ADDRESS: Final = "127.0.0.1:7271"
F = TypeVar("F", bound=Callable[..., Any])


class Cms(Processes):
    """Processes of one CMS, and how to get in."""

    async def call(self, method: str, request: Message) -> Any:
        """One call of CmsService or CmsAdminService, at the first process that answers. Raises HqApiError."""
        from cmspb.v1 import cms_pb2_grpc

        async def ask(address: str) -> Any:
            async with self.connected(address) as (channel, metadata):
                stubs = (cms_pb2_grpc.CmsServiceStub(channel), cms_pb2_grpc.CmsAdminServiceStub(channel))
                stub = next(one for one in stubs if hasattr(one, method))
                return await getattr(stub, method)(request, timeout=self.timeout_s, metadata=metadata)

        return await self.first(ask)

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
            away = not error.from_hq and error.code.name in AWAY
            hint = "; name the CMS with --cms or HQ_CMS" if away else ""
            complain(f"{error.message}{hint}")
            return exit_of(error, writing=False)


def at_cms(function: F) -> F:
    """Give a command the options that say where the CMS is, and a Cms as its first argument."""
    text = "Processes of the CMS (or HQ_CMS)."
    return controller_options("--cms", "HQ_CMS", DEFAULT_ADDRESS, text, Cms)(function)
