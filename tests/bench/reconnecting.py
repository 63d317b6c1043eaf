"""A mass reconnect: thousands of watches, in Go and Python, sit at one replica when it is killed and started again."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from hqpb.v1 import service_pb2
from tests.bench import raw, tools
from tests.bench.bench import Bench
from tests.bench.machine import ROOT
from tests.bench.stand import PREFIX, SERVICE, Stand, stand
from tests.bench.stats import percentile
from tests.bench.usage import cpu_s
from tests.support.replicas import ReplicaProcess
from tests.support.reserved_port import kept_addresses

GROUP = "reconnect"
_SERVICE = "lookup-100"
DURING, UNKNOWN = "during", "during, at a replica that no client knows of"
_LOOKUPS_PER_S = 100
_TIMED = (1, 4)  # the replicas whose lookups are timed: one that clients come to, and one that they do not know of
# Clients and other replicas have machines of their own: here they get what replicas with timed lookups leave.
_ELSEWHERE = ("chrt", "--idle", "0") if shutil.which("chrt") else ("nice", "-n", "19")
# All of them come from one address here.
ROOM = tuple(
    word
    for limit in ("streams", "streams-per-peer", "calls", "calls-per-peer", "connections", "connections-per-peer")
    for word in (f"--max-{limit}", "20000")
)


async def run(bench: Bench) -> None:
    """The group `reconnect`: 4,000 watches of grpc-go and 1,000 of the Python client, one replica killed, two left."""
    counts = (400, 100) if bench.quick else (4_000, 1_000)
    directory = bench.directory / GROUP
    directory.mkdir()
    program = await tools.go_program("reconnecting", directory / "go")
    if program is None:
        bench.say(f"{GROUP:10} {tools.NO_GO}: Python only")
    async with stand(directory, 23_000, ROOM, replicas=0) as made, AsyncExitStack() as stack:
        flags = [kept_addresses() for _ in range(3)]
        replicas = [await _started(made, stack, 0, flags[0])]
        addresses = ",".join(one[1] for one in flags)
        crowds: dict[str, asyncio.subprocess.Process] = {}
        for language, count in zip(("Go", "Python"), counts, strict=True):
            words = [str(program)] if language == "Go" else [sys.executable, "-m", "tests.bench.rewatchers"]
            if language == "Go" and program is None:
                continue
            crowd = await stack.enter_async_context(_crowd(words, addresses, count))
            assert crowd.stdout is not None
            assert await asyncio.wait_for(crowd.stdout.readline(), 240) == b"synced\n"
            crowds[language] = crowd
        replicas += [await _started(made, stack, number, flags[number]) for number in (1, 2)]
        unknown = await _started(made, stack, 4, kept_addresses())
        # Clients look for replicas that were away every 30 s at the latest: then they know of all three.
        before = await _lookups(replicas[1], asyncio.create_task(asyncio.sleep(10 if bench.quick else 35)))
        pids = [replica.pid for replica in replicas[1:]]
        spent_s = cpu_s(pids)
        fault_at = time.time() + 1.0
        telling = asyncio.create_task(_tell(crowds, fault_at))
        await asyncio.sleep(fault_at - time.time())
        await replicas[0].kill()
        restarted = asyncio.create_task(_started(made, stack, 3, flags[0]))
        during, elsewhere = await asyncio.gather(*(_lookups(one, telling) for one in (replicas[1], unknown)))
        spent_s = cpu_s(pids) - spent_s
        replicas[0] = await restarted
        count = sum(len(one["back_s"]) for one in telling.result().values())
        bench.fact(
            GROUP, "CPU of a replica per watch that came back", [spent_s / max(1, count) * 1e6], "µs", size=count
        )
        _note(bench, telling.result(), dict(zip(("Go", "Python"), counts, strict=True)))
        shares = [await _watchers(replica) for replica in replicas]
        for name, share in zip(("the one that was restarted", "second", "third"), shares, strict=True):
            bench.fact(GROUP, f"watches afterwards at {name}", [share], "")
        for crowd in crowds.values():
            crowd.kill()
        alone = await _without_watches(made, stack, replicas, flags[0])
        timed = {
            "before": before,
            DURING: during,
            UNKNOWN: elsewhere,
            "during a restart without watches": alone,
        }
        for when, times_ms in timed.items():
            bench.fact(GROUP, f"lookups {when}: p50", [percentile(times_ms, 0.5)], "ms", size=len(times_ms))
            bench.fact(GROUP, f"lookups {when}: p99", [percentile(times_ms, 0.99)], "ms", size=len(times_ms))
            bench.fact(GROUP, f"lookups {when}: slowest", [times_ms[-1]], "ms", size=len(times_ms))


async def _without_watches(
    made: Stand, stack: AsyncExitStack, replicas: Sequence[ReplicaProcess], flags: Sequence[str]
) -> list[float]:
    """Lookups while one replica is killed and starts again, and nobody comes back: what the machine costs them."""
    await asyncio.sleep(5)
    await replicas[0].kill()
    restarted = asyncio.create_task(_started(made, stack, 5, flags))
    times_ms = await _lookups(replicas[1], asyncio.create_task(asyncio.sleep(8)))
    await restarted
    return times_ms


async def _started(made: Stand, stack: AsyncExitStack, number: int, flags: Sequence[str]) -> ReplicaProcess:
    log = made.directory / f"replica-{number}.log"
    enter = () if number in _TIMED else _ELSEWHERE
    replica = ReplicaProcess([made.etcd.endpoint], PREFIX, log, [*flags, *ROOM], enter=enter)
    stack.push_async_callback(replica.kill)
    await replica.start()
    return replica


@asynccontextmanager
async def _crowd(words: Sequence[str], addresses: str, count: int) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(*_ELSEWHERE, *words, addresses, str(count), _SERVICE),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 22,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _tell(crowds: dict[str, asyncio.subprocess.Process], fault_at: float) -> dict[str, dict[str, Any]]:
    """When each watch was back, by language."""
    told = {}
    for crowd in crowds.values():
        assert crowd.stdin is not None
        crowd.stdin.write(f"{fault_at}\n".encode())
    for language, crowd in crowds.items():
        assert crowd.stdout is not None
        told[language] = json.loads(await asyncio.wait_for(crowd.stdout.readline(), 120))
    return told


async def _lookups(replica: ReplicaProcess, until: asyncio.Future[Any]) -> list[float]:
    """Milliseconds that lookups took, one after the other at a steady rate, in order of size."""
    request = service_pb2.GetInstanceRequest(id=f"{_SERVICE}.00001").SerializeToString()
    times_ms: list[float] = []
    gc.freeze()  # the population of this process is not looked through while others are timed

    async def ask(get: Callable[..., Awaitable[bytes]]) -> None:
        began = time.perf_counter()
        await get(request, timeout=30)
        times_ms.append((time.perf_counter() - began) * 1000)

    async with AsyncExitStack() as stack:
        call = raw.unary(await stack.enter_async_context(raw.channel(replica.grpc)), f"{SERVICE}/GetInstance")
        asked = []
        while not until.done():
            asked.append(asyncio.create_task(ask(call)))
            await asyncio.sleep(1 / _LOOKUPS_PER_S)
        await asyncio.gather(*asked)
    return sorted(times_ms)


async def _watchers(replica: ReplicaProcess) -> int:
    found = re.search(r"^hq_watchers (\d+)", (await replica.get("/metrics"))[1], re.MULTILINE)
    return int(found[1]) if found else 0


def _note(bench: Bench, told: dict[str, dict[str, Any]], counts: dict[str, int]) -> None:
    for language, one in told.items():
        times_s, count = sorted(one["back_s"]), counts[language]
        bench.fact(GROUP, f"{language}: watches not back within a minute", [count - len(times_s)], "", size=count)
        if times_s:
            for name, share in (("half", 0.5), ("99 of 100", 0.99), ("all", 1.0)):
                bench.fact(GROUP, f"{language}: {name} back after", [percentile(times_s, share)], "s", size=count)
        bench.fact(GROUP, f"{language}: streams opened for that", [one["streams"]], "", size=count)
