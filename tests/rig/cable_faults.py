"""Packets that get lost below TCP, both ways or one way: nobody is told, nothing is reset."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.rig.installation import Installation
from tests.rig.places import Place
from tests.rig.schedule import Order

Fault = AbstractAsyncContextManager[None]


class CableFaults:
    """Faults of the cables between replicas and members that live in network namespaces."""

    def __init__(self, installation: Installation) -> None:
        self._places = installation.places

    def replica_lost(self, order: Order) -> Fault:
        return _lost(self._places.replicas[order.target], sent=True, received=True)

    def replica_one_way(self, order: Order) -> Fault:
        return _lost(self._places.replicas[order.target], sent=order.amount < 0.5, received=order.amount >= 0.5)

    def member_lost(self, order: Order) -> Fault:
        return _lost(self._places.members[order.target], sent=True, received=True)

    def member_one_way(self, order: Order) -> Fault:
        return _lost(self._places.members[order.target], sent=order.amount < 0.5, received=order.amount >= 0.5)


@asynccontextmanager
async def _lost(place: Place, *, sent: bool, received: bool) -> AsyncIterator[None]:
    cable = place.cable
    assert cable is not None
    await asyncio.to_thread(cable.drop, sent=sent, received=received)
    try:
        yield
    finally:
        await asyncio.to_thread(cable.heal, sent=sent, received=received)
