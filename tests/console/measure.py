"""How long pages take over many instances, and how soon a change is on the screen.

`python -m tests.console.measure [INSTANCES]`; HQ and the console are processes of their own.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Final

from hqclient import Client
from hqpb.v1 import instance_pb2 as ipb
from hqpb.v1 import service_pb2 as pb
from tests.console.chromium import FOUND, chromium, screen
from tests.console.real import ANY_ADDRESS, process
from tests.console.scene import Browser, browser_at, instance

PAGES: Final = (
    *("/", "/services", "/services/big", "/services/svc-7", "/instances", "/instances?readiness=not-ready"),
    *("/nodes", "/nodes/node-7", "/events", "/instances/default/svc-7-3"),
)
WATCHED: Final = ("/services/svc-7", "/")
_BATCH: Final = 500
_TIMES: Final = 60
_CHANGES: Final = 60
_SEEN: Final = """(wanted) => new Promise((done) => {
  const look = () => document.querySelector("main").textContent.replace(/\\s+/g, " ").includes(wanted);
  const told = () => { if (look()) { watch.disconnect(); done(performance.timeOrigin + performance.now()); } };
  const watch = new MutationObserver(told);
  watch.observe(document.body, { subtree: true, childList: true, characterData: true });
  told();
})"""


async def measure(count: int) -> None:
    """Print what was measured, in milliseconds."""
    async with process("hq.main", "dev", "--store", "memory", *ANY_ADDRESS, "--agents", "") as (hq, _):
        async with Client([hq]) as client:
            await _fill(client, count)
        async with process("console.main", "serve", "--http", "127.0.0.1:0", "--hq", hq) as (_, http):
            async with browser_at(f"http://{http}") as browser:
                await _pages(browser, count)
            if FOUND is not None:
                async with Client([hq]) as client:
                    for path in WATCHED:
                        await _live(client, f"http://{http}", path)


async def _pages(browser: Browser, count: int) -> None:
    print(f"{count} instances: {_TIMES} requests of each page, ms")
    for path in PAGES:
        took = []
        for _ in range(_TIMES):
            began = time.perf_counter()
            answer = await browser.get(path)
            took.append(1_000 * (time.perf_counter() - began))
            assert answer.status_code == 200, (path, answer.status_code)
        print(f"{path:34} {_figures(took)}", flush=True)


async def _live(client: Client, base: str, path: str) -> None:
    """From a report of an agent to the text of an open page."""
    one = instance("svc-7-extra", "svc-7", "node-7", ("r2",))
    await client.apply([one])
    begun = await client.begin_reporting("svc-7-extra", "r2", node="node-7")
    status = ipb.RevisionStatus(id="r2", incarnation=begun.incarnation)
    took = []
    async with chromium() as browser, screen(browser, base) as shown:
        await shown.open(path)
        await asyncio.sleep(2)
        ready = int("".join(filter(str.isdigit, await shown.page.locator("main b, main .figure").first.inner_text())))
        for number in range(_CHANGES):
            up = number % 2 == 0
            status.sequence += 1
            status.installed.status = ipb.CONDITION_STATUS_TRUE
            status.ready.status = ipb.CONDITION_STATUS_TRUE if up else ipb.CONDITION_STATUS_FALSE
            wanted = f"{ready + up:,}".replace(",", "\u202f")
            seeing = asyncio.create_task(shown.page.evaluate(_SEEN, wanted + (" of" if path != "/" else "of")))
            await asyncio.sleep(0.3 + 0.037 * (number % 20))  # at any moment of the console's turn
            began = time.time()
            await client.report("svc-7-extra", status, uid=begun.uid, node="node-7")
            took.append(await asyncio.wait_for(seeing, 20) - 1_000 * began)
    await client.delete("svc-7-extra")
    print(f"report to screen, {path:16} {_figures(took)}", flush=True)


def _figures(took: Sequence[float]) -> str:
    ordered = sorted(took)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return f"p50 {statistics.median(took):7.1f}  p99 {p99:7.1f}  longest {ordered[-1]:7.1f}"


async def _fill(client: Client, count: int) -> None:
    """A third in one service, the rest in a thousand; one in a hundred has not reported."""
    made = [_one(number, count) for number in range(count)]
    for at in range(0, count, _BATCH):
        some = made[at : at + _BATCH]
        await client.apply(some, timeout_s=60)
        heard = [one for number, one in enumerate(some) if number % 100]
        begin = [
            pb.BeginReportingRequest(instance_id=one.meta.id, revision_id="r2", node=one.spec.node_name)
            for one in heard
        ]
        begun = (await client.begin_many(begin, timeout_s=60)).result
        reports = [_report(one, result.answer) for one, result in zip(heard, begun, strict=True)]
        await client.report_many(reports, timeout_s=60)


def _report(one: ipb.Instance, begun: pb.BeginReportingResponse) -> pb.ReportStatusRequest:
    made = pb.ReportStatusRequest(instance_id=one.meta.id, uid=begun.uid, node=one.spec.node_name)
    made.revision.id, made.revision.incarnation, made.revision.sequence = "r2", begun.incarnation, 1
    made.revision.installed.status = made.revision.ready.status = ipb.CONDITION_STATUS_TRUE
    return made


def _one(number: int, count: int) -> ipb.Instance:
    node = f"node-{number % max(1, count // 20)}"
    if number % 3 == 0:
        return instance(f"big-{number}", "big", node, ("r1", "r2"))
    return instance(f"svc-{number % 1_000}-{number // 1_000}", f"svc-{number % 1_000}", node, ("r1", "r2"))


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
