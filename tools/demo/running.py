"""One run of the demo, from the start of its first process to the end of its last."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live

from tools.demo import keys, switchboard
from tools.demo.events import Events
from tools.demo.lines import Lines
from tools.demo.orders import USAGES, Orders
from tools.demo.setting import LIVENESS_TIMEOUT_S
from tools.demo.stage import Stage
from tools.demo.table import picture

_LOOK_S = 0.25
_LINE_S = 0.5
_MANY_ROWS = 28


async def run(directory: Path, order: str, console: Console, *, plain: bool) -> None:
    """Play until a signal comes, or until something fails; then end every process.

    Args:
        order: the command that takes orders in another shell, to be shown.

    Raises an ExceptionGroup of what failed.
    """
    events = Events()
    stage = Stage(directory, random.Random(), events)
    desk = switchboard.Desk(Orders(stage), events)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    show = _lines(stage, order) if plain else _table(stage, desk, order, console, stop)
    tasks = [asyncio.create_task(each) for each in (stage.play(), show, stop.wait())]
    try:
        async with switchboard.listening(desk, directory):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await stage.end()
    _raise_failures(outcomes)
    click.echo("the demo has stopped; nothing is left")


def _raise_failures(outcomes: Sequence[object]) -> None:
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if failures:
        raise ExceptionGroup("the demo failed", failures)


async def _lines(stage: Stage, order: str) -> None:
    click.echo(f"Three locations and a gateway; {LIVENESS_TIMEOUT_S:g} s of silence are too long. Ctrl-C stops it.")
    click.echo("In another shell:")
    for usage in USAGES:
        click.echo(f"  {order} {usage.order} {usage.arguments}".rstrip())
    lines = Lines(stage.events, click.echo)
    while True:
        lines.show(stage.scene())
        await asyncio.sleep(_LINE_S)


async def _table(stage: Stage, desk: switchboard.Desk, order: str, console: Console, stop: asyncio.Event) -> None:
    keyboard = keys.Keys(desk.take, stop.set)
    with keys.listening(keyboard), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            hints = keys.HINTS if console.size.height >= _MANY_ROWS else keys.FEW_HINTS
            hints += f"\n in another shell: {order} --help"
            shown = picture(stage.scene(), stage.events.after(0), hints, keyboard.chosen, console)
            live.update(shown, refresh=True)
            await asyncio.sleep(_LOOK_S)
