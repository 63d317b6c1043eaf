"""Connections: one gRPC channel per replica, confirmed connected before a call is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped,unused-ignore]

from hqclient.errors import HqApiError, decode, not_connected
from hqpb.v1.admin_stubs import AdminServiceStub
from hqpb.v1.service_stubs import InstanceServiceStub

ChannelFactory = Callable[[str], grpc.aio.Channel]
FindCause = Callable[[str], Awaitable[str]]  # why there is no connection to an address; empty: there could be one now
Version = Callable[[], int]  # of what channels are made with: when it changes, they must be reopened

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.enable_retries", 0),  # retries are ours: gRPC's own know neither budget nor RetryInfo
    ("grpc.use_local_subchannel_pool", 1),  # else a new channel inherits the back-off of a dropped one
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.max_metadata_size", 32 * 1024),  # error details travel in trailers
    ("grpc.keepalive_time_ms", 12_000),
    ("grpc.keepalive_timeout_ms", 3_000),
)
DRAIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Stubs:
    """The services of one replica."""

    instances: InstanceServiceStub
    admin: AdminServiceStub


def insecure_channel(address: str) -> grpc.aio.Channel:
    """A channel without TLS; `credentials.py` makes those with it."""
    return grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)


_CAUSE_S = 1.5  # more than one step of it may take: else that a server says nothing would never be told


def never_renewed() -> int:
    """Channels never need to be reopened."""
    return 0


async def unknown_cause(address: str) -> str:
    """For channels that somebody else makes: how they connect is not known here."""
    return "the channel does not say why"


class ReplicaLink:
    """The connection to one replica.

    A channel that fails to connect is dropped: when to try again is the client's decision, not gRPC's.
    """

    def __init__(
        self,
        address: str,
        factory: ChannelFactory,
        *,
        connect_timeout_s: float,
        version: Version = never_renewed,
        find_cause: FindCause = unknown_cause,
    ) -> None:
        self.address = address
        self._find_cause = find_cause
        self._failure = ""  # why the last attempt failed, while there is no connection
        self._version = version
        self._made_with = 0
        self._connect_timeout_s = connect_timeout_s
        self._factory = factory
        self._channel: grpc.aio.Channel | None = None
        self._stubs: Stubs | None = None
        self._connecting: asyncio.Task[Stubs] | None = None
        self._explaining: asyncio.Task[None] | None = None
        self._draining: dict[asyncio.Task[None], grpc.aio.Channel] = {}

    def __repr__(self) -> str:
        return f"ReplicaLink({self.address}, connected={self._is_ready()})"

    async def connected_stubs(self, timeout_s: float) -> Stubs:
        """Stubs on a channel that is connected at this moment.

        Raises:
            HqApiError: UNAVAILABLE, not sent: refused, or not connected within `timeout_s`; it says why.
        """
        # Not wait_for: up to Python 3.11 it swallows a cancellation that comes together with the result.
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                try:
                    return await self._become_connected()
                except HqApiError:
                    await self._explain()
        late = f"{self.address} did not accept a connection in time"
        raise not_connected(self.address, self._failure or late)

    async def _become_connected(self) -> Stubs:
        """Stubs on a channel that is connected. Raises HqApiError."""
        idle = self._connecting is None or self._connecting.done()
        if idle and self._channel is not None and self._made_with != self._version():
            self._drop()
        if self._stubs is not None and self._is_ready():
            return self._stubs
        if self._connecting is None or idle:
            self._connecting = asyncio.create_task(self._connect(), name=f"connect {self.address}")
            self._connecting.add_done_callback(_retrieve_exception)
        return await asyncio.shield(self._connecting)  # others may wait for the same connection

    async def is_serving(self) -> bool:
        """Whether it accepts connections and says that it serves (or has no health service)."""
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await self._become_connected()
            assert self._channel is not None
            check = health_pb2_grpc.HealthStub(self._channel).Check
            answer = await check(health_pb2.HealthCheckRequest(), timeout=self._connect_timeout_s)
        except grpc.aio.AioRpcError as error:
            return decode(error).code is grpc.StatusCode.UNIMPLEMENTED
        except (HqApiError, TimeoutError):
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def close(self) -> None:
        """End every call on it."""
        self._drop()
        for task in (self._connecting, self._explaining):
            if task is not None:
                task.cancel()
        channels = list(self._draining.values())
        for task in list(self._draining):
            task.cancel()
        await asyncio.gather(*self._draining, return_exceptions=True)
        await asyncio.gather(*(channel.close(None) for channel in channels))

    def _is_ready(self) -> bool:
        return self._channel is not None and self._channel.get_state() is grpc.ChannelConnectivity.READY

    async def _connect(self) -> Stubs:
        if self._channel is None:
            self._made_with = self._version()
            self._channel = self._factory(self.address)
            self._stubs = Stubs(
                InstanceServiceStub(self._channel),
                AdminServiceStub(self._channel),
            )
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                is_ready = await _become_ready(self._channel)
        except TimeoutError:
            is_ready = False
        except BaseException:
            self._drop()
            raise
        if not is_ready:
            self._drop()
            raise not_connected(self.address, self._failure or f"cannot connect to {self.address}")
        self._failure = ""
        assert self._stubs is not None
        return self._stubs

    async def _explain(self) -> None:
        """Find out why the last attempt failed: that takes a connection more, so only for those who are told."""
        if self._explaining is None or self._explaining.done():
            self._explaining = asyncio.create_task(self._find_failure(), name=f"explain {self.address}")
        await asyncio.shield(self._explaining)

    async def _find_failure(self) -> None:
        why = ""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CAUSE_S):
                why = await self._find_cause(self.address)
        if not self._is_ready():
            self._failure = f"cannot connect to {self.address}: {why or 'it did not take the connection: try again'}"

    def _drop(self) -> None:
        if self._channel is None:
            return
        # A server that shuts down may let streams finish on the old connection: do not cut them off.
        task = asyncio.create_task(self._channel.close(DRAIN_S), name=f"close {self.address}")
        self._draining[task] = self._channel
        task.add_done_callback(self._draining.pop)
        self._channel = self._stubs = None


async def _become_ready(channel: grpc.aio.Channel) -> bool:
    """Wait until the channel is connected or has failed; return whether it is connected."""
    while (state := channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
        if state in (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN):
            return False
        await channel.wait_for_state_change(state)
    return True


def _retrieve_exception(task: asyncio.Task[Stubs]) -> None:
    """Retrieve the exception even if no caller is left, so that asyncio does not complain."""
    if not task.cancelled():
        task.exception()
