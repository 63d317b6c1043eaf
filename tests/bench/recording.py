"""The recorder beside HQ: what following and writing cost, and how soon a day of a service is there."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

import httpx

from hqclient import Client
from tests.bench.bench import Bench
from tests.bench.pages import child, replica_of
from tests.bench.stats import percentile
from tests.bench.usage import cpu_s, memory_bytes
from tests.console.real import process
from tests.console.scene import instance

GROUP: Final = "recorder"
SHARE: Final = "processor of the recorder at 1,000 changes/s, in cores"
DRAWN: Final = "a day of a service counted: p99"
_SIZE: Final = 100_000
_CHANGES_S: Final = 1_000
_AT_ONCE: Final = 100
_READY_S: Final = 300.0
_COUNT: Final = "/history.v1.HistoryService/CountInstancesOverTime"


async def run(bench: Bench) -> None:
    """The group `recorder`: 1,000 changes a second of 100,000 instances; HQ, etcd and the recorder are processes."""
    size = 10_000 if bench.quick else _SIZE
    async with replica_of(bench, size) as hq:
        words = ("--dir", str(bench.directory / "record"), "--location", f"default={hq.grpc}", "--http", "127.0.0.1:0")
        began = time.monotonic()
        async with (
            process("recorder.main", "serve", "--grpc", "127.0.0.1:0", *words) as (_, http),
            httpx.AsyncClient(base_url=f"http://{http}", timeout=60, trust_env=False) as asking,
            Client([hq.grpc]) as client,
        ):
            pid = child("recorder.main")
            async with asyncio.timeout(_READY_S):
                while f"\nhq_recorder_instances {size}" not in (await asking.get("/metrics")).text:
                    await asyncio.sleep(0.2)
            bench.fact(GROUP, f"{size:,} instances on record after", [time.monotonic() - began], "s")
            shares, changes = [], 0
            for _ in range(bench.rounds):
                used_s, began = cpu_s([pid]), time.monotonic()
                changes += await _change(client, 5 * bench.seconds)
                shares.append((cpu_s([pid]) - used_s) / (time.monotonic() - began))
            each_s = changes / (bench.rounds * 5 * bench.seconds)
            bench.fact(GROUP, SHARE, shares, "", note=f"{each_s:,.0f} changes a second")
            bench.fact(GROUP, f"memory of the recorder with {size:,} instances", [memory_bytes(pid) / 1e6], "MB")
            for service, name in (("svc-7", DRAWN), ("big", f"a day of a service of {size // 3:,} instances: p99")):
                bench.fact(GROUP, name, [percentile(sorted(await _days(asking, service, 100)), 0.99)], "ms")


async def _change(client: Client, for_s: float) -> int:
    """Instances of svc-0 to svc-999 get another label, steadily. Returns how many did."""
    numbers, done, began = count(1), 0, time.monotonic()
    while (now := time.monotonic() - began) < for_s:
        if done > now * _CHANGES_S:
            await asyncio.sleep(done / _CHANGES_S - now)
        written = [
            instance(f"svc-{n % 1_000}-0", f"svc-{n % 1_000}", "node-7")
            for n in (next(numbers) for _ in range(_AT_ONCE))
        ]
        for one in written:
            one.meta.labels["turn"] = str(done)
        await client.apply(written)
        done += _AT_ONCE
    return done


async def _days(asking: httpx.AsyncClient, service: str, times: int) -> list[float]:
    """How long it takes, in ms, to count the instances of a service over the last day, in 288 steps."""
    until = datetime.now(UTC)
    wanted = {
        "serviceId": service,
        "since": (until - timedelta(days=1)).isoformat(timespec="milliseconds"),
        "until": until.isoformat(timespec="milliseconds"),
        "step": "300s",
    }
    took = []
    for _ in range(times):
        began = time.perf_counter()
        answer = await asking.post(_COUNT, json=wanted)
        assert answer.status_code == 200, answer.text
        took.append(1_000 * (time.perf_counter() - began))
    return took
