"""The console over many instances: how long each page takes, and how soon a change is on the screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
import psutil

from hqclient import Client
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as ipb
from store.embedded import EmbeddedEtcd, find_etcd
from tests.bench.bench import Bench
from tests.bench.filling import MAX_TXN_OPS, fill
from tests.bench.population import Population, Stored
from tests.bench.stand import PREFIX
from tests.bench.stats import percentile
from tests.bench.usage import cpu_s, memory_bytes
from tests.console.chromium import FOUND, chromium, screen
from tests.console.real import process
from tests.console.scene import Browser, browser_at, instance
from tests.support.replicas import ReplicaProcess

GROUP: Final = "console"
LARGE: Final = "console-large"
_SIZES: Final = {GROUP: 100_000, LARGE: 1_000_000}
_READY_S: Final = 900.0
SLOWEST: Final = "the slowest of all pages: p99"
SEEN: Final = "from a report to an open page of a service: p99"
PAGES: Final = (
    *("/", "/services", "/services/big", "/services/svc-7", "/instances", "/instances?readiness=not-ready"),
    *("/nodes", "/nodes/node-000007.dc1", "/events", "/instances/default/svc-7-3"),
)
_FREE: Final = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
_CHANGED: Final = "/services/svc-7"
_CHANGES: Final = 60
_SEEN: Final = """(wanted) => new Promise((done) => {
  const look = () => document.querySelector(".big .numbers").textContent === wanted;
  const told = () => { if (look()) { watch.disconnect(); done(performance.timeOrigin + performance.now()); } };
  const watch = new MutationObserver(told);
  watch.observe(document.body, { subtree: true, childList: true, characterData: true });
  told();
})"""


class Services(Population):
    """A third in one service, the rest in a thousand; one in a hundred has not reported."""

    def _names(self) -> Iterator[tuple[str, str]]:
        for number in range(self.size):
            service = f"svc-{number % 1_000}" if number % 3 else "big"
            yield service, f"{service}-{number // 1_000 if number % 3 else number}"

    def _stored(self, number: int, service: str, instance_id: str, uid: int, word: int) -> Stored:
        made = super()._stored(number, service, instance_id, uid, word)
        silent = storage_pb2.StatusRecord(uid=uid, write_id=word ^ 1).SerializeToString()
        return made if number % 100 else made._replace(status=silent)


async def run(bench: Bench, group: str = GROUP) -> None:
    """The group `console`, or `console-large`; HQ, its etcd, the console and the CMS are processes of their own."""
    size = 10_000 if bench.quick else _SIZES[group]
    async with replica_of(bench, size) as hq:
        console = ("console.main", "serve", "--http", "127.0.0.1:0", "--hq", hq.grpc)
        if group == LARGE:
            async with _start(bench, "console", size, *console), _cms(bench, size, hq.grpc):
                pass
        async with process(*console) as (_, http):
            async with browser_at(f"http://{http}") as browser:
                await _pages(bench, browser, size, (hq.pid, child("console.main")), group)
            if FOUND is not None and group == GROUP:
                async with Client([hq.grpc]) as client:
                    await _live(bench, client, f"http://{http}")


@asynccontextmanager
async def _start(bench: Bench, name: str, size: int, *words: str) -> AsyncIterator[None]:
    """A controller over so many instances: how long until it is ready, what that costs, and what it holds then."""
    began = time.monotonic()
    async with process(*words) as (_, http), httpx.AsyncClient(base_url=f"http://{http}", timeout=60) as asking:
        pid = child(words[0])
        async with asyncio.timeout(_READY_S):
            while (await asking.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.2)
        bench.fact(LARGE, f"{name} over {size:,} instances: ready after", [time.monotonic() - began], "s")
        bench.fact(LARGE, f"{name} over {size:,} instances: processor until then", [cpu_s([pid])], "s")
        await asyncio.sleep(5)  # what the start has left behind is given back
        bench.fact(LARGE, f"{name} over {size:,} instances: memory", [memory_bytes(pid) / 1e6], "MB")
        yield


@asynccontextmanager
async def _cms(bench: Bench, size: int, hq: str) -> AsyncIterator[None]:
    etcd = EmbeddedEtcd(bench.directory / "cms-etcd", binary=find_etcd())
    await etcd.start()
    words = ("cms.main", "serve", "--etcd", etcd.endpoint, "--location", f"default={hq}", *_FREE)
    try:
        async with _start(bench, "CMS", size, *words):
            yield
    finally:
        await etcd.kill()


@asynccontextmanager
async def replica_of(bench: Bench, size: int) -> AsyncIterator[ReplicaProcess]:
    etcd = EmbeddedEtcd(
        bench.directory / "console-etcd",
        binary=find_etcd(),
        quota_bytes=8 << 30,
        extra_flags=(f"--max-txn-ops={MAX_TXN_OPS}", "--max-request-bytes=16777216"),
    )
    await etcd.start()
    replica = ReplicaProcess([etcd.endpoint], PREFIX, bench.directory / "console-hq.log")
    try:
        await fill(etcd.endpoint, Services(size), PREFIX, with_raw=False)
        await replica.start(until_ready=False)
        async with asyncio.timeout(_READY_S):
            while (await replica.get("/readyz"))[0] != 200:
                await asyncio.sleep(0.2)
        yield replica
    finally:
        await replica.kill()
        await etcd.kill()


def child(module: str) -> int:
    return next(one.pid for one in psutil.Process().children() if module in one.cmdline())


async def _pages(bench: Bench, browser: Browser, size: int, pids: tuple[int, int], group: str) -> None:
    slowest = 0.0
    for path in PAGES:
        took, cpu = [], []
        for number in range(-2, 10 * bench.rounds):
            used_s, began = cpu_s(pids), time.perf_counter()
            answer = await browser.get(path)
            assert answer.status_code == 200, (path, answer.status_code)
            if number >= 0:  # the first ones make connections, and look at each instance for the first time
                took.append(1_000 * (time.perf_counter() - began))
                cpu.append(1_000 * (cpu_s(pids) - used_s))
        note = f"processor time of HQ and console {sum(cpu) / len(cpu):.0f} ms"
        bench.fact(group, f"{path} over {size:,} instances", took, "ms", note=note)
        slowest = max(slowest, percentile(sorted(took), 0.99))
    name = SLOWEST if group == GROUP else f"{SLOWEST}, {size:,} instances"
    bench.fact(group, name, [slowest], "ms")


async def _live(bench: Bench, client: Client, base: str) -> None:
    """From the acknowledged report of an agent to the text of an open page."""
    one = instance("svc-7-extra", "svc-7", "node-7", ("r2",))
    await client.apply([one])
    begun = await client.begin_reporting("svc-7-extra", "r2", node="node-7")
    status = ipb.RevisionStatus(id="r2", incarnation=begun.incarnation)
    took = []
    async with chromium() as browser, screen(browser, base) as shown:
        await shown.open(_CHANGED)
        await asyncio.sleep(2)
        ready, wanted = map(int, (await shown.page.locator(".big .numbers").inner_text()).split(" of "))
        for number in range(_CHANGES):
            up = number % 2 == 0
            status.sequence += 1
            status.installed.status = ipb.CONDITION_STATUS_TRUE
            status.ready.status = ipb.CONDITION_STATUS_TRUE if up else ipb.CONDITION_STATUS_FALSE
            seeing = asyncio.create_task(shown.page.evaluate(_SEEN, f"{ready + up} of {wanted}"))
            await asyncio.sleep(0.3 + 0.037 * (number % 20))  # at any moment of the console's turn
            began = time.time()
            await client.report("svc-7-extra", status, uid=begun.uid, node="node-7")
            took.append(await asyncio.wait_for(seeing, 20) - 1_000 * began)
    await client.delete("svc-7-extra")
    bench.fact(GROUP, "from a report to an open page of a service", took, "ms")
    bench.fact(GROUP, SEEN, [percentile(sorted(took), 0.99)], "ms")
