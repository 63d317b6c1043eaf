"""Attributes of a service as people write them: `max-unavailable=2`. Each is a field of nanny.v1.InfoAttributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import click

from hqcli.options import DurationParam
from nannyctl.steps import parse_checks, parse_steps
from nannypb.v1 import service_pb2 as pb


class _Attribute(NamedTuple):
    """`path`: in InfoAttributes; `value`: of a text. Raises BadParameter, ValueError."""

    path: str
    value: Callable[[str], Any]


def _seconds(text: str) -> int:
    return math.ceil(DurationParam().convert(text, None, None))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _one_of(**values: bool) -> Callable[[str], bool]:
    def value(text: str) -> bool:
        if text not in values:
            raise ValueError(f"write {' or '.join(values)}")
        return values[text]

    return value


ATTRIBUTES: Final = {
    "max-unavailable": _Attribute("rollout.max_unavailable", str),
    "max-failures": _Attribute("rollout.max_failures", str),
    "progress-deadline": _Attribute("rollout.progress_deadline_s", _seconds),
    "min-ready-time": _Attribute("rollout.min_ready_s", _seconds),
    "soak": _Attribute("rollout.soak_s", _seconds),
    "location": _Attribute("rollout.location", _names),
    "leave-out": _Attribute("rollout.leave_out", _names),
    "roll-back": _Attribute("rollout.roll_back", _one_of(true=True, false=False)),
    "set-current-on-activation": _Attribute("set_snapshot_as_current_upon_activation", _one_of(true=True, false=False)),
    "steps": _Attribute("rollout.step", parse_steps),
    "checks": _Attribute("rollout.check", parse_checks),
    "description": _Attribute("description", str),
}


def parse_attributes(words: Sequence[str]) -> tuple[pb.InfoAttributes, list[str]]:
    """The values and the fields that they are for. Raises BadParameter with what to write."""
    info, paths = pb.InfoAttributes(), []
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in ATTRIBUTES:
            raise click.BadParameter(f"{word!r}: write ATTRIBUTE=VALUE, with one of {', '.join(ATTRIBUTES)}")
        path = ATTRIBUTES[name].path
        if path in paths:
            raise click.BadParameter(f"{name} is named twice")
        paths.append(path)
        if text:
            _assign(info, name, text)
    return info, paths


def _assign(info: pb.InfoAttributes, name: str, text: str) -> None:
    path, value_of = ATTRIBUTES[name]
    try:
        value = value_of(text)
    except (ValueError, click.BadParameter) as error:
        raise click.BadParameter(f"{name}={text}: {getattr(error, 'message', error)}") from None
    of, field = (info.rollout, path.removeprefix("rollout.")) if path.startswith("rollout.") else (info, path)
    if isinstance(value, list):
        getattr(of, field).extend(value)
    else:
        setattr(of, field, value)
