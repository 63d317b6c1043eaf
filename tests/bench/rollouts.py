"""Nanny at size: orders to one of 1,000 services with 100,000 or a million instances, and a roll-out over 10,000.

Real processes of Nanny over etcd and of HQ over memory (a million: over an etcd, too); the agents are simulated in this
process: an instance that is switched needs START_S to be ready.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from hqclient import Client
from hqclient.credential_files import CredentialFiles
from nannyctl.nanny_server import NannyServer
from nannypb.v1 import service_pb2 as pb
from store.embedded import EmbeddedEtcd
from tests.bench.bench import Bench
from tests.bench.stats import percentile
from tests.bench.usage import memory_bytes
from tests.rig.controller_faults import Process
from tests.support.following_agents import following_agents

GROUP: Final = "nanny"
LARGE: Final = "nanny-large"
SERVICES: Final = 1_000
_PER_SERVICE: Final = {GROUP: 100, LARGE: 1_000}
WIDE: Final = 10_000
PER_NODE: Final = 100
MIN_READY_S: Final = 1
BATCHES: Final = 10
_FREE: Final = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
_WIDE_NAMES: Final = [f"wide-{number}" for number in range(WIDE)]


async def run(bench: Bench, group: str = GROUP) -> None:
    """The group `nanny`, or `nanny-large`."""
    services = SERVICES // 50 if bench.quick else SERVICES
    async with nanny_and_hq(bench.directory, over_etcd=group == LARGE) as (nanny, hq, pid):
        await _many_services(bench, nanny, group, services)
        if group == LARGE:
            name = f"memory of Nanny with {services * _PER_SERVICE[group]:,} instances"
            bench.fact(group, name, [memory_bytes(pid) / 1e6], "MB")
            return
        async with Client([hq]) as client:
            await _wide_roll_out(bench, nanny, client)


@asynccontextmanager
async def nanny_and_hq(directory: Path, *, over_etcd: bool = False) -> AsyncIterator[tuple[NannyServer, str, int]]:
    """Nanny, the address of its HQ, and the id of Nanny's process.

    `over_etcd`: HQ has an etcd of its own; else its store is in its memory, which sorts all keys for each page.
    """
    async with AsyncExitStack() as stack:
        etcd = EmbeddedEtcd(directory / "nanny-etcd")
        await etcd.start()
        stack.push_async_callback(etcd.kill)
        kept: tuple[str, ...] = ("dev", "--store", "memory")
        if over_etcd:
            of_hq = EmbeddedEtcd(directory / "nanny-hq-etcd", quota_bytes=8 << 30)
            await of_hq.start()
            stack.push_async_callback(of_hq.kill)
            kept = ("serve", "--etcd", of_hq.endpoint)
        hq = Process(("hq.main", *kept, *_FREE), directory / "nanny-hq.log")
        stack.push_async_callback(hq.kill)
        await hq.start()
        words = ("nanny.main", "serve", "--etcd", etcd.endpoint, "--location", f"default={hq.grpc}", *_FREE)
        nanny = Process(words, directory / "nanny.log")
        stack.push_async_callback(nanny.kill)
        await nanny.start()
        server = NannyServer((nanny.grpc,), 30.0, CredentialFiles())
        while not (await server.call("GetControl", pb.GetControlRequest())).control.acting:
            await asyncio.sleep(0.1)
        assert nanny.running is not None
        yield server, hq.grpc, nanny.running.pid


async def _many_services(bench: Bench, nanny: NannyServer, group: str, services: int) -> None:
    """All services are prepared one after the other; then any of them takes orders."""
    each = _PER_SERVICE[group]
    count = services * each
    end = "" if group == GROUP else f", {count:,} instances"
    names = [f"s{number}" for number in range(services)]
    together = asyncio.Semaphore(16)

    async def made(place: int, name: str) -> None:
        async with together:
            await nanny.call("CreateService", pb.CreateServiceRequest(service_id=name))
            await add_snapshot(nanny, name, "r1", [f"{name}-{number}" for number in range(each)], place * each)

    await asyncio.gather(*(made(place, name) for place, name in enumerate(names)))
    began = time.monotonic()
    under_load = [await order_ms(nanny, name, pb.TARGET_PREPARED) for name in names]
    note = f"{services:,} services, {count:,} instances"
    name = f"an order while all others are being written to HQ, p99{end}"
    bench.fact(group, name, [p99(under_load)], "ms", note=note)
    await all_services(nanny, lambda one: one.pending_events == 0 and "to write" not in str(one), max(400, count / 500))
    rate = count / (time.monotonic() - began)
    bench.fact(group, f"instances created in HQ{end}", [rate], "per s", note=note)
    rng = random.Random(1)
    for _ in range(bench.rounds):
        alone = [
            await order_ms(nanny, rng.choice(names), pb.TARGET_CREATED, fill_pods_configuration=True)
            for _ in range(200)
        ]
        bench.fact(group, f"an order, p99{end}", [p99(alone)], "ms", note=note)


async def _wide_roll_out(bench: Bench, nanny: NannyServer, client: Client) -> None:
    """Agents that take a second; Nanny shall add little to that."""
    info = pb.InfoAttributes(rollout=pb.RolloutPolicy(max_unavailable="10%", min_ready_s=MIN_READY_S, soak_s=0))
    await nanny.call("CreateService", pb.CreateServiceRequest(service_id="wide", info=info))
    took = [0.0, 0.0]
    async with following_agents(client, ["wide"], random.Random(1)):
        for title in ("r1", "r2"):
            snapshot = await add_snapshot(nanny, "wide", title, _WIDE_NAMES)
            steps = ((pb.TARGET_PREPARED, pb.CURRENT_STATE_PREPARED), (pb.TARGET_ACTIVE, pb.CURRENT_STATE_ACTIVE))
            for number, (target, state) in enumerate(steps):
                began = time.monotonic()
                order = pb.SetTargetRequest(service_id="wide", snapshot_id=snapshot, target=target)
                await nanny.call("SetTarget", order)
                await _until(nanny, snapshot, state)
                took[number] = time.monotonic() - began
            bench.say(f"{title}: prepared in {took[0]:.1f} s, active in {took[1]:.1f} s")
    note = f"{WIDE:,} instances, {BATCHES} batches; an agent takes 0.4 to 1 s, and {MIN_READY_S} s of readiness"
    bench.fact(GROUP, "a roll-out: prepared everywhere", [took[0]], "s", note=note)
    bench.fact(GROUP, "a roll-out: switched, batch by batch", [took[1]], "s", note=note)
    own = took[1] - BATCHES * (1.0 + MIN_READY_S)
    bench.fact(GROUP, "a roll-out: what a batch takes beyond its agents", [own / BATCHES], "s", note=note)


async def add_snapshot(nanny: NannyServer, service: str, title: str, names: list[str], first: int = 0) -> str:
    """`first`: so many instances of other services are on nodes already."""
    instances = [{"id": name, "node": f"n{number // PER_NODE}"} for number, name in enumerate(names, first)]
    revision = {"id": title, "container": [{"name": "main", "command": ["run", title]}]}
    content = json.dumps({"service": service, "instances": instances, "revisions": [revision]}).encode()
    answer = await nanny.call("CreateSnapshot", pb.CreateSnapshotRequest(service_id=service, content=content))
    return str(answer.snapshot.id)


async def order_ms(nanny: NannyServer, service: str, target: pb.Target, **more: Any) -> float:
    began = time.perf_counter()
    await nanny.call("SetTarget", pb.SetTargetRequest(service_id=service, target=target, **more))
    return (time.perf_counter() - began) * 1000


async def all_services(nanny: NannyServer, holds: Any, at_most_s: float = 400) -> None:
    async with asyncio.timeout(at_most_s):
        while True:
            services = (await nanny.call("ListServices", pb.ListServicesRequest())).service
            if all(holds(one) for one in services):
                return
            await asyncio.sleep(1.0)


async def _until(nanny: NannyServer, snapshot: str, state: pb.CurrentState) -> None:
    async with asyncio.timeout(300):
        while True:
            service = (await nanny.call("GetService", pb.GetServiceRequest(service_id="wide"))).service
            if any(one.snapshot_id == snapshot and one.current == state for one in service.snapshot):
                return
            await asyncio.sleep(0.2)


def p99(taken: list[float]) -> float:
    return percentile(sorted(taken), 0.99)
