"""How far an upload is, on stderr: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from nannyctl.sending.results import Result

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

STEPS = 10  # lines for one installation


class Lines:
    """A line each time a tenth is done."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._totals: dict[str, int] = {}
        self._done: Counter[str] = Counter()

    def begin(self, installation: str, total: int) -> None:
        """So many writes are to come."""
        self._totals[installation] = total

    def settled(self, installation: str, result: Result) -> None:
        """One of them is final."""
        self._done[installation] += 1
        done, total = self._done[installation], self._totals[installation]
        if done * STEPS // total > (done - 1) * STEPS // total:
            self._say(f"{installation}: {done} of {total}")


class LiveBars:
    """One bar for each installation."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, int] = {}
        self._failed: Counter[str] = Counter()

    def begin(self, installation: str, total: int) -> None:
        """So many writes are to come."""
        self._tasks[installation] = self._bars.add_task(installation, total=total, failed="")

    def settled(self, installation: str, result: Result) -> None:
        """One of them is final."""
        self._failed[installation] += result.failed
        failed = f"{self._failed[installation]} failed" if self._failed[installation] else ""
        self._bars.update(self._tasks[installation], advance=1, failed=failed)  # type: ignore[arg-type]


@contextmanager
def progress() -> Iterator[Lines | LiveBars]:
    """As suits where stderr goes."""
    if not sys.stderr.isatty():
        yield Lines(lambda text: click.echo(text, err=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("[red]{task.fields[failed]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        yield LiveBars(bars)
