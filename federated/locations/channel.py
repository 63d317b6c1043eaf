"""The connection to one replica, for requests and answers that stay encoded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, cast

import grpc

from clients.calls import cancelled_from_outside
from clients.credential_files import CredentialFiles
from clients.credentials import Credentials
from clients.errors import HqApiError, connection_closed, decode, not_connected
from clients.links import CHANNEL_OPTIONS
from serving.calls.current import passed_on

Metadata = Sequence[tuple[str, str]]

_OPTIONS: Final = (
    *CHANNEL_OPTIONS,
    # A location that is back is to be found back soon; gRPC's own patience goes up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
SERVICE: Final = "hq.v1.InstanceService"
_DRAIN_S: Final = 30.0


class Dialer:
    """Opens channels to replicas, with the credentials of the front.

    They are for its own questions. What it asks for its callers carries their tickets, which count instead.
    """

    def __init__(self, credentials: Credentials | None = None) -> None:
        """`credentials` None: plain text, and nothing to say who asks."""
        self._credentials = credentials or Credentials(CredentialFiles())

    def open(self, address: str) -> grpc.aio.Channel:
        """A new channel."""
        return self._credentials.channel(address, options=_OPTIONS)

    @property
    def is_encrypted(self) -> bool:
        """Channels are TLS."""
        return self._credentials.files.tls

    def version(self) -> int:
        """Another number when channels must be made anew, because certificates were renewed."""
        return self._credentials.version()

    def own(self) -> Metadata:
        """The front's own ticket, if it has one."""
        return self._credentials.metadata()


class ReplicaChannel:
    """One replica. Calls raise HqApiError."""

    def __init__(self, address: str, dialer: Dialer) -> None:
        self.address, self._dialer = address, dialer
        self._version, self._channel = dialer.version(), dialer.open(address)
        self._unary: dict[str, Any] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._streams: set[Any] = set()

    def __repr__(self) -> str:
        return f"ReplicaChannel({self.address})"

    async def call(self, method: str, request: bytes, timeout_s: float, metadata: Metadata = ()) -> bytes:
        """The encoded answer."""
        if self._dialer.version() != self._version:
            self._renew()
        callable_ = self._unary.get(method)
        if callable_ is None:
            callable_ = self._unary[method] = self._channel.unary_unary(f"/{SERVICE}/{method}", None, None)
        try:
            return cast("bytes", await callable_(request, timeout=timeout_s, metadata=_of_call(metadata)))
        except grpc.aio.AioRpcError as error:
            raise decode(error, self.address) from None
        except grpc.aio.UsageError:
            raise not_connected(self.address, f"the connection to {self.address} is closed") from None
        except asyncio.CancelledError:
            raise self._cancelled() from None

    async def stream(
        self, method: str, request: bytes, silence_limit_s: float, metadata: Metadata = ()
    ) -> AsyncIterator[bytes]:
        """Encoded messages; a stream that is silent for `silence_limit_s` counts as broken."""
        if self._dialer.version() != self._version:
            self._renew()
        opened: Any = self._channel.unary_stream(f"/{SERVICE}/{method}", None, None)
        call = opened(request, metadata=_of_call(metadata))
        self._streams.add(call)
        try:
            while True:
                async with asyncio.timeout(silence_limit_s):
                    message = await call.read()
                if not isinstance(message, bytes):  # the end of the stream
                    raise connection_closed(self.address)
                yield message
        except grpc.aio.AioRpcError as error:
            raise decode(error, self.address) from None
        except TimeoutError:
            raise self._silent(silence_limit_s) from None
        except asyncio.CancelledError:
            raise self._cancelled() from None
        finally:
            self._streams.discard(call)
            call.cancel()

    def end_streams(self) -> None:
        """End every stream; calls with one answer go on."""
        for call in self._streams:
            call.cancel()

    async def close(self) -> None:
        """End every call on it."""
        for task in self._leaving:
            task.cancel()
        await self._channel.close(None)
        await asyncio.gather(*self._leaving, return_exceptions=True)

    def _renew(self) -> None:
        """Go on over a channel with the certificates of now; calls on the old one may end in peace."""
        old, self._channel = self._channel, self._dialer.open(self.address)
        self._version = self._dialer.version()
        self._unary.clear()
        task = asyncio.create_task(old.close(_DRAIN_S), name=f"old channel to {self.address}")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def _cancelled(self) -> BaseException:
        # A channel that is closed under a call looks like a cancellation by the caller.
        return asyncio.CancelledError() if cancelled_from_outside() else connection_closed(self.address)

    def _silent(self, limit_s: float) -> HqApiError:
        text = f"{self.address} sent nothing for {limit_s:g} s, not even a bookmark"
        return HqApiError(grpc.StatusCode.DEADLINE_EXCEEDED, text, endpoint=self.address)


def _of_call(metadata: Metadata) -> Metadata:
    """With the request id and the trace of the call that this one is made for."""
    said = {name for name, _ in metadata}
    return (*(pair for pair in passed_on() if pair[0] not in said), *metadata)
