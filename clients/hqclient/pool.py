"""The replicas a client can reach: their health, their links, and the task that probes those set aside."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from hqclient.endpoints import Endpoint, Endpoints
from hqclient.links import ChannelFactory, Link, Stubs, Version, never_renewed
from hqclient.timing import Clock


class Pool:
    """Links to every replica. Close it when done."""

    def __init__(
        self,
        endpoints: Endpoints,
        factory: ChannelFactory,
        clock: Clock,
        *,
        connect_timeout_s: float,
        version: Version = never_renewed,
    ) -> None:
        self.endpoints = endpoints
        self._clock = clock
        self._links = {
            e.address: Link(e.address, factory, connect_timeout_s=connect_timeout_s, version=version)
            for e in endpoints.all
        }
        self._prober: asyncio.Task[None] | None = None
        self._end = asyncio.Event()

    def __repr__(self) -> str:
        return f"Pool({list(self._links.values())})"

    def is_closed(self) -> bool:
        """Nothing more will be sent."""
        return self._end.is_set()

    async def pause(self, delay_s: float) -> None:
        """Return after `delay_s` seconds, or when the pool is closed."""
        waits = [asyncio.ensure_future(self._clock.sleep(delay_s)), asyncio.ensure_future(self._end.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def connected(self, endpoint: Endpoint, timeout_s: float) -> Stubs:
        """Stubs of a replica that is connected at this moment.

        Raises:
            HqApiError: UNAVAILABLE, not sent.
            RuntimeError: the client was closed.
        """
        if self.is_closed():
            raise RuntimeError("this client is closed; make a new one")
        return await self._links[endpoint.address].connected(timeout_s)

    def pick(self, avoid: Collection[str] = ()) -> Endpoint:
        """The best replica to ask now."""
        return self.endpoints.pick(avoid)

    def succeeded(self, endpoint: Endpoint) -> None:
        """It answered."""
        self.endpoints.succeeded(endpoint)

    def failed(self, endpoint: Endpoint) -> None:
        """It did not answer: ask others, and probe it from time to time."""
        self.endpoints.failed(endpoint)
        if not self.is_closed() and (self._prober is None or self._prober.done()):
            self._prober = asyncio.create_task(self._probe_until_healthy(), name="probe set-aside replicas")

    async def close(self) -> None:
        """End every call and probe. May be called twice."""
        self._end.set()
        if self._prober is not None:
            self._prober.cancel()
            await asyncio.gather(self._prober, return_exceptions=True)
        await asyncio.gather(*(link.close() for link in self._links.values()))

    async def _probe_until_healthy(self) -> None:
        while (wait_s := self.endpoints.next_probe_in_s()) is not None:
            await self._clock.sleep(wait_s)
            await asyncio.gather(*(self._probe(endpoint) for endpoint in self.endpoints.due()))

    async def _probe(self, endpoint: Endpoint) -> None:
        if await self._links[endpoint.address].is_serving():
            self.endpoints.succeeded(endpoint)
        else:
            self.endpoints.failed(endpoint)
