"""`python -m tests.bench`: run the benchmark, or make documents of what it found."""

from __future__ import annotations

import os

# Before grpc is imported: the load generators are started by a process in which grpc's threads run.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import asyncio
import contextlib
import tempfile
import time
from functools import partial
from pathlib import Path

import click
import uvloop

from serving import compiled
from store.embedded import find_etcd
from tests.bench import (
    abuse,
    agents,
    changes,
    costs,
    drills,
    failures,
    federated,
    feeds,
    gateways,
    heartbeats,
    hostagents,
    leave,
    libraries,
    lookups,
    mixed,
    orders,
    pages,
    peer_programs,
    peers,
    processes,
    reconnecting,
    recording,
    repairs,
    report,
    rollouts,
    scale,
    security,
    single,
    sizes,
    storage,
    table,
    tools,
    transport,
    watching,
)
from tests.bench.bench import Bench
from tests.bench.machine import ROOT, header
from tests.bench.results import Results, loaded

_MODULES = (
    *(
        lookups,
        single,
        transport,
        heartbeats,
        changes,
        watching,
        feeds,
        sizes,
        federated,
        processes,
        storage,
        mixed,
        security,
        abuse,
    ),
    gateways,
    hostagents,
    drills,
    agents,
    failures,
    reconnecting,
    leave,
    libraries,
    repairs,
    rollouts,
    orders,
    pages,
    recording,
    peers,
)
_QUICK = ("lookups", "heartbeats", "changes", "watch", "sizes")  # what fits into three minutes
_LARGE = {module.LARGE: partial(module.run, group=module.LARGE) for module in (leave, repairs, rollouts, pages)}
_USUAL = {module.GROUP: module.run for module in _MODULES} | {gateways.BEHIND_ENVOY: gateways.run_envoy}
_GROUPS = _USUAL | _LARGE
_PAGE = ROOT / "docs" / "performance.md"
_RESULTS = ROOT / "docs" / "performance" / "results.json"


@click.group(invoke_without_command=True)
@click.pass_context
def cli(context: click.Context) -> None:
    """HQ, an empty handler of the same stack and raw etcd, side by side."""
    if context.invoked_subcommand is None:
        context.invoke(run)


@cli.command()
@click.option("--quick", is_flag=True, envvar="QUICK", help="Fewer cases, shorter and fewer rounds: under 3 minutes.")
@click.option(
    "--cases",
    default="",
    envvar="CASES",
    help=f"Comma-separated, of: {', '.join(_GROUPS)}.  [default: all but *-large; quick: {', '.join(_QUICK)}]",
)
@click.option("--rounds", default=0, help="Interleaved rounds per case.  [default: 5, quick 2]")
@click.option("--seconds", default=0.0, help="Of load on each side in each round.  [default: 3, quick 0.5]")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Merge the results into this JSON file.")
@click.option("--scratch", type=click.Path(path_type=Path), default=None, help="Where the etcds keep their data.")
@click.option(
    "--kept", type=click.Path(path_type=Path), default=None, help="Fill large etcds here, and use them again."
)
def run(
    quick: bool, cases: str, rounds: int, seconds: float, out: Path | None, scratch: Path | None, kept: Path | None
) -> None:
    """Measure, print a table, keep the results as JSON."""
    try:
        tools.check()
    except tools.ToolsMissing as error:
        raise click.ClickException(str(error)) from error
    if out is not None and compiled.form() != "compiled":
        raise click.ClickException(
            "--out: figures are of the compiled transport only: run `make compile` and try again"
        )
    names = [name.strip() for name in cases.split(",") if name.strip()] or list(_QUICK if quick else _USUAL)
    if unknown := [name for name in names if name not in _GROUPS]:
        raise click.UsageError(f"there is no case {unknown[0]!r}: choose of {', '.join(_GROUPS)}")
    rounds, seconds = rounds or (2 if quick else 5), seconds or (0.5 if quick else 3.0)
    with tempfile.TemporaryDirectory(prefix="hq-bench-", dir=scratch) as directory:
        bench = Bench(Path(directory), quick, rounds, seconds, click.echo, kept=kept)
        bench.results.header = header(find_etcd(), quick=quick, rounds=rounds, seconds=seconds)
        began = time.monotonic()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_measure(bench, names))
    click.echo(table.text(bench.results))
    click.echo(f"took {time.monotonic() - began:.0f} s")
    _keep(bench.results, out)
    if bench.results.failures:
        raise click.ClickException(f"failed: {bench.results.failures}")


async def _measure(bench: Bench, names: list[str]) -> None:
    for name in names:
        try:
            await _GROUPS[name](bench)
            header = bench.results.header
            bench.results.dates[name] = f"{header['date'][:10]}, {header['machine'].split(', ')[1]}"
        except Exception as error:
            if os.environ.get("BENCH_RAISE"):
                raise
            bench.results.failures[name] = f"{type(error).__name__}: {error}"
            bench.say(f"{name} failed: {error}")


def _keep(results: Results, out: Path | None) -> None:
    if out is None:
        return
    everything = results
    with contextlib.suppress(OSError):
        everything = loaded(out)
        everything.replace(results)
    everything.save(out)
    click.echo(f"results in {out}")


@cli.command("report")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, show_default=True)
@click.option("--page", type=click.Path(path_type=Path), default=_PAGE, show_default=True)
def make_report(results: Path, page: Path) -> None:
    """Make the tables and plots of docs/performance.md, measurements.md and scale.md, and the costs of `hq plan`."""
    from tests.bench import plots

    found = loaded(results)
    report.write({**report.first_blocks(found), "peers": peers.block(found)}, page)
    report.write(report.all_blocks(found), page.with_name("measurements.md"))
    try:
        costs.write_costs(costs.measured_costs(found))
        report.write({**scale.blocks(found), "drills": scale.drill_block(found)}, page.with_name("scale.md"))
    except LookupError as error:
        click.echo(f"the costs and scale.md stay as they are: {error}")
    for path in plots.draw(found, results.parent):
        click.echo(path)


@cli.command("peers")
def install_peers() -> None:
    """Build Consul, etcd and Eureka for the case `peers`, with Go and Maven."""
    peer_programs.install()
    click.echo(f"in {peer_programs.FOLDER}")


if __name__ == "__main__":
    cli()
