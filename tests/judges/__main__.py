"""`make judges`: what foreign clients and suites say of our transport. Exit code 1: one that ran found something."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

import click

from tests.judges.judges import JUDGES, run_judge_here
from tests.judges.tools import FOLDER, install
from tests.judges.verdict import Verdict

_JOBS: Final = min(2, os.cpu_count() or 1)  # most of a judge's time is waiting


Runner = Callable[[str], tuple[Verdict, float]]


async def run_judges(names: Sequence[str], jobs: int, run: Runner = run_judge_here) -> int:
    """Run judges, so many at a time, each in a process; print lines as each ends; return the exit code."""
    began = time.monotonic()
    verdicts: list[Verdict] = []
    free = asyncio.Semaphore(jobs)

    async def report(name: str) -> None:
        async with free:
            verdict, took_s = await _run_apart(run, name)
        lines = [f"{name:<20}{verdict.line()} in {took_s:.0f} s"]
        lines += [f"    failed: {line}" for line in verdict.failed]
        lines += [f"    left out: {line}" for line in verdict.left_out]
        print("\n".join(lines), flush=True)
        verdicts.append(verdict)

    await asyncio.gather(*map(report, names))
    ran, bad = sum(verdict.ran for verdict in verdicts), sum(not verdict.good for verdict in verdicts)
    took_s = time.monotonic() - began
    print(f"{len(names)} judges: {ran} ran, {len(names) - ran} skipped, {bad} found something, in {took_s:.0f} s")
    return int(bad > 0)


async def _run_apart(run: Runner, name: str) -> tuple[Verdict, float]:
    """In a process of its own, whose end leaves the other judges alone."""
    began = time.monotonic()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, run, name)
        except BrokenProcessPool as error:
            return Verdict(failed=[f"all of it: its process ended: {error}"]), time.monotonic() - began


@click.command()
@click.option("--only", multiple=True, type=click.Choice([*JUDGES]), help="This judge; repeat it for several.")
@click.option("--list", "listing", is_flag=True, help="Print the judges' names.")
@click.option("--jobs", type=click.IntRange(1), default=_JOBS, show_default=True, help="So many judges at a time.")
@click.option("--install", "installing", is_flag=True, help=f"Get the judges that are missing, into {FOLDER}.")
def main(only: tuple[str, ...], listing: bool, jobs: int, installing: bool) -> None:
    """Let foreign clients and suites judge the transport."""
    if listing:
        print("\n".join(JUDGES))
    elif installing:
        asyncio.run(install())
    else:
        sys.exit(asyncio.run(run_judges(only or tuple(JUDGES), jobs)))


if __name__ == "__main__":
    main()
