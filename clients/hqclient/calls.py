"""One call from first try to final result: which replica, how long, whether to retry; and a base for typed calls."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import grpc
from google.protobuf import duration_pb2, field_mask_pb2

from hqclient.clock import ClientClock
from hqclient.errors import HqApiError, connection_closed, decode
from hqclient.links import Stubs
from hqclient.own_writes import OwnWrites
from hqclient.pool import Pool, PooledReplica
from hqclient.retry import REPEATED, Retries, RetryBudget, RetrySettings, Safety, blames_endpoint

Req = TypeVar("Req")
Res = TypeVar("Res")
Method = Callable[[Stubs], grpc.aio.UnaryUnaryMultiCallable[Req, Res]]
Metadata = Sequence[tuple[str, str]]
MetadataSource = Callable[[], Metadata]

MIN_TRY_S = 1.0


class UnaryCalls:
    """Sends unary requests, with fail-over, retries and one deadline for all of it."""

    def __init__(
        self,
        pool: Pool,
        clock: ClientClock,
        rng: random.Random,
        settings: RetrySettings,
        metadata: MetadataSource,
        first_connect_s: float = 0.3,
    ) -> None:
        """`first_connect_s`: the connect timeout while some replica has not been tried yet."""
        self._pool = pool
        self._clock = clock
        self._rng = rng
        self._settings = settings
        self._metadata = metadata
        self._first_connect_s = first_connect_s
        self._budget = RetryBudget(settings.budget_ratio, settings.budget_reserve)

    async def run(self, method: Method[Req, Res], request: Req, safety: Safety, timeout_s: float) -> Res:
        """The answer.

        Raises:
            HqApiError: the error of the last try.
        """
        deadline = self._clock.now() + timeout_s
        retries = Retries(self._settings, self._budget, safety, self._rng)
        unknown = False
        while True:
            replica = self._pool.pick(retries.tried)
            retries.tried.add(replica.address)
            try:
                share_s = self._share_s(safety, deadline)
                connect_s, more = self._connect_s(retries, share_s), (REPEATED,) if unknown else ()
                return await self._try(replica, method, request, share_s, connect_s, more)
            except HqApiError as error:
                delay_s = retries.after(
                    error,
                    remaining_s=deadline - self._clock.now(),
                    other_left=self._pool.replicas.has_more_than(retries.tried),
                )
                if delay_s is None:
                    error.earlier_try_unknown = unknown
                    raise
                unknown = unknown or error.outcome_unknown
            await self._pool.pause(delay_s)

    async def _try(
        self,
        replica: PooledReplica,
        method: Method[Req, Res],
        request: Req,
        timeout_s: float,
        connect_s: float,
        more: Metadata,
    ) -> Res:
        began = self._clock.now()
        try:
            answer = await self._send(replica, method, request, timeout_s, connect_s, more)
        except HqApiError as error:
            if blames_endpoint(error, self._clock.now() - began):
                self._pool.record_failure(replica)
            elif error.from_hq:
                self._pool.record_success(replica)
            raise
        self._pool.record_success(replica)
        return answer

    async def _send(
        self,
        replica: PooledReplica,
        method: Method[Req, Res],
        request: Req,
        timeout_s: float,
        connect_s: float,
        more: Metadata,
    ) -> Res:
        deadline = self._clock.now() + timeout_s
        try:
            stubs = await self._pool.connected_stubs(replica, connect_s)
            left_s = max(0.001, deadline - self._clock.now())
            return await method(stubs)(request, timeout=left_s, metadata=(*self._metadata(), *more))
        except grpc.aio.AioRpcError as error:
            raise decode(error, replica.address) from None
        except asyncio.CancelledError:
            if cancelled_from_outside():
                raise
            # Closing a channel during a call looks like a cancellation by the caller.
            raise connection_closed(replica.address) from None

    def _connect_s(self, retries: Retries, share_s: float) -> float:
        """Time to connect. A frozen replica's kernel still accepts connections; nothing was sent, so ask others.

        The attempt continues in the background: if all are slow, the second round finds it done, or waits for it.
        """
        others_left = self._pool.replicas.has_more_than(retries.tried)
        return min(share_s, self._first_connect_s) if retries.is_first_round and others_left else share_s

    def _share_s(self, safety: Safety, deadline: float) -> float:
        """Time for one try: half of the remaining time if another may follow, so a hung replica costs only half."""
        remaining_s = deadline - self._clock.now()
        if safety is Safety.UNLESS_STORED or len(self._pool.replicas) == 1:
            return remaining_s
        return min(remaining_s, max(MIN_TRY_S, remaining_s / 2))


def cancelled_from_outside() -> bool:
    """Whether this task itself was cancelled, as opposed to something that it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Caller:
    """Base of the classes with typed calls."""

    def __init__(self, calls: UnaryCalls, own_writes: OwnWrites | None, rng: random.Random, timeout_s: float) -> None:
        self._calls = calls
        self._own_writes = own_writes
        self._rng = rng
        self._timeout_s = timeout_s

    async def call(
        self,
        method: Method[Req, Res],
        request: Req,
        *,
        safety: Safety = Safety.UNLESS_STORED,
        timeout_s: float | None = None,
    ) -> Res:
        """Send any request unchanged, e.g. `call(lambda hq: hq.instances.GetInstance, request)`.

        Args:
            safety: whether it may be repeated when the outcome of a try is unknown.
            timeout_s: for the whole call, retries included; None: the client's default.

        Raises:
            HqApiError: it failed for good, or the deadline has passed.
        """
        try:
            return await self._calls.run(method, request, safety, self._timeout_s if timeout_s is None else timeout_s)
        except HqApiError as error:
            if error.reason == "EPOCH_CHANGED" and self._own_writes is not None:
                self._own_writes.forget()
            raise

    def _wrote(self, version: int, cluster: str = "") -> None:
        if self._own_writes is not None:
            self._own_writes.wrote(version, cluster)


def mask(paths: Iterable[str]) -> field_mask_pb2.FieldMask | None:
    """A field mask; None if there are no paths."""
    listed = list(paths)
    return field_mask_pb2.FieldMask(paths=listed) if listed else None


def duration(seconds: float | None) -> duration_pb2.Duration | None:
    """A protobuf duration; None stays None: the server's default."""
    if seconds is None:
        return None
    nanos = round(seconds * 1e9)
    return duration_pb2.Duration(seconds=nanos // 1_000_000_000, nanos=nanos % 1_000_000_000)


def repeatable_if(condition: bool) -> Safety:
    return Safety.REPEATABLE if condition else Safety.UNLESS_STORED
