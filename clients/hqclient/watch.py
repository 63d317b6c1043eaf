"""The watch: successive streams, from whichever replica is available, as one unbroken sequence."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import grpc

from hqclient.backoff import backoff_limit_s
from hqclient.calls import MetadataSource, cancelled_from_outside
from hqclient.clock import ClientClock
from hqclient.errors import HqApiError, connection_closed, decode
from hqclient.pool import Pool, PooledReplica
from hqclient.retry import RetrySettings, blames_endpoint
from hqclient.watch_items import Interrupted, Synced, WatchItem, WatchProgress
from hqpb.v1 import service_pb2

_NO_USE_TRYING = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)


_RENEWAL_SHARE = 200

WATCH_BACKOFF = RetrySettings(first_backoff_s=0.2, max_backoff_s=10.0)


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How a watch behaves when its stream ends.

    Attributes:
        backoff: waits between streams; the waits grow until a stream has lasted `stable_s`.
        stable_s: how long a stream must last to count as good again.
        silence_limit_s: a stream without any message for this long is given up, and another replica asked. HQ sends a
            bookmark at least every 5 s: this means two are missing.
        connect_timeout_s: how long one replica may take to accept.
        renew_s: after about this time, or 200 times what the last snapshot took if that is longer, the watch starts
            over from a snapshot: what was lost on the way, by whatever fault, is found and mended.
    """

    backoff: RetrySettings = WATCH_BACKOFF
    stable_s: float = 5.0
    silence_limit_s: float = 12.0
    connect_timeout_s: float = 5.0
    renew_s: float = 1_800.0


class Watch:
    """An iterator of WatchItem that ends only by `aclose`, with its client, or with a final error.

    Use it as a context manager, so that the stream ends with the block. `resume_token` always belongs to the
    last item: store both together and a later watch continues from there.

    Raises (when iterated):
        HqApiError: the request can never succeed as it is. Everything else is retried for ever.
    """

    def __init__(
        self,
        pool: Pool,
        clock: ClientClock,
        rng: random.Random,
        metadata: MetadataSource,
        request: service_pb2.WatchInstancesRequest,
        settings: WatchSettings,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._rng = rng
        self._metadata = metadata
        self._request = request
        self._settings = settings
        self._progress = WatchProgress(request.resume_token)
        self._tried: set[str] = set()
        self._failures = 0
        self._heard = False  # any message, on this stream
        self._was_let_in = False  # by HQ, on any stream
        self._renew_at = float("inf")  # from when the last snapshot was complete
        self._items = self._run()

    @property
    def resume_token(self) -> str:
        """Where to resume after the last item; empty: start from a snapshot."""
        return self._progress.resume_token

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchItem:
        return await anext(self._items)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the stream."""
        await self._items.aclose()

    async def _run(self) -> AsyncGenerator[WatchItem, None]:
        while not self._pool.is_closed():
            replica = self._pool.pick(self._tried)
            self._tried.add(replica.address)
            began = self._clock.now()
            self._heard = False
            stream = self._stream(replica)
            try:
                async for message in stream:
                    for item in self._on_message(message, replica, began):
                        yield item
                error = None if self._is_due() else connection_closed(replica.address)
            except HqApiError as failure:
                error = failure
            finally:
                await stream.aclose()
            if self._pool.is_closed():
                return
            for item in self._after(error, replica, self._clock.now() - began) if error else self._start_over():
                yield item
                if isinstance(item, Interrupted):
                    await self._pool.pause(item.retry_in_s)

    def _on_message(
        self, message: service_pb2.WatchInstancesResponse, replica: PooledReplica, began: float
    ) -> list[WatchItem]:
        self._tried = {replica.address}
        self._heard = self._was_let_in = True
        items = self._progress.apply_message(message)
        if any(isinstance(item, Synced) for item in items):
            self._plan_renewal(began)
        return items

    def _is_due(self) -> bool:
        return self._clock.now() >= self._renew_at and bool(self._progress.resume_token)

    def _start_over(self) -> list[WatchItem]:
        self._renew_at = float("inf")
        return self._progress.start_over("starting over, to compare with HQ")

    def _plan_renewal(self, began: float) -> None:
        """Set when to start over, at the first complete snapshot or resumed stream; later ones do not change it."""
        if self._renew_at == float("inf"):
            now = self._clock.now()
            renew_s = max(self._settings.renew_s, _RENEWAL_SHARE * (now - began))
            self._renew_at = now + renew_s * self._rng.uniform(0.8, 1.2)

    async def _stream(self, replica: PooledReplica) -> AsyncGenerator[service_pb2.WatchInstancesResponse, None]:
        """Messages of one stream. Raises HqApiError."""
        call = None
        try:
            stubs = await self._pool.connected_stubs(replica, self._settings.connect_timeout_s)
            call = stubs.instances.WatchInstances(self._next_request(), metadata=tuple(self._metadata()))
            async for message in self._messages(call, replica):
                self._pool.record_success(replica)
                yield message
                if self._is_due():
                    return
        except grpc.aio.AioRpcError as error:
            raise decode(error, replica.address) from None
        except asyncio.CancelledError:
            if cancelled_from_outside():
                raise
            raise connection_closed(replica.address) from None
        finally:
            if call is not None:
                call.cancel()

    async def _messages(
        self,
        call: grpc.aio.UnaryStreamCall[service_pb2.WatchInstancesRequest, service_pb2.WatchInstancesResponse],
        replica: PooledReplica,
    ) -> AsyncIterator[service_pb2.WatchInstancesResponse]:
        while True:
            try:
                async with asyncio.timeout(self._settings.silence_limit_s):
                    message = await call.read()
            except TimeoutError:
                raise _silent(replica, self._settings.silence_limit_s) from None
            if not isinstance(message, service_pb2.WatchInstancesResponse):  # EOF
                return
            yield message

    def _next_request(self) -> service_pb2.WatchInstancesRequest:
        request = service_pb2.WatchInstancesRequest(resume_token=self._progress.resume_token)
        request.filter.CopyFrom(self._request.filter)
        return request

    def _after(self, error: HqApiError, replica: PooledReplica, lasted_s: float) -> list[WatchItem]:
        """Return the items for the end of a stream; an Interrupted at the end says how long to wait."""
        if error.code in _NO_USE_TRYING and not self._may_be_renewed(error):
            raise error
        if error.code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.OUT_OF_RANGE):
            if not self._progress.resume_token:
                raise error
            shown = self._progress.start_over(error.message)
        else:
            shown = self._progress.on_stream_end()
        if blames_endpoint(error, lasted_s):
            self._pool.record_failure(replica)
        return [*shown, Interrupted(error, self._wait_s(error, lasted_s))]

    def _may_be_renewed(self, error: HqApiError) -> bool:
        """Whether a token or certificate may have been renewed, or rights may have changed: retry to find out."""
        return self._heard or (self._was_let_in and error.code is grpc.StatusCode.UNAUTHENTICATED)

    def _wait_s(self, error: HqApiError, lasted_s: float) -> float:
        self._failures = 1 if lasted_s >= self._settings.stable_s else self._failures + 1
        if not self._pool.replicas.has_more_than(self._tried):
            self._tried.clear()
        backoff = self._settings.backoff
        limit_s = backoff_limit_s(self._failures, backoff.first_backoff_s, backoff.max_backoff_s)
        jittered = self._rng.random() * limit_s
        return max(jittered, error.retry_delay_s or 0.0)


def _silent(replica: PooledReplica, limit_s: float) -> HqApiError:
    return HqApiError(
        grpc.StatusCode.DEADLINE_EXCEEDED,
        f"{replica.address} sent nothing for {limit_s:g} s, not even a bookmark",
        endpoint=replica.address,
    )
