"""The command `walle replay`: the recorded fuses decided again, under their own limits or under others."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from historypb.v1 import history_pb2
from hqcli.controllers import controller_options
from hqcli.exits import Exit
from hqcli.recorder import RECORDER, RecorderProcesses
from hqcli.terminal import print_table, warn
from serving import yamltext
from serving.clock import SystemClock
from serving.flags import Duration, InputFile, usage_errors
from walle.fuses.fuse import GLOBAL, Moment
from walle.fuses.limits import GLOBAL_NAMES, BadLimit, Limits, parse_limit
from walle.other_limits import FuseTrip, LimitsComparison, compare_limits
from walle.replay import FuseRepetition, repeat_fuses
from wallepb.v1.project_pb2 import FuseEntry

_MOST_SHOWN: Final = 50
_FILE: Final = InputFile(Path)
_SAMPLE: Final = "{web: {UNREACHABLE: [1d:2]}, global: {max_rebooted_hosts: [1d:20]}}"


class _WalleRecorder(RecorderProcesses):
    """A recorder client whose errors read like those of `walle`."""

    program = "walle"


@click.command(short_help="Decide what the fuses decided again, under their own limits or others.")
@click.option("--since", type=Duration(), default="24h", help="From so long ago: 6h, 7d.")
@click.option("--limits", type=_FILE, default=None, help="YAML of limits that are in force instead, by project.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@controller_options(RECORDER, _WalleRecorder)
def replay(recorder: _WalleRecorder, since: float, limits: Path | None, output: str) -> None:
    """Decide what a recorder has of the fuses again.

    Without other limits each decision has to come out as it was recorded; else the command ends with 10. With others
    it says which fuses would have tripped, and when. See docs/walle.md.
    """
    others = _other_limits(limits) if limits is not None else {}
    request = history_pb2.ReadFusesRequest()
    request.since.FromMilliseconds(round(SystemClock().wall_ms() - since * 1_000))

    async def work() -> Exit:
        record = await recorder.read_record("ReadFuses", request)
        if not record:
            warn("nothing of fuses is on record in that time: start the recorder with --walle")
            return Exit.NOT_FOUND
        if limits is None:
            return _print_repetition(repeat_fuses(_entries(record)), output)
        made = compare_limits(_entries(record), others)
        for fuse, counter in ((fuse, each) for fuse, one in others.items() for each in one):
            if (fuse, counter) not in made.used:
                warn(f"{limits}: {fuse}.{counter}: nothing on record uses this limit: check the names")
        _print_comparison(made, output)
        return Exit.OK

    recorder.run(work())


@usage_errors(yamltext.BadYaml, BadLimit, ValueError)
def _other_limits(path: Path) -> dict[str, Limits]:
    """Read the limits from the file, by fuse. Raises UsageError."""
    given = yamltext.load(path.read_text())
    if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
        raise ValueError(f"{path}: write limits by project and counter, as {_SAMPLE}")
    if unknown := [str(name) for name in given.get(GLOBAL, {}) if name not in GLOBAL_NAMES]:
        raise ValueError(f"{path}: {GLOBAL}: {', '.join(unknown)}: write limits of {', '.join(GLOBAL_NAMES)}")
    return {
        fuse: {counter: _limit(fuse, counter, pairs) for counter, pairs in one.items()} for fuse, one in given.items()
    }


def _limit(fuse: str, counter: str, pairs: Any) -> Any:
    try:
        return parse_limit([pairs] if isinstance(pairs, str) else pairs)
    except (BadLimit, TypeError, AttributeError) as error:
        raise ValueError(f"{fuse}.{counter}: {error}; write limits as {_SAMPLE}") from None


def _entries(record: list[bytes]) -> Iterator[FuseEntry]:
    for part in record:
        yield from history_pb2.ReadFusesResponse.FromString(zlib.decompress(part)).entry


def _print_repetition(made: FuseRepetition, output: str) -> Exit:
    if output == "json":
        data = {"changes": made.changes, "uses": made.uses, "trips": made.trips, "differing": len(made.differing)}
        click.echo(json.dumps(data))
    elif not made.differing:
        click.echo(f"{made.uses} uses of limits, {made.trips} trips: all as recorded")
    for one in made.differing:
        when = _clock(one.events[0].at) if one.events else "an unknown time"
        warn(f"fuse {one.after.id} comes out otherwise than it was stored at {when}")
    return Exit.DIFFERS if made.differing else Exit.OK


def _print_comparison(made: LimitsComparison, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(_comparison_data(made)))
        return
    if made.diverged is None:
        click.echo(f"{made.actions} actions: all as recorded")
        return
    moved = f"{made.held_back} would not have begun, {made.let_through} that tripped a fuse would have"
    click.echo(f"{made.actions} actions: {moved}")
    click.echo(f"exact until {_clock(made.diverged)}, an estimate from then on")
    trips = sorted({*_keys(made.recorded), *_keys(made.other)})
    rows = [(*trip[1:], trip[0], _yes(trip in _keys(made.recorded)), _yes(trip in _keys(made.other))) for trip in trips]
    if rows:
        names = ("FUSE", "AUTOMATION", "LIMIT", "BY", "TIME", "TRIPPED", "WITH THESE LIMITS")
        print_table(names, rows[:_MOST_SHOWN])
    if len(rows) > _MOST_SHOWN:
        warn(f"{len(rows) - _MOST_SHOWN} more are in -o json")


def _keys(trips: list[FuseTrip]) -> list[tuple[str, ...]]:
    return [(_clock(one.at), one.fuse, one.automation, one.limit, one.host) for one in trips]


def _comparison_data(made: LimitsComparison) -> dict[str, Any]:
    def data(trips: list[FuseTrip]) -> list[dict[str, Any]]:
        return [
            {
                "fuse": one.fuse,
                "automation": one.automation,
                "limit": one.limit,
                "host": one.host,
                "time": one.at.wall.ToJsonString(),
            }
            for one in trips
        ]

    return {
        "actions": made.actions,
        "heldBack": made.held_back,
        "letThrough": made.let_through,
        "exactUntil": made.diverged.wall.ToJsonString() if made.diverged is not None else None,
        "trips": data(made.recorded),
        "tripsWithTheseLimits": data(made.other),
    }


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _clock(at: Moment) -> str:
    return f"{datetime.fromtimestamp(at.wall.ToMilliseconds() / 1_000).astimezone():%Y-%m-%d %H:%M:%S}"
