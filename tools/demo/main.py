"""The commands: `python -m tools.demo`, and `python -m tools.demo order ...` in another shell."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from hqclient.client import HqApiError
from store.embedded import EtcdFailed, EtcdNotFound
from tools.demo import switchboard
from tools.demo.children import ChildFailed
from tools.demo.ground import GroundTaken, ground
from tools.demo.locations import Refused
from tools.demo.orders import USAGES
from tools.demo.running import run
from tools.demo.setting import ROOT

_DATA = ".hq-demo"
_EXPECTED = (ChildFailed, EtcdFailed, EtcdNotFound, GroundTaken, HqApiError, Refused, OSError)

_data = click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help=f"Its directory, removed at the end. [default: {_DATA}]",
)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--plain", is_flag=True, help="Plain lines, as without a terminal.")
@_data
@click.pass_context
def cli(context: click.Context, plain: bool, data: Path | None) -> None:
    """Three locations, a gateway and 300 simulated agents on this machine, to look at and to break."""
    if context.invoked_subcommand is not None:
        return
    console = Console()
    failures: list[BaseException] = []
    try:
        with ground(_directory(data)) as directory:
            asyncio.run(
                run(
                    directory,
                    _order_command(data),
                    console,
                    plain=plain or not console.is_terminal or console.is_dumb_terminal,
                )
            )
    except* _EXPECTED as group:
        failures += _leaves(group)
    for failure in failures:
        click.echo(f"demo: {failure}", err=True)
    if failures:
        sys.exit(1)


@cli.command(epilog="\b\n" + "\n".join(f"{' '.join(usage[:2]):<30} {usage.effect}" for usage in USAGES))
@click.argument("words", nargs=-1, required=True, metavar="ORDER...")
@_data
def order(words: tuple[str, ...], data: Path | None) -> None:
    """Order something of the demo that runs in another shell."""
    try:
        done, text = asyncio.run(switchboard.send(_directory(data), words))
    except switchboard.NoDemo as error:
        done, text = False, str(error)
    click.echo(text, err=not done)
    if not done:
        sys.exit(1)


def _directory(data: Path | None) -> Path:
    return (data or ROOT / _DATA).absolute()


def _order_command(data: Path | None) -> str:
    """How to call `order` for this demo from the same directory."""
    python = Path(sys.executable)
    with contextlib.suppress(ValueError):
        python = python.relative_to(Path.cwd())
    return f"{python} -m tools.demo order" + (f" --data {data}" if data else "")


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
