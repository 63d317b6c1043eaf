"""A soak: mixed load for long, with replicas, the gateway and watchers coming and going; does anything grow?

One replica and one gateway stay for the whole time: a leak shows in what lives long. The other two replicas are
restarted in turn, a second gateway comes and goes, and so do watchers.
"""

from __future__ import annotations

import asyncio
import csv
import re
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from store.embedded import EtcdBinary
from tests.rig.installation import Installation
from tests.rig.load import Amounts, Load
from tests.rig.recording import Log
from tests.rig.slope import Slope, slope
from tests.rig.warming import prepare, warm_up
from tests.support.replicas import ReplicaProcess

# What grows up to its limit by design has a small one, and has reached it before anything counts: the history for
# watches within a minute of this load, requests that are remembered and the gateway's last answers in the warm-up.
FLAGS = ("--compact-every=60s", "--history-bytes=256KiB", "--json-bytes=1MiB")
FRONT_FLAGS = ("--last-good-bytes=256KiB",)
# Garbage in circles is looked for after many objects only: so many calls that this happens every few minutes.
MIXED = Amounts(instances=40, uploaders=3, agents=20, readers=3, watchers=6, pause_s=0.05)
_SETTLE_SHARE = 0.25  # of the time, before anything counts: windows fill, allocators find their size
_METRICS = {"process_resident_memory_bytes": "memory_mb", "process_open_fds": "descriptors"}
_METRICS |= {"hq_tasks": "tasks"}
_LINE = re.compile(r"^(\w+) (\S+)$", re.MULTILINE)


class Samples:
    """Measurements of one process over time, by what was measured."""

    def __init__(self) -> None:
        self.times_s: list[float] = []
        self.values: defaultdict[str, list[float]] = defaultdict(list)

    async def take(self, replica: ReplicaProcess) -> None:
        """From its /metrics, and its threads from the kernel where that tells."""
        status, text = await replica.get("/metrics")
        if status != 200:
            return
        found = {_METRICS[name]: float(value) for name, value in _LINE.findall(text) if name in _METRICS}
        found["memory_mb"] /= 1 << 20
        kernel = Path(f"/proc/{replica.pid}/status")
        if kernel.exists() and (told := re.search(r"^Threads:\s+(\d+)", kernel.read_text(), re.MULTILINE)):
            found["threads"] = float(told[1])
        self.times_s.append(time.monotonic())
        for name, value in found.items():
            self.values[name].append(value)

    def write(self, path: Path) -> None:
        """All of them, as CSV, for who wants to see the line itself."""
        began = self.times_s[0] if self.times_s else 0.0
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["seconds", *self.values])
            for at, *values in zip(self.times_s, *self.values.values(), strict=True):
                rows.writerow([round(at - began, 1), *values])

    def slopes(self) -> dict[str, Slope]:
        """Without what came before it had settled."""
        first = int(len(self.times_s) * _SETTLE_SHARE)
        return {name: slope(self.times_s[first:], values[first:]) for name, values in self.values.items()}


async def soak(binary: EtcdBinary, directory: Path, duration_s: float, seed: int, say: Callable[[str], None]) -> bool:
    """Run it and print the slopes; whether everything is flat."""
    hq = Installation(directory, binary, 0, FLAGS, gateway_flags=FRONT_FLAGS)
    log = Log(directory / "calls.jsonl.gz")
    samples = {"replica": Samples(), "gateway": Samples()}
    try:
        await hq.cluster.start()
        await hq.start()
        assert hq.gateway is not None
        await prepare(hq.addresses[0])
        await asyncio.gather(*(warm_up(address) for address in (hq.addresses[0], hq.gateway.grpc)))
        load = Load(hq, log, MIXED, seed)
        await load.start()
        try:
            await _measure(hq, samples, duration_s, say, lambda: log.operations)
        finally:
            await load.stop()
    finally:
        log.close()
        await hq.close()
        for name, taken in samples.items():
            taken.write(directory / f"{name}.csv")
    return _told(samples, log.operations, say)


async def _measure(
    hq: Installation,
    samples: dict[str, Samples],
    duration_s: float,
    say: Callable[[str], None],
    done: Callable[[], int],
) -> None:
    coming_and_going = asyncio.create_task(_come_and_go(hq))
    ends = time.monotonic() + duration_s
    said = 0.0
    try:
        while time.monotonic() < ends:
            await asyncio.sleep(min(5.0, duration_s / 60))
            for name, process in (("replica", hq.seats[0].replica), ("gateway", hq.gateway)):
                assert process is not None
                await samples[name].take(process)
            if coming_and_going.done():
                coming_and_going.result()
            if time.monotonic() - said > 60.0:
                said = time.monotonic()
                now = {name: round(values[-1], 1) for name, values in samples["replica"].values.items()}
                say(f"... {ends - said:.0f} s to go, {done()} operations, the replica that stays: {now}")
    finally:
        coming_and_going.cancel()
        await asyncio.gather(coming_and_going, return_exceptions=True)


async def _come_and_go(hq: Installation) -> None:
    """The other replicas are restarted in turn, in order and by force; another gateway lives for a while."""
    turn = 0
    while True:
        await asyncio.sleep(20.0)
        seat = hq.seats[1 + turn % 2]
        await (seat.kill() if turn % 3 == 2 else seat.terminate())
        await asyncio.sleep(2.0)
        await seat.start()
        if turn % 3 == 0:
            await _short_lived_gateway(hq, turn)
        turn += 1


async def _short_lived_gateway(hq: Installation, turn: int) -> None:
    log = hq.directory / f"another-gateway-{turn}.log"
    log.touch()
    gateway = hq.new_gateway(log)
    try:
        await gateway.start()
        await asyncio.sleep(5.0)
    finally:
        await gateway.kill()


def _told(samples: dict[str, Samples], operations: int, say: Callable[[str], None]) -> bool:
    say(f"{operations} operations")
    say(f"{'process':10} {'what':12} {'mean':>10} {'per hour':>12} {'± (99 %)':>12}")
    flat = True
    for process, taken in samples.items():
        for what, found in taken.slopes().items():
            flat = flat and found.is_flat
            words = "flat" if found.is_flat else "GROWS"
            say(f"{process:10} {what:12} {found.mean:10.1f} {found.per_hour:+12.2f} {found.plus_minus:12.2f}  {words}")
    return flat
