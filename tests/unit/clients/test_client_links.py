"""The connection to one replica."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hqclient.links import ReplicaLink, insecure_channel


@pytest.mark.parametrize("ticks", range(4))
async def test_a_cancellation_that_comes_together_with_the_connection_is_not_lost(ticks: int) -> None:
    link = ReplicaLink("127.0.0.1:1", insecure_channel, connect_timeout_s=1)
    connecting: Any = asyncio.get_running_loop().create_future()
    link._connecting = connecting
    waiting = asyncio.create_task(link.connected_stubs(1))
    await asyncio.sleep(0)
    connecting.set_result(object())
    for _ in range(ticks):
        await asyncio.sleep(0)
    if waiting.cancel():
        with pytest.raises(asyncio.CancelledError):
            await waiting
