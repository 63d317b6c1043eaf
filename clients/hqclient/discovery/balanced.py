"""A gRPC channel whose calls go to the endpoints of a service.

Why not gRPC's own balancing: its channels take a list of addresses once (`ipv4:a,b` with round_robin). A new list is a
new channel, which drops every connection and stream, even to unchanged endpoints; and it knows neither nodes nor
labels nor uses. Here each endpoint has its own channel for as long as it exists, and the handle's policy picks an
endpoint for each call. Generated stubs see no difference.

    async with Discovery(servers).service("greeter", port="grpc") as greeter, BalancedChannel(greeter) as channel:
        answer = await GreeterStub(channel).SayHello(request, timeout=1)

Not included: retries. A call that ends as UNAVAILABLE marks its endpoint as failing, so the caller's next goes
elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import grpc

from hqclient.discovery.endpoint import EndpointChanges, NoEndpoints
from hqclient.discovery.picking import EndpointUse
from hqclient.discovery.service import Service

ChannelFactory = Callable[[str], grpc.aio.Channel]

DRAIN_S = 30.0
_SAYS_NOTHING = frozenset({grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED})


class BalancedChannel(grpc.aio.Channel):
    """Calls over the endpoints of an entered Service. Close it before the Service is left.

    A call while there is no endpoint fails with UNAVAILABLE. Streams stay on the endpoint where they began; one that is
    removed gets `drain_s` seconds to finish its calls.
    """

    def __init__(
        self, service: Service, *, channel_factory: ChannelFactory | None = None, drain_s: float = DRAIN_S
    ) -> None:
        self._service, self._drain_s = service, drain_s
        self._factory = channel_factory or grpc.aio.insecure_channel
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining: dict[asyncio.Task[None], grpc.aio.Channel] = {}
        self._unsubscribe = service.on_change(self._drop_removed)

    def __repr__(self) -> str:
        return f"BalancedChannel({self._service!r}, {len(self._channels)} channels)"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """End the calls and connections; calls in progress get `grace` more seconds."""
        self._unsubscribe()
        for task in list(self._draining):
            task.cancel()
        await asyncio.gather(*self._draining, return_exceptions=True)
        channels = [*self._channels.values(), *self._draining.values()]
        await asyncio.gather(*(channel.close(grace) for channel in channels))
        self._channels.clear()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """READY if any endpoint is connected. Endpoints are connected when they are first called."""
        states = [channel.get_state(try_to_connect) for channel in self._channels.values()]
        order = (
            grpc.ChannelConnectivity.READY,
            grpc.ChannelConnectivity.CONNECTING,
            grpc.ChannelConnectivity.TRANSIENT_FAILURE,
        )
        return next((state for state in order if state in states), grpc.ChannelConnectivity.IDLE)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Not supported: many connections have no single state that changes. Follow the Service instead."""
        raise NotImplementedError("a balanced channel has many states: use Service.on_change or Service.ready")

    async def channel_ready(self) -> None:
        """Return when the service has an endpoint and one of them is connected."""
        await self._service.ready(None)
        await self._channel(self._service.pick().address).channel_ready()

    def unary_unary(self, method: str, *arguments: Any, **options: Any) -> Any:
        return _Method(self, "unary_unary", method, arguments, options)

    def unary_stream(self, method: str, *arguments: Any, **options: Any) -> Any:
        return _Method(self, "unary_stream", method, arguments, options)

    def stream_unary(self, method: str, *arguments: Any, **options: Any) -> Any:
        return _Method(self, "stream_unary", method, arguments, options)

    def stream_stream(self, method: str, *arguments: Any, **options: Any) -> Any:
        return _Method(self, "stream_stream", method, arguments, options)

    def begin(self) -> tuple[EndpointUse, grpc.aio.Channel]:
        """An endpoint for one call. Raises AioRpcError (UNAVAILABLE)."""
        try:
            use = self._service.take()
        except NoEndpoints as error:
            empty = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, empty, empty, details=str(error)) from error
        return use, self._channel(use.endpoint.address)

    def end_with(self, use: EndpointUse, call: Any) -> None:
        """Count the use until the call is done, and learn from how it ended."""

        def done(_: Any) -> None:
            task = asyncio.create_task(_judge(use, call), name=f"end of a call to {use.endpoint.address}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        call.add_done_callback(done)

    def _channel(self, address: str) -> grpc.aio.Channel:
        if address not in self._channels:
            self._channels[address] = self._factory(address)
        return self._channels[address]

    def _drop_removed(self, changes: EndpointChanges) -> None:
        there = {endpoint.address for endpoint in self._service.endpoints}
        for address in self._channels.keys() - there:
            channel = self._channels.pop(address)
            task = asyncio.create_task(channel.close(self._drain_s), name=f"drain {address}")
            self._draining[task] = channel
            task.add_done_callback(lambda ended: self._draining.pop(ended, None))


class _Method:
    """A method of a stub: each call picks an endpoint."""

    def __init__(
        self, owner: BalancedChannel, kind: str, method: str, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self._owner, self._kind, self._method = owner, kind, method
        self._arguments, self._options = arguments, options

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        use, channel = self._owner.begin()
        try:
            call = getattr(channel, self._kind)(self._method, *self._arguments, **self._options)(*arguments, **options)
        except BaseException:
            use.done()
            raise
        self._owner.end_with(use, call)
        return call


async def _judge(use: EndpointUse, call: Any) -> None:
    code = await call.code()
    use.done(failed=None if code in _SAYS_NOTHING else code is grpc.StatusCode.UNAVAILABLE)
