"""`make fuzz DURATION=10m`: a replica with its own etcd, attacked for so long; exit code 1 if anything was found."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from pathlib import Path

import click
import psutil

from serving.flags import Duration
from tests.fuzz.campaign import Campaign, Report
from tests.fuzz.target import FLAGS, faults_in, started


async def main(duration_s: float, seed: int) -> int:
    with tempfile.TemporaryDirectory(prefix="hq-fuzz-") as directory:
        async with started(Path(directory), "--data", f"{directory}/etcd", *FLAGS) as target:
            memory = psutil.Process(target.pid).memory_info
            campaign = Campaign(target.grpc, target.http, seed + 1)
            await campaign.run(min(30.0, duration_s / 10))  # caches fill
            before = memory().rss
            report = await Campaign(target.grpc, target.http, seed).run(duration_s)
            report.faults += campaign.report.faults + faults_in(target.log_text())
            report.faults += [] if target.is_alive() else ["the replica ended"]
            grown_mib = (memory().rss - before) / (1 << 20) if target.is_alive() else float("nan")
    _tell(report, grown_mib)
    return int(bool(report.faults))


def _tell(report: Report, grown_mib: float) -> None:
    rate = report.requests / report.seconds
    print(f"seed {report.seed}: {report.requests:,} requests in {report.seconds:,.0f} s ({rate:,.0f}/s)")
    print(report.table())
    print(f"resident memory grew by {grown_mib:.0f} MiB")
    print(f"crashes, hangs, 5xx and INTERNAL: {len(report.faults)}")
    for fault in report.faults[:20]:
        print(f"  {fault}")


@click.command()
@click.option("--duration", type=Duration(), default="10m", show_default=True)
@click.option("--seed", type=int, default=secrets.randbelow(1 << 31), help="The same requests again.")
def fuzz(duration: float, seed: int) -> None:
    """Attack a replica with requests that are made at random and spoiled."""
    os.nice(10)
    sys.exit(asyncio.run(main(duration, seed)))


if __name__ == "__main__":
    fuzz()
