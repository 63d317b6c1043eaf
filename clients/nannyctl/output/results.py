"""The outcome of every instance: progress on stderr, results on stdout (failures on stderr) or as JSON."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hqcli.exits import Exit
from hqcli.formats import is_data, print_data
from hqcli.terminal import say
from nannyctl.exits import worst
from nannyctl.sending.results import Result, UploadOutcome, counts, exit_of_results
from nannyctl.session import InstallationAnswer, complain, tell_away

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

STEPS = 10  # lines for one installation


class ProgressLines:
    """Prints a line for each tenth that is done."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._totals: dict[str, int] = {}
        self._done: Counter[str] = Counter()

    def begin(self, installation: str, total: int) -> None:
        """Start with this number of writes."""
        self._totals[installation] = total

    def add_result(self, installation: str, result: Result) -> None:
        """Count one final result."""
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
        """Start with this number of writes."""
        self._tasks[installation] = self._bars.add_task(installation, total=total, failed="")

    def add_result(self, installation: str, result: Result) -> None:
        """Count one final result."""
        self._failed[installation] += result.failed
        failed = f"{self._failed[installation]} failed" if self._failed[installation] else ""
        self._bars.update(self._tasks[installation], advance=1, failed=failed)  # type: ignore[arg-type]


@contextmanager
def progress() -> Iterator[ProgressLines | LiveBars]:
    """The progress display that suits stderr."""
    if not sys.stderr.isatty():
        yield ProgressLines(lambda text: click.echo(text, err=True))
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


Settled = InstallationAnswer[list[Result]]


def tell(asked: Sequence[Settled], output: str, *, every: bool) -> Exit:
    """Print the results of all installations; return the exit code.

    On a terminal only failures are listed one by one, unless `every`; elsewhere every instance has its line.
    """
    code = worst(_exit(one) for one in asked)
    if is_data(output):
        print_data({"exit": int(code), "installations": [_as_dict(one) for one in asked]}, output)
        return code
    for one in asked:
        if one.answer is None:
            tell_away(one)
            continue
        for result in one.answer:
            _tell_one(one.installation, result, every=every or not sys.stdout.isatty())
    for one in asked:
        click.echo(f"{one.installation}: {_summary(one)}")
    return code


def _exit(asked: Settled) -> Exit:
    return asked.exit if asked.answer is None else exit_of_results(asked.answer)


def _tell_one(installation: str, result: Result, *, every: bool) -> None:
    if result.failed:
        hint = (
            " Run it again."
            if result.outcome in (UploadOutcome.CONFLICT, UploadOutcome.UNKNOWN, UploadOutcome.AWAY)
            else ""
        )
        complain(f"{installation}: {result.id}: {result.outcome}: {result.message or 'no reason was given'}.{hint}")
    elif every:
        at = f" (version {result.version})" if result.version else ""
        note = f": {result.message}" if result.message else ""
        say(f"{installation}: {result.id} {result.outcome}{at}{note}")


def _summary(asked: Settled) -> str:
    if asked.answer is None:
        return f"{asked.exit.name.lower()}: unknown whether anything was done there"
    return ", ".join(f"{count} {name}" for name, count in counts(asked.answer).items()) or "no instances"


def _as_dict(asked: Settled) -> dict[str, Any]:
    results = [
        {"instance": r.id, "outcome": r.outcome.value, "version": r.version or None, "message": r.message or None}
        for r in asked.answer or ()
    ]
    return {
        "name": asked.installation,
        "error": asked.error or None,
        "counts": counts(asked.answer or ()),
        "results": results,
    }
