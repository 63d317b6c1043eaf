"""`make judges`: what foreign clients and suites say of our transport. Exit code 1: one that ran found something."""

from __future__ import annotations

import asyncio
import sys
import time

import click

from tests.judges.judges import JUDGES, run_judge
from tests.judges.tools import FOLDER, install


async def run_judges(names: tuple[str, ...]) -> int:
    """Each judge in turn, a line for each; the exit code."""
    found = skipped = 0
    for name in names:
        began = time.monotonic()
        verdict = await run_judge(name)
        print(f"{name:<20}{verdict.line()} in {time.monotonic() - began:.0f} s", flush=True)
        for line in verdict.failed:
            print(f"    failed: {line}", flush=True)
        for line in verdict.left_out:
            print(f"    left out: {line}", flush=True)
        found += not verdict.good
        skipped += not verdict.ran
    print(f"{len(names)} judges: {len(names) - skipped} ran, {skipped} skipped, {found} found something")
    return int(found > 0)


@click.command()
@click.option("--only", multiple=True, type=click.Choice([*JUDGES]), help="This judge; repeat it for several.")
@click.option("--list", "listing", is_flag=True, help="Print the judges' names.")
@click.option("--install", "installing", is_flag=True, help=f"Get the judges that are missing, into {FOLDER}.")
def main(only: tuple[str, ...], listing: bool, installing: bool) -> None:
    """Let foreign clients and suites judge the transport."""
    if listing:
        print("\n".join(JUDGES))
    elif installing:
        asyncio.run(install())
    else:
        sys.exit(asyncio.run(run_judges(only or tuple(JUDGES))))


if __name__ == "__main__":
    main()
