"""The command: `make faults OF=control DURATION=4m`. Exit code 1: a promise is broken; 2: too little happened."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from pathlib import Path

import click

from serving.flags import Duration
from store.embedded import EmbeddedEtcd
from tests.control.faults import FaultRun
from tests.control.judge import violations
from tests.support.etcd import RELEASES, newest_of

_FAULT_S = 1.2  # from one fault to the next


@click.command()
@click.option("--duration", type=Duration(), default="4m", show_default=True, help="How long faults are struck, about.")
@click.option("--seed", type=int, default=None, help="Which faults; default: made up, and printed.")
@click.option("--etcd", "version", type=click.Choice(RELEASES), default="3.5", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Directory for logs.")
def cli(duration: float, seed: int | None, version: str, out: Path | None) -> None:
    """Strike processes of a controller in the middle of their work, and check what came of it."""
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    directory = out or Path(tempfile.mkdtemp(prefix="control-"))
    directory.mkdir(parents=True, exist_ok=True)
    click.echo(f"seed {seed}, logs in {directory}")
    sys.exit(asyncio.run(_run(directory, seed, max(1, round(duration / _FAULT_S)), version)))


async def _run(directory: Path, seed: int, faults: int, version: str) -> int:
    etcd = EmbeddedEtcd(directory / "etcd", binary=newest_of(version))
    await etcd.start()
    try:
        run = FaultRun(directory, seed, faults, etcd)
        story = await run.run()
    finally:
        await etcd.kill()
    found = violations(story)
    struck = ", ".join(f"{count} {kind}" for kind, count in sorted(run.struck.items()))
    click.echo(
        f"faults: {struck}; {story.acks} orders, {len(story.printed)} effects, {len(story.acting_since)} takeovers"
    )
    for violation in found[:50]:
        click.echo(violation)
    click.echo(f"{len(found)} violations")
    if found:
        return 1
    return 0 if story.acks > 2 * faults and len(story.acting_since) > faults / 20 else 2
