"""Steps of roll-outs and their checks as people write them: YAML, as in `[{instances: 1}, {hold: 10m}]`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import click

from hqcli.documents import BadDocument, value_of
from hqcli.options import DurationParam
from nannypb.v1 import service_pb2 as pb

_Field = tuple[str, Callable[[Any], Any]]


def _seconds(value: Any) -> int:
    try:
        return math.ceil(DurationParam().convert(value if isinstance(value, str) else f"{value}s", None, None))
    except click.BadParameter as error:
        raise ValueError(error.message) from None


def _manual(value: Any) -> bool:
    if value != "manual":
        raise ValueError("write manual")
    return True


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError("write a number") from None


def _no_data(value: Any) -> int:
    words = {name.removeprefix("NO_DATA_").lower(): number for name, number in pb.NoData.items() if number}
    if value not in words:
        raise ValueError(f"write {', '.join(words)}")
    return words[value]


_STEP: Final[Mapping[str, _Field]] = {
    "instances": ("instances", str),
    "weight": ("weight", str),
    "hold": ("hold_s", _seconds),
    "promote": ("promote", _manual),
    "check": ("check", str),
}
_CHECK: Final[Mapping[str, _Field]] = {
    "name": ("name", str),
    "prometheus": ("prometheus", str),
    "query": ("query", str),
    "below": ("below", _number),
    "above": ("above", _number),
    "for": ("duration_s", _seconds),
    "no-data": ("no_data", _no_data),
}


def parse_steps(text: str) -> list[pb.RolloutStep]:
    """Raises ValueError, which names the step and the field."""
    return [pb.RolloutStep(**fields) for fields in _items(text, _STEP, "{instances: 1}, {hold: 10m}")]


def parse_checks(text: str) -> list[pb.RolloutCheck]:
    """Raises ValueError, which names the check and the field."""
    example = "{name: errors, prometheus: main, query: ..., below: 0.01, for: 5m, no-data: wait}"
    return [pb.RolloutCheck(**fields) for fields in _items(text, _CHECK, example)]


def _items(text: str, known: Mapping[str, _Field], example: str) -> Iterator[dict[str, Any]]:
    try:
        found = value_of(text)
    except BadDocument as error:
        raise ValueError(f"no YAML: {error}") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"write a list: [{example}]")
    for number, one in enumerate(found, 1):
        yield dict(_values(number, one, known))


def _values(number: int, item: Mapping[Any, Any], known: Mapping[str, _Field]) -> Iterator[tuple[str, Any]]:
    for name, value in item.items():
        if name not in known:
            raise ValueError(f"number {number} has no field {str(name)[:40]!r}: write one of {', '.join(known)}")
        field, parse = known[name]
        try:
            yield field, parse(value)
        except ValueError as error:
            raise ValueError(f"number {number}, {name}: {error}") from None
