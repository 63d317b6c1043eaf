"""`make fuzz DURATION=10m`: replicas over etcd, attacked for so long in all; exit code 1 if anything was found."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Final

import click
import psutil

from serving.flags import Duration
from store.embedded import EmbeddedEtcd
from tests.fuzz.callers import SECRET
from tests.fuzz.campaign import Campaign, Report
from tests.fuzz.guarded import Guarded
from tests.fuzz.siege import Siege
from tests.fuzz.target import FLAGS, Target, faults_in, guarded_by, started

_WARM_UP_S: Final = 20.0  # caches fill


async def without_security(directory: Path, duration_s: float, seed: int) -> Report:
    """A replica that asks nobody who they are."""
    async with started(directory, "--data", f"{directory}/etcd", *FLAGS) as target:
        first = await Campaign(target.grpc, target.http, seed + 1).run(min(_WARM_UP_S, duration_s / 10))
        before = _resident(target)
        report = await Campaign(target.grpc, target.http, seed).run(duration_s)
        report.faults += first.faults
        _look_at(target, report, before)
    return report


async def with_security(directory: Path, duration_s: float, seed: int) -> Report:
    """A replica with TLS, tokens, certificates and a policy."""
    guarded, etcd = Guarded(directory / "files"), EmbeddedEtcd(directory / "etcd-2")
    await etcd.start()
    try:
        async with guarded_by(directory, "--etcd", etcd.endpoint, *guarded.flags, *FLAGS) as target:
            siege, before = Siege(guarded, target, seed), _resident(target)
            report = await siege.run(duration_s)
            _look_at(target, report, before)
            print(f"proofs: {dict(sorted(siege.proofs.items()))}")
            print(f"{siege.kept:,} calls of somebody who may; {siege.spoiled_files} files that nobody can use")
            if SECRET in target.log_text() + guarded.files.audit.read_text():
                report.faults.append("a secret descriptor is in the log or the audit log")
    finally:
        await etcd.stop()
    return report


def _resident(target: Target) -> int:
    return int(psutil.Process(target.pid).memory_info().rss) if target.is_alive() else 0


def _look_at(target: Target, report: Report, before_bytes: int) -> None:
    report.faults += faults_in(target.log_text())
    report.faults += [] if target.is_alive() else ["the replica ended"]
    print(f"resident memory: {before_bytes >> 20} MiB, then {_resident(target) >> 20} MiB")


def _tell(what: str, report: Report) -> None:
    rate = report.requests / report.seconds
    print(f"{what}: seed {report.seed}: {report.requests:,} requests in {report.seconds:,.0f} s ({rate:,.0f}/s)")
    print(report.table())
    print(f"{what}: crashes, hangs, answers that nobody asked for, and trespasses: {len(report.faults)}")
    for fault in report.faults[:20]:
        print(f"  {fault:.2000}")


async def main(duration_s: float, seed: int) -> int:
    """Half of the time for each; the exit code."""
    found = 0
    with tempfile.TemporaryDirectory(prefix="hq-fuzz-") as directory:
        for what, attack in (("security off", without_security), ("security on", with_security)):
            report = await attack(Path(directory), duration_s / 2, seed)
            _tell(what, report)
            found += len(report.faults)
    return int(found > 0)


@click.command()
@click.option("--duration", type=Duration(), default="10m", show_default=True)
@click.option("--seed", type=int, default=secrets.randbelow(1 << 31), help="The same requests again.")
def fuzz(duration: float, seed: int) -> None:
    """Attack replicas with requests that are made at random and spoiled, with and without security."""
    os.nice(10)
    sys.exit(asyncio.run(main(duration, seed)))


if __name__ == "__main__":
    fuzz()
