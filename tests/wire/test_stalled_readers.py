"""Readers that stall or drip: what waits for them stays within its budget, others notice nothing, and they are cut off.

RSS and the system's send queues are measured from outside, over a server in a process of its own.
"""

from __future__ import annotations

import asyncio
import resource
import time
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import pytest

from hqpb.v1 import service_pb2
from serving.limiting.admission import Admission
from serving.limiting.limits import KIB, MIB
from tests.support.sample_instances import eventually
from tests.wire.fake_table import GET, WATCH
from tests.wire.limited import limited
from tests.wire.machine_client import connected
from tests.wire.raw_http import RawHttp
from tests.wire.stalled import ADDRESSES, BIG, ENDLESS, KINDS, Reader, Watcher, held
from tests.wire.wire_server import Served, wire_server

_STALLED_S: Final = 1.5
_SEND_BUFFER: Final = 64 * KIB  # less than two segments of loopback would wait for late acknowledgements
# Beside the budget: answers of the moment, what malloc keeps, code that was not used before.
_FIXED_BYTES: Final = 20 * MIB
_CONNECTION_BYTES: Final = 32 * KIB  # for each connection: its objects
_PROMPTLY_S: Final = 0.4  # as a rule, on two busy cores
_AT_ALL_S: Final = 20.0  # whatever else the machine does
SMALL: Final = service_pb2.GetInstanceRequest(id="web-1")


class Others:
    """Well-behaved callers from another address. `took_s`: each of their calls."""

    def __init__(self, port: int) -> None:
        self._http, self._port = RawHttp(port), port
        self.took_s: list[float] = []

    @asynccontextmanager
    async def calling(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in (self._over_http1(), self._over_http2())]
            yield
            for task in tasks:
                task.cancel()

    async def _over_http1(self) -> None:
        while True:
            for request in (SMALL, BIG):
                started = time.monotonic()
                answer = await self._http.post(request.SerializeToString(), content_type="application/proto")
                assert answer.status == 200, answer
                self._note(started)
                await asyncio.sleep(0.05)

    async def _over_http2(self) -> None:
        client = await connected(self._port, Random(1))
        while True:
            started = time.monotonic()
            _, done = client.call(GET, "x", [], BIG.SerializeToString())
            reply = await done
            assert dict(reply.fields).get("grpc-status") == "0", (reply.fields, reply.ended, client.why)
            assert len(reply.messages[0]) > MIB
            self._note(started)
            await asyncio.sleep(0.05)

    def _note(self, started: float) -> None:
        self.took_s.append(time.monotonic() - started)


async def check(directory: Path, readers: int, budget: int, rounds: int, stalled_s: float = _STALLED_S) -> str:
    """Run so many readers of all kinds, who come again in each round without hanging up; return the figures as a
    sentence.
    """
    limits = {
        "max_answers_bytes": budget,
        "max_answers_bytes_per_peer": budget // 5,
        "send_buffer_bytes": _SEND_BUFFER,
        "stalled_write_s": stalled_s,
    }
    all_readers: list[Reader] = []
    async with wire_server(directory, **limits) as server:
        others = Others(server.port)
        async with others.calling():
            await asyncio.sleep(1.0)  # so that what a server has once is there
            watcher = Watcher(server.process, server.port)
            others.took_s.clear()
            with watcher.watching():
                for _ in range(rounds):
                    some = [Reader(KINDS[i % len(KINDS)], ADDRESSES[i % len(ADDRESSES)]) for i in range(readers)]
                    all_readers += some
                    for at in range(0, readers, 50):
                        await asyncio.gather(*[one.ask(server.port) for one in some[at : at + 50]])
                        await server.books()  # they were all accepted: a crowd at the door is another matter
                    await asyncio.sleep(1.2 * stalled_s)
                await _cut_off(server, stalled_s)
            took_s = sorted(others.took_s)
        left = held(server.process, server.port)
        still = await _still_served(all_readers)
        books = await server.books()
    for one in all_readers:
        one.close()
    allowed = budget + _FIXED_BYTES + rounds * readers * _CONNECTION_BYTES
    figures = (
        f"{readers} readers, {rounds} times: {watcher}; "
        f"budget {budget / MIB:.0f} MiB, allowed {allowed / MIB:.0f} MiB; refused {books.refused}; "
        f"others: {len(took_s)} calls, half of them within {median(took_s):.3f} s, "
        f"nine of ten within {took_s[len(took_s) * 9 // 10]:.3f} s, the slowest {took_s[-1]:.2f} s"
    )
    assert not still, f"not cut off: {still}; {figures}"
    assert left.orphans < MIB, f"{left.orphans} bytes are kept for readers that were cut off; {figures}"
    assert watcher.most_together <= allowed, figures
    assert median(took_s) < _PROMPTLY_S, figures
    assert took_s[-1] < _AT_ALL_S, figures
    return figures


async def _cut_off(server: Served, stalled_s: float) -> None:
    """Return when nothing waits for readers any more, though they are all still there."""

    async def nothing_waits() -> bool:
        return (await server.books()).answers_bytes < 2 * MIB  # what the others are just being sent

    await eventually(nothing_waits, 6 * stalled_s + 5, "answers wait for readers that take nothing")


async def _still_served(readers: list[Reader]) -> Counter[str]:
    """Readers that get what they did not want before, by kind: an answer has more bytes than systems keep for them."""
    still: Counter[str] = Counter()
    for at in range(0, len(readers), 100):
        some = readers[at : at + 100]
        took = await asyncio.gather(*[one.takes_rest() for one in some])
        still.update(str(one.kind) for one, taken in zip(some, took, strict=True) if taken >= MIB)
    return still


@limited(send_buffer_bytes=_SEND_BUFFER)
async def test_a_message_that_waits_for_its_reader_is_held_once(grpc_port: int, admission: Admission) -> None:
    """It must not be held as a message, as bytes and in an envelope while only one of them is counted."""
    clients = [await connected(grpc_port, Random(1)) for _ in range(2)]
    tracemalloc.start()
    try:
        for client in clients:
            client.reads = False
            for _ in range(100):
                client.call(WATCH, "x", [], ENDLESS.SerializeToString())
        await eventually(lambda: admission.streams == 200)
        await eventually(lambda: admission.answers_bytes > 10 * MIB)
        await asyncio.sleep(0.5)
        held_bytes, _ = tracemalloc.get_traced_memory()
        assert held_bytes < 1.5 * admission.answers_bytes, f"{held_bytes} bytes for {admission.answers_bytes} counted"
    finally:
        tracemalloc.stop()
        for client in clients:
            client.drop()
    await eventually(lambda: not admission.streams)


@pytest.mark.long
async def test_a_hundred_stalled_readers_cost_no_more_than_the_budget(tmp_path: Path) -> None:
    print(await check(tmp_path, 100, 20 * MIB, rounds=2))


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_thousand_stalled_readers_cost_no_more_than_the_budget(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16_384), hard))
    try:
        print(await check(tmp_path, 1_000, 100 * MIB, rounds=3, stalled_s=4.0))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
