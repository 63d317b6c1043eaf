"""The connection to one replica, for requests and answers that stay encoded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, cast

import grpc

from clients.calls import cancelled_from_outside
from clients.errors import HqApiError, connection_closed, decode
from clients.links import CHANNEL_OPTIONS

ChannelFactory = Callable[[str], grpc.aio.Channel]
Metadata = Sequence[tuple[str, str]]

_OPTIONS: Final = (
    *CHANNEL_OPTIONS,
    # A location that is back is to be found back soon; gRPC's own patience goes up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
SERVICE: Final = "hq.v1.InstanceService"


def insecure_channel(address: str) -> grpc.aio.Channel:
    """A channel without TLS."""
    return grpc.aio.insecure_channel(address, options=_OPTIONS)


class ReplicaChannel:
    """One replica. Calls raise HqApiError."""

    def __init__(self, address: str, factory: ChannelFactory) -> None:
        self.address = address
        self._channel = factory(address)
        self._unary: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"ReplicaChannel({self.address})"

    async def call(self, method: str, request: bytes, timeout_s: float, metadata: Metadata = ()) -> bytes:
        """The encoded answer."""
        callable_ = self._unary.get(method)
        if callable_ is None:
            callable_ = self._unary[method] = self._channel.unary_unary(f"/{SERVICE}/{method}", None, None)
        try:
            return cast("bytes", await callable_(request, timeout=timeout_s, metadata=tuple(metadata)))
        except grpc.aio.AioRpcError as error:
            raise decode(error, self.address) from None
        except asyncio.CancelledError:
            raise self._cancelled() from None

    async def stream(self, method: str, request: bytes, silence_limit_s: float) -> AsyncIterator[bytes]:
        """Encoded messages; a stream that is silent for `silence_limit_s` counts as broken."""
        opened: Any = self._channel.unary_stream(f"/{SERVICE}/{method}", None, None)
        call = opened(request)
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
            call.cancel()

    async def close(self) -> None:
        """End every call on it."""
        await self._channel.close(None)

    def _cancelled(self) -> BaseException:
        # A channel that is closed under a call looks like a cancellation by the caller.
        return asyncio.CancelledError() if cancelled_from_outside() else connection_closed(self.address)

    def _silent(self, limit_s: float) -> HqApiError:
        text = f"{self.address} sent nothing for {limit_s:g} s, not even a bookmark"
        return HqApiError(grpc.StatusCode.DEADLINE_EXCEEDED, text, endpoint=self.address)
