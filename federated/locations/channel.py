"""The connection to one replica, for requests and answers that stay encoded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import grpc

from hqclient.credentials import Credentials
from hqclient.errors import DETAILS_KEY, HqApiError, connection_closed, decode_status
from serving.transport.client import CallFailed, Channel, ClientCall, Options

Metadata = Sequence[tuple[str, str]]

# A location that is back must be noticed soon, and one that is away must not be waited for.
_OPTIONS: Final = Options(max_answer_bytes=64 * 1024 * 1024, connect_timeout_s=1.0, max_backoff_s=1.0)
SERVICE: Final = "hq.v1.InstanceService"


class Dialer:
    """Opens channels to replicas, with the credentials of the gateway.

    The credentials are for its own requests. Those for callers carry the callers' tokens, which take precedence.
    """

    def __init__(self, credentials: Credentials | None = None) -> None:
        """`credentials` None: plain text, without authentication."""
        self._credentials = credentials or Credentials()
        self.find_cause = self._credentials.find_cause

    def open(self, address: str) -> Channel:
        """A new channel; it reconnects when certificates were renewed."""
        return Channel(address, self._credentials.tls(), _OPTIONS, self._credentials.version)

    @property
    def is_encrypted(self) -> bool:
        """Whether channels use TLS."""
        return self._credentials.files.tls

    def own(self) -> Metadata:
        """The gateway's own token, if it has one."""
        return self._credentials.metadata()


class ReplicaChannel:
    """One replica. Calls raise HqApiError."""

    def __init__(self, address: str, dialer: Dialer) -> None:
        self.address = address
        self._channel = dialer.open(address)
        self._streams: set[ClientCall] = set()

    def __repr__(self) -> str:
        return f"ReplicaChannel({self.address})"

    async def call(self, method: str, request: bytes, timeout_s: float, metadata: Metadata = ()) -> bytes:
        """The encoded answer."""
        call = self.begin(method, request, timeout_s, metadata)
        try:
            return await self.answer(call)
        finally:
            call.leave()

    def begin(self, method: str, request: bytes, timeout_s: float, metadata: Metadata = ()) -> ClientCall:
        """Send a request without waiting for the answer. Call `leave` on the result once it is of no more use."""
        return self._channel.stream(f"/{SERVICE}/{method}", request, metadata, timeout_s)

    async def answer(self, call: ClientCall) -> bytes:
        """Wait for the encoded answer of a call from `begin`."""
        try:
            return await call.only()
        except CallFailed as error:
            raise self._decode_error(error) from None

    async def stream(
        self, method: str, request: bytes, silence_limit_s: float, metadata: Metadata = ()
    ) -> AsyncIterator[bytes]:
        """Encoded messages; a stream that is silent for `silence_limit_s` counts as broken."""
        messages = self._channel.stream(f"/{SERVICE}/{method}", request, metadata)
        self._streams.add(messages)
        try:
            while True:
                async with asyncio.timeout(silence_limit_s):
                    message = await anext(messages)
                yield message
        except CallFailed as error:
            raise self._decode_error(error) from None
        except StopAsyncIteration:
            raise connection_closed(self.address) from None
        except TimeoutError:
            raise self._silent(silence_limit_s) from None
        finally:
            self._streams.discard(messages)
            messages.leave()

    def end_streams(self) -> None:
        """End every stream; unary calls continue."""
        for messages in self._streams:
            messages.leave()

    async def close(self) -> None:
        """End every call on it."""
        await self._channel.close()

    def _decode_error(self, error: CallFailed) -> HqApiError:
        details = error.binary(DETAILS_KEY)
        return decode_status(error.code, error.message, details, self.address, sent=not error.is_unprocessed)

    def _silent(self, limit_s: float) -> HqApiError:
        text = f"{self.address} sent nothing for {limit_s:g} s, not even a bookmark"
        return HqApiError(grpc.StatusCode.DEADLINE_EXCEEDED, text, endpoint=self.address)
