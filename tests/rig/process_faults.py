"""Processes that die, stand still and are restarted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.rig.installation import Installation
from tests.rig.schedule import Order


class ProcessFaults:
    """Faults of replicas, members and the gateway."""

    def __init__(self, installation: Installation) -> None:
        self._hq = installation

    @asynccontextmanager
    async def replica_killed(self, order: Order) -> AsyncIterator[None]:
        seat = self._hq.seats[order.target]
        await seat.kill()
        try:
            yield
        finally:
            await seat.start(until_ready=False)

    @asynccontextmanager
    async def replica_terminated(self, order: Order) -> AsyncIterator[None]:
        seat = self._hq.seats[order.target]
        await seat.terminate()
        try:
            yield
        finally:
            await seat.start(until_ready=False)

    @asynccontextmanager
    async def replica_paused(self, order: Order) -> AsyncIterator[None]:
        replica = self._hq.seats[order.target].replica
        assert replica is not None
        replica.pause()
        try:
            yield
        finally:
            replica.resume()

    @asynccontextmanager
    async def replicas_rolled(self, order: Order) -> AsyncIterator[None]:
        for seat in self._hq.seats:
            await seat.terminate()
            await seat.start(until_ready=False)
            await asyncio.sleep(order.lasts_s)
        yield

    @asynccontextmanager
    async def gateway_killed(self, order: Order) -> AsyncIterator[None]:
        await self._hq.kill_gateway()
        try:
            yield
        finally:
            await self._hq.start_gateway()

    @asynccontextmanager
    async def member_killed(self, order: Order) -> AsyncIterator[None]:
        await self._hq.cluster.kill(order.target)
        try:
            yield
        finally:
            await self._hq.cluster.restart(order.target, until_it_serves=False)

    @asynccontextmanager
    async def leader_killed(self, order: Order) -> AsyncIterator[None]:
        async with asyncio.timeout(5.0):
            leader = await self._hq.cluster.leader()
        await self._hq.cluster.kill(leader)
        try:
            yield
        finally:
            await self._hq.cluster.restart(leader, until_it_serves=False)

    @asynccontextmanager
    async def member_paused(self, order: Order) -> AsyncIterator[None]:
        self._hq.cluster.pause(order.target)
        try:
            yield
        finally:
            self._hq.cluster.resume(order.target)

    @asynccontextmanager
    async def members_rolled(self, order: Order) -> AsyncIterator[None]:
        for index in range(len(self._hq.cluster.members)):
            await self._hq.cluster.stop(index)
            await self._hq.cluster.restart(index, until_it_serves=False)
            await asyncio.sleep(order.lasts_s)
        yield
