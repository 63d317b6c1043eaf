"""The gateways over a real HQ: DNS answers of one core, and how long a change takes to reach who follows.

Propagation is counted from the acknowledged report to its arrival at a client: an ADS stream, a blocking query; one
alone, and the last of 1,000 streams (QUICK: 100), each on a connection of its own.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psutil

from gateways.xds.ads import PATH
from gateways.xds.fixed_resources import ResourceType
from serving.encoding.envelopes import envelope
from serving.h2 import frames, hpack
from tests.bench.bench import Bench
from tests.bench.stats import percentile
from tests.judges import tools as judges
from tests.judges.envoy import proxy, uses
from tests.judges.gateway_world import within
from tests.judges.haproxy import Balancer
from tests.judges.verdict import Missing
from tests.support.gateway_process import GatewayProcess, Programs, Registry, programs
from xdspb.v1 import xds_pb2 as pb

GROUP: Final = "gateways"
BEHIND_ENVOY: Final = "envoy"
DNS: Final = "DNS answers per second of one core"
XDS: Final = "xDS, acknowledged to arrived: p99"
ENVOY: Final = "Envoy, acknowledged to answered by the new instance: p99"
QUERY: Final = "blocking query, acknowledged to answered: p99"
_CROWD: Final = "xDS, acknowledged to the last of {:,} streams: p99"
_INSTANCES: Final = 16
_CHANGES: Final = 200
_CROWD_CHANGES: Final = 20
_IN_FLIGHT: Final = 64


async def run(bench: Bench) -> None:
    """The group `gateways`."""
    async with programs(bench.directory) as running:
        hq = await running.registry()
        for number in range(_INSTANCES):
            await hq.put(f"web-{number}", host=f"127.0.1.{number}")
        await _dns(bench, await running.gateway("dns", hq))
        await _xds(bench, running, hq)
        await _consul(bench, hq, await running.gateway("consul", hq))


# --- DNS ----------------------------------------------------------------------------------------------------------


async def _dns(bench: Bench, gateway: GatewayProcess) -> None:
    """Load from a process of its own, with many questions in flight; its processor time tells its capacity."""
    process, rates, per_core = psutil.Process(gateway.pid), [], []
    for _ in range(bench.rounds):
        before = sum(process.cpu_times()[:2])
        order = (sys.executable, "-m", "tests.bench.gateways", gateway.dns_address, str(bench.seconds))
        asker = await asyncio.create_subprocess_exec(*order, stdout=asyncio.subprocess.PIPE)
        answers = int((await asker.communicate())[0])
        used_s = sum(process.cpu_times()[:2]) - before
        rates.append(answers / bench.seconds)
        per_core.append(answers / used_s)
    note = f"A of {_INSTANCES} addresses over UDP; answers over the gateway's processor time"
    bench.fact(GROUP, DNS, per_core, "/s", note=note)
    bench.fact(GROUP, "DNS answers per second, with the asker on the other core", rates, "/s")


def ask(where: str, seconds: float) -> int:
    """How many answers came, with so many questions in flight."""
    host, _, port = where.rpartition(":")
    name = b"".join(bytes((len(word),)) + word for word in (b"web", b"service", b"hq", b"internal")) + b"\0"
    packet = struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + name + struct.pack("!HH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((host, int(port)))
        asking.settimeout(1.0)
        for _ in range(_IN_FLIGHT):
            asking.send(packet)
        count, ends = 0, time.monotonic() + seconds
        while time.monotonic() < ends:
            with suppress(TimeoutError):
                asking.recv(2_048)
                count += 1
            asking.send(packet)
    return count


# --- xDS ----------------------------------------------------------------------------------------------------------


_REQUEST: Final = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/" + PATH.encode()),
    (b":authority", b"localhost"),
    (b"content-type", b"application/grpc"),
    (b"te", b"trailers"),
]
_PLENTY: Final = 1 << 30  # of window: nobody here waits for one


class _Stream(asyncio.Protocol):
    """A client with a connection of its own, as cheap as can be: what is measured is the gateway."""

    def __init__(self, streams: _Streams) -> None:
        self._streams, self._received = streams, b""

    def connection_made(self, transport: Any) -> None:
        self._streams.transports.append(transport)
        wants = pb.DiscoveryRequest(type_url=ResourceType.ENDPOINTS.value, resource_names=["web"])
        transport.write(
            frames.PREFACE
            + frames.settings({frames.INITIAL_WINDOW_SIZE: _PLENTY})
            + frames.window_update(0, _PLENTY)
            + frames.frame(frames.HEADERS, frames.END_HEADERS, 1, hpack.encode(_REQUEST))
            + frames.frame(frames.DATA, 0, 1, envelope(0, wants.SerializeToString()))
        )

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._streams.is_there(self._received):
            self._received = b""


@dataclass(slots=True)
class _Streams:
    """Clients of one gateway, which count what arrives.

    Attributes:
        mark: of the answer that is waited for; arrived: how many have it.
    """

    mark: bytes = b"127.0.1.0"
    arrived: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    transports: list[Any] = field(default_factory=list)

    def is_there(self, received: bytes) -> bool:
        """Whether it is in these bytes; counts it."""
        is_there = self.mark in received
        self.arrived += is_there
        self.changed.set()
        return is_there

    async def wait(self, count: int) -> None:
        """Return when so many have it."""
        async with asyncio.timeout(60):
            while self.arrived < count:
                self.changed.clear()
                await self.changed.wait()


async def _xds(bench: Bench, running: Programs, hq: Registry) -> None:
    gateway = await running.gateway("xds", hq)
    for count, changes in ((1, _CHANGES), (100 if bench.quick else 1_000, _CROWD_CHANGES)):
        async with _streams(gateway, count) as streams:
            took = [await _one_change(hq, streams, count, number) for number in range(changes)]
        for number in range(changes):
            await hq.delete(f"new-{number}")
        name = XDS if count == 1 else _CROWD.format(count)
        bench.fact(GROUP, name, [percentile(sorted(took), 0.99) * 1_000], "ms", note=f"{changes} changes")


@asynccontextmanager
async def _streams(gateway: GatewayProcess, count: int) -> AsyncIterator[_Streams]:
    streams, (host, _, port) = _Streams(), gateway.grpc.rpartition(":")
    try:
        for _ in range(count):
            await asyncio.get_running_loop().create_connection(lambda: _Stream(streams), host, int(port))
        await streams.wait(count)
        yield streams
    finally:
        for transport in streams.transports:
            transport.abort()


async def _one_change(hq: Registry, streams: _Streams, count: int, number: int) -> float:
    """An instance that is there becomes ready, with an address of its own by which it is known when it arrives."""
    id_, address = f"new-{number}", f"127.9.{number >> 8}.{number & 255}"
    await hq.put(id_, host=address, is_ready=False)
    streams.mark, streams.arrived = address.encode(), 0
    await hq.report(id_, is_ready=True)
    began = time.monotonic()
    await streams.wait(count)
    return time.monotonic() - began


async def run_envoy(bench: Bench) -> None:
    """The group `envoy`: requests through a real Envoy, on connections of their own, some 5 ms after each other."""
    try:
        path, version = await judges.envoy()
    except Missing as missing:
        bench.say(f"{BEHIND_ENVOY:10} {missing}")
        return
    (directory := bench.directory / "envoy").mkdir()
    async with proxy(directory, path, "DELTA_GRPC") as (at, _, port):
        load = asyncio.create_task(at.load())
        try:
            await within(lambda: bool(at.answered))
            await at.hq.put("web-1", host="127.0.1.2", port=port, is_ready=False)
            took = [await _takes_over(at, (number + 1) % 2, port) for number in range(_CHANGES)]
        finally:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)
    note = f"{version}, {_CHANGES} changes; p50 {percentile(sorted(took), 0.5) * 1_000:.1f} ms"
    bench.fact(BEHIND_ENVOY, ENVOY, [percentile(sorted(took), 0.99) * 1_000], "ms", note=note)


async def _takes_over(at: Balancer, number: int, port: int) -> float:
    """One of two becomes ready: seconds from the acknowledgement until it answers. Then the other one leaves."""
    at.answered.clear()
    await at.hq.report(f"web-{number}", is_ready=True)
    began = time.monotonic()
    await within(lambda: at.answered[f"127.0.1.{number + 1}:{port}"] > 0)
    took_s = time.monotonic() - began
    await at.hq.report(f"web-{1 - number}", is_ready=False)
    await uses(at, {f"127.0.1.{number + 1}"})
    return took_s


# --- Consul -------------------------------------------------------------------------------------------------------


async def _consul(bench: Bench, hq: Registry, gateway: GatewayProcess) -> None:
    took: list[float] = []
    for number in range(_CHANGES):
        is_ready = bool(number % 2)
        _, _, headers = await gateway.get("/v1/health/service/web?passing")
        waiting = asyncio.create_task(_answered(gateway, headers["x-consul-index"]))
        await asyncio.sleep(0.01)  # until the question waits
        await hq.report("web-0", is_ready=is_ready)
        began = time.monotonic()
        count, ended = await waiting
        assert count == _INSTANCES - 1 + is_ready, count
        took.append(max(0.0, ended - began))
    bench.fact(GROUP, QUERY, [percentile(sorted(took), 0.99) * 1_000], "ms", note=f"{_CHANGES} changes")


async def _answered(gateway: GatewayProcess, index: str) -> tuple[int, float]:
    _, body, _ = await gateway.get(f"/v1/health/service/web?passing&index={index}&wait=60s")
    found: list[Any] = json.loads(body)
    return len(found), time.monotonic()


if __name__ == "__main__":
    print(ask(sys.argv[1], float(sys.argv[2])), flush=True)
