"""The connection to one replica."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from hqclient.client import Client
from hqclient.errors import HqApiError
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


async def test_the_cause_is_sought_for_those_who_are_told_and_once_for_all_of_them() -> None:
    asked, known = [], asyncio.Event()

    async def find_cause(address: str) -> str:
        asked.append(address)
        await known.wait()
        return "nothing listens there"

    link = ReplicaLink("127.0.0.1:1", insecure_channel, connect_timeout_s=1, find_cause=find_cause)
    assert not await link.is_serving()
    assert not asked, "a probe makes one connection"
    callers = [asyncio.create_task(link.connected_stubs(1)) for _ in range(3)]
    while not asked:
        await asyncio.sleep(0.01)
    assert not await asyncio.wait_for(link.is_serving(), 1), "the next attempt does not wait for it"
    known.set()
    errors = await asyncio.gather(*callers, return_exceptions=True)
    assert {str(error) for error in errors} == {"cannot connect to 127.0.0.1:1: nothing listens there"}
    assert asked == ["127.0.0.1:1"]
    await link.close()


@pytest.mark.long
async def test_a_caller_is_told_that_a_server_takes_connections_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with Client([f"127.0.0.1:{silent.getsockname()[1]}"]) as client:
            with pytest.raises(HqApiError, match="it takes connections and says nothing"):
                await client.get("web-1", timeout_s=8)
