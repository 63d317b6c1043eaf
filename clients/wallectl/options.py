"""Options that several commands share: limits and credits by counter, and confirmation of changes that would trip."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import click
from google.protobuf.duration_pb2 import Duration

from hqcli.readable import parse_span
from wallepb.v1.host_pb2 import OperationKind
from wallepb.v1.project_pb2 import Limit, PeriodCount

F = TypeVar("F", bound=Callable[..., Any])
_LONGEST_S: Final = 10**9

OPERATIONS: Final = ("reboot", "profile", "redeploy", "power-off", "change-disk", "change-memory", "repair-link")

# Option: the counter it stands for. Every other check is set with -o.
COUNTERS: Final = {
    "--unreachable": "UNREACHABLE",
    "--ssh": "ssh",
    "--memory": "memory",
    "--disk": "disk",
    "--link": "link",
    "--dns-fixes": "dns-fixes",
    "--dead": "dead",
}


def seconds(text: str) -> int:
    try:
        found = round(parse_span(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if not 0 < found < _LONGEST_S:
        raise click.BadParameter(f"{text!r} is not a valid period: write e.g. 30m, 1h or 1d")
    return found


class Period(click.ParamType[Duration]):
    """`1h`, as a Duration."""

    name = "period"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        return value if isinstance(value, Duration) else Duration(seconds=seconds(value))


def pair(text: str) -> PeriodCount:
    """`2h:5`."""
    period, colon, count = text.partition(":")
    if not colon or not count.isdecimal():
        raise click.BadParameter(f"{text!r}: write PERIOD:COUNT, for example 1d:10")
    return PeriodCount(period_s=seconds(period), count=int(count))


def limit_options(function: F) -> F:
    """--ssh 2h:5 ... and -o CHECK 1d:10, each repeatable."""
    function = click.option("-o", "other", nargs=2, multiple=True, metavar="CHECK PERIOD:COUNT", help="Any check.")(
        function
    )
    for flag in reversed(COUNTERS):
        function = click.option(flag, multiple=True, metavar="PERIOD:COUNT", help="Repeat for several periods.")(
            function
        )
    return function


def limits_in(given: dict[str, Any], other: Iterable[tuple[str, str]]) -> dict[str, Limit]:
    limits: dict[str, Limit] = {}
    named = [(counter, text) for flag, counter in COUNTERS.items() for text in given[_name(flag)]]
    for counter, text in [*named, *other]:
        limits.setdefault(counter, Limit()).pair.append(pair(text))
    return limits


def credit_options(function: F) -> F:
    """--unreachable 100 ... and -o CHECK 100."""
    function = click.option("-o", "other", nargs=2, multiple=True, metavar="CHECK COUNT", help="Any check.")(function)
    for flag in reversed(COUNTERS):
        text = f"Let this many hosts through beyond the limit of {COUNTERS[flag]}."
        function = click.option(flag, type=click.IntRange(1), metavar="COUNT", help=text)(function)
    return function


def credits_in(given: dict[str, Any], other: Sequence[tuple[str, str]]) -> dict[str, int]:
    wrong = [count for _, count in other if not count.isdecimal()]
    if wrong:
        raise click.BadParameter(f"-o: {wrong[0]!r} is not a number")
    named = {counter: given[_name(flag)] for flag, counter in COUNTERS.items() if given[_name(flag)]}
    return named | {check: int(count) for check, count in other}


def credit_words(credits_: Mapping[str, int]) -> list[str]:
    """The options that give these credits."""
    flags = {counter: flag for flag, counter in COUNTERS.items()}
    return [
        f"{flags[name]} {count}" if name in flags else f"-o {name} {count}" for name, count in sorted(credits_.items())
    ]


def kind_named(text: str) -> OperationKind:
    """`power-off` and the others. Raises BadParameter."""
    try:
        return cast("OperationKind", OperationKind.Value(f"OPERATION_KIND_{text.upper().replace('-', '_')}"))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an operation: use {', '.join(OPERATIONS)}") from None


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")
