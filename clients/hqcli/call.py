"""Calls to a controller: at the first of its processes that answers, and how a command ends if the call fails."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from hqcli.complaints import complainer
from hqcli.controllers import ControllerOption
from hqcli.exits import Exit, denial_advice, exit_of
from hqclient.credential_files import BadCredentials, CredentialFiles

if TYPE_CHECKING:
    import grpc
    from google.protobuf.message import Message

    from hqclient.credentials import Credentials
    from hqclient.errors import HqApiError
    from hqclient.links import ChannelFactory

AWAY: Final = ("UNAVAILABLE", "DEADLINE_EXCEEDED")  # another process may answer
_READS: Final = ("Get", "List", "Find", "Why", "Watch")
_UNSURE: Final = "; it may or may not be stored: check before you retry"
T = TypeVar("T")
OpenChannel = tuple["grpc.aio.Channel", tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes of one controller, and the caller's credentials.

    Attributes:
        program: its name, in complaints.
        on_interrupt: what a command says when Ctrl-C ends it.
        timeout_s: for each call at each process.
    """

    controller: ClassVar[ControllerOption]
    program: ClassVar[str] = "hqctl"
    on_interrupt: ClassVar[str] = ""

    addresses: tuple[str, ...]
    timeout_s: float
    credentials: CredentialFiles

    async def call(self, method: str, request: Message) -> Any:
        """One call, at the first process that answers. All tries share one request id, so that it is done only once.

        Raises HqApiError, BadCredentials.
        """
        from hqclient.errors import HqApiError

        own_id = ("x-request-id", uuid.uuid4().hex)
        last: HqApiError | None = None
        for address in self.addresses:
            try:
                async with self.open_channel(address) as (channel, metadata):
                    rpc = _rpc(channel, method, request)
                    return await rpc(request, timeout=self.timeout_s, metadata=(*metadata, own_id))
            except HqApiError as error:
                error.earlier_try_unknown = last is not None and last.outcome_unknown and not is_read(method)
                last = error
                if error.code.name not in AWAY:
                    break
        assert last is not None
        raise last

    async def call_pages(self, method: str, request: Message) -> Any:
        """The answers of all pages of a list, as one. Raises HqApiError, BadCredentials."""
        from hqclient.pages import ask_pages

        return await ask_pages(lambda page: self.call(method, page), request)

    async def stream(self, address: str, method: str, request: Message) -> AsyncIterator[Any]:
        """The answers of one process to a streaming call. Raises HqApiError, BadCredentials."""
        async with self.open_channel(address) as (channel, metadata):
            async for answer in _rpc(channel, method, request)(request, metadata=metadata):
                yield answer

    @asynccontextmanager
    async def open_channel(self, address: str) -> AsyncIterator[OpenChannel]:
        """A channel to one process, and the metadata of each call on it; what fails is raised as HqApiError."""
        import grpc

        from hqclient.credentials import Credentials
        from hqclient.errors import decode

        credentials = Credentials(self.credentials)
        credentials.check([address])
        async with self.channels(credentials)(address) as channel:
            try:
                yield channel, tuple(credentials.metadata())
            except grpc.aio.AioRpcError as error:
                raise await credentials.explain(decode(error, address)) from None

    def channels(self, credentials: Credentials) -> ChannelFactory:
        """How to open a channel to an address."""
        return credentials.channel

    def run(self, work: Coroutine[Any, Any, Exit], *, writing: bool = False) -> NoReturn:
        """Do `work` and end the process with its exit code. A failed call becomes one line on stderr."""
        sys.exit(int(self.result(work, writing=writing)))

    def result(self, work: Coroutine[Any, Any, T], *, writing: bool) -> T:
        """Return the result of `work`. If a call fails, the process ends, with one line on stderr."""
        from hqclient.errors import HqApiError

        try:
            return asyncio.run(work)
        except BadCredentials as error:
            complainer(self.program)(str(error))
            sys.exit(Exit.NOT_ALLOWED)
        except HqApiError as error:
            sys.exit(self.report_failure(error, writing=writing))
        except KeyboardInterrupt:
            if self.on_interrupt:
                complainer(self.program)(self.on_interrupt)
            sys.exit(Exit.INTERRUPTED)

    def report_failure(self, error: HqApiError, *, writing: bool) -> Exit:
        """Say on stderr why a call failed; return the exit code for it."""
        code = self.exit_code(error, writing=writing)
        message = self.controller.unreachable(error) if is_away(error) else error.message
        advice = denial_advice(error)
        message += f"; {advice}" if advice else ""
        complainer(self.program)(message + (_UNSURE if code is Exit.OUTCOME_UNKNOWN else ""))
        return code

    def exit_code(self, error: HqApiError, *, writing: bool) -> Exit:
        """The exit code for a failed call."""
        return exit_of(error, writing=writing)


def is_away(error: HqApiError) -> bool:
    """Whether no process answered."""
    return not error.from_hq and error.code.name in AWAY


def is_read(method: str) -> bool:
    """Whether the call changes nothing."""
    return method.startswith(_READS)


def _rpc(channel: grpc.aio.Channel, name: str, request: Message) -> Any:
    """The method of this name, among the services that are defined in the same file as the request's message."""
    from google.protobuf.message_factory import GetMessageClass

    described: Any = request.DESCRIPTOR
    services = described.file.services_by_name.values()
    method = next(one.methods_by_name[name] for one in services if name in one.methods_by_name)
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    path = f"/{method.containing_service.full_name}/{name}"
    return make(path, type(request).SerializeToString, GetMessageClass(method.output_type).FromString)
