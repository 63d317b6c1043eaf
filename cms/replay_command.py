"""The command `cms replay`: the recorded ledger decided again, under its own rules or under others."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from google.protobuf.message import Message

from cms.calendar_rules import rule_of
from cms.ledger.budgets import Budgets
from cms.ledger.calendar import Calendar
from cms.ledger.limits import DomainLimits
from cms.other_rules import Comparison, TaskCourse, compare
from cms.records import budget_of
from cms.replay import OtherRules, Repetition, repeat
from cms.replay_picture import draw_comparison
from cms.sites import BadSites, parse_sites
from cmspb.v1 import cms_pb2, record_pb2
from control.amounts import Amount
from historypb.v1 import history_pb2
from hqcli.controllers import controller_options
from hqcli.exits import Exit
from hqcli.recorder import RECORDER, RecorderProcesses
from hqcli.shape import fill_message
from hqcli.terminal import print_table, warn
from serving import yamltext
from serving.clock import SystemClock
from serving.errors import InvalidRequest
from serving.flags import Duration, InputFile, usage_errors

M = TypeVar("M", bound=Message)
_FILE: Final = InputFile(Path)
_MOST_SHOWN: Final = 50
_SAMPLE: Final = "[{name: web, service: web, minReady: 90%}]"


class _CmsRecorder(RecorderProcesses):
    """A recorder client whose errors read like those of `cms`."""

    program = "cms"


@click.command(short_help="Decide what was recorded again, under its own rules or others.")
@click.option("--since", type=Duration(), default="24h", help="From so long ago: 6h, 7d.")
@click.option("--budgets", type=_FILE, default=None, help="YAML list of budgets that are in force instead.")
@click.option("--windows", type=_FILE, default=None, help="YAML list of windows and freezes, likewise.")
@click.option("--sites", type=_FILE, default=None, help="File of sites and domain limits, likewise.")
@click.option("--default-budget", default="10%", help="With --budgets: max_unavailable of services without one.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@click.option(
    "--plot", type=click.Path(path_type=Path), default=None, help="Draw what comes otherwise into this SVG file."
)
@controller_options(RECORDER, _CmsRecorder)
def replay(
    recorder: _CmsRecorder,
    since: float,
    budgets: Path | None,
    windows: Path | None,
    sites: Path | None,
    default_budget: str,
    output: str,
    plot: Path | None,
) -> None:
    """Decide what a recorder has of the ledger again.

    Without other rules each decision has to come out as it was recorded; else the command ends with 10. With others
    it says which tasks would have been granted at other times. See docs/cms.md.
    """
    other = _other_rules(budgets, windows, sites, default_budget)
    if plot is not None and not os.access(plot.parent, os.W_OK):
        raise click.UsageError(f"--plot: {plot} cannot be written: give a file in a folder that this user may write to")
    if plot is not None and other == OtherRules():
        raise click.UsageError("--plot shows what other rules change: give --budgets, --windows or --sites")
    now_s = SystemClock().wall_ms() / 1_000

    async def work() -> Exit:
        request = history_pb2.ReadLedgerRequest()
        request.since.FromMilliseconds(round((now_s - since) * 1_000))
        record = await recorder.read_record("ReadLedger", request)
        if not record:
            warn("nothing of the ledger is on record in that time: start the recorder with --cms")
            return Exit.NOT_FOUND
        if other == OtherRules():
            return _print_repetition(repeat(_entries(record)), output)
        made = compare(lambda: _entries(record), other, now_s)
        if plot is not None:
            plot.write_text(draw_comparison(made, made.moved()[:_MOST_SHOWN]))
        _print_comparison(made, output)
        return Exit.OK

    recorder.run(work())


@usage_errors(BadSites, yamltext.BadYaml, InvalidRequest, ValueError)
def _other_rules(budgets: Path | None, windows: Path | None, sites: Path | None, default_budget: str) -> OtherRules:
    """Read the rules from the files. Raises UsageError."""
    made_budgets: Budgets | None = None
    made_calendar: Calendar | None = None
    made_limits: DomainLimits | None = None
    if budgets is not None:
        listed = [budget_of(one) for one in _read_list(budgets, cms_pb2.Budget)]
        made_budgets = Budgets(listed, Amount.parse(default_budget))
    if windows is not None:
        rules = [rule_of(one) for one in _read_list(windows, cms_pb2.Windows)]
        made_calendar = Calendar(tuple(sorted(rules, key=lambda rule: rule.name)))
    if sites is not None:
        made_limits = parse_sites(sites.read_text())
    return OtherRules(made_budgets, made_calendar, made_limits)


def _read_list(path: Path, kind: type[M]) -> list[M]:
    """Raises ValueError, BadYaml."""
    values = yamltext.load(path.read_text())
    if not isinstance(values, list):
        raise ValueError(f"{path}: write a list, as " + _SAMPLE)  # noqa: TRY004
    found = [kind() for _ in values]
    for number, (value, message) in enumerate(zip(values, found, strict=True)):
        if faults := fill_message(value, message, f"[{number}]"):
            raise ValueError("\n".join(f"{path}: {fault}" for fault in faults))
    return found


def _entries(record: list[bytes]) -> Iterator[record_pb2.LedgerEntry]:
    for part in record:
        yield from history_pb2.ReadLedgerResponse.FromString(zlib.decompress(part)).entry


def _print_repetition(made: Repetition, output: str) -> Exit:
    if output == "json":
        click.echo(json.dumps({"decisions": made.decisions, "grants": made.grants, "differing": len(made.differing)}))
    elif not made.differing:
        click.echo(f"{made.decisions} decisions, {made.grants} grants: all as recorded")
    for one in made.differing:
        was = ", ".join(f"{task} {event}" for task, event in one.recorded) or "nothing"
        now = ", ".join(f"{task} {event}" for task, event in one.changes) or "nothing"
        warn(f"decision {one.step.number} came out as {now}, recorded is {was}")
    return Exit.DIFFERS if made.differing else Exit.OK


def _print_comparison(made: Comparison, output: str) -> None:
    moved = made.moved()
    if output == "json":
        click.echo(json.dumps(_comparison_data(made, moved)))
        return
    hours = (made.until_s - made.since_s) / 3_600
    click.echo(f"{hours:.1f} hours, {made.decisions} decisions, {len(made.courses)} tasks; {len(moved)} come otherwise")
    if made.diverged_s is None:
        return
    click.echo(f"exact until {_clock(made.diverged_s)}, an estimate from then on")
    names = ("TASK", "ACTION", "NEED", "ISSUER", "ASKED", "GRANTED", "WITH THESE RULES")
    print_table(names, [_moved_row(one) for one in moved[:_MOST_SHOWN]])
    if len(moved) > _MOST_SHOWN:
        warn(f"{len(moved) - _MOST_SHOWN} more are in -o json")
    least = sorted(made.budgets.items())
    rows = [(name, _margin(one.recorded), _margin(one.other)) for name, one in least if one.recorded != one.other]
    if rows:
        click.echo("")
        print_table(("BUDGET", "LEAST ABOVE ITS FLOOR", "WITH THESE RULES"), rows)


def _moved_row(one: TaskCourse) -> tuple[str, ...]:
    task = one.task
    asked = _clock(one.asked_s)
    return (
        task.id,
        task.action,
        task.need.name.lower(),
        task.issuer,
        asked,
        _clock(one.granted_s),
        _clock(one.other_granted_s),
    )


def _comparison_data(made: Comparison, moved: list[TaskCourse]) -> dict[str, Any]:
    return {
        "since": made.since_s,
        "until": made.until_s,
        "decisions": made.decisions,
        "tasks": len(made.courses),
        "exactUntil": made.diverged_s,
        "moved": [
            {
                "task": one.task.id,
                "action": one.task.action,
                "asked": one.asked_s,
                "granted": one.granted_s,
                "otherwise": one.other_granted_s,
            }
            for one in moved
        ],
        "budgets": {
            name: {"recorded": one.recorded, "otherwise": one.other} for name, one in sorted(made.budgets.items())
        },
    }


def _margin(value: int | None) -> str:
    return "-" if value is None else str(value)


def _clock(seconds: float | None) -> str:
    return "never" if seconds is None else f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"
