"""Spans of time on the command line: `90`, `90s`, `3m`, `1h30m`, `2d`."""

from __future__ import annotations

from typing import Any

import click

from hqctl.words import parse_span


class Span(click.ParamType[float]):
    """A span of time, in seconds. `least_s`: a shorter one makes no sense, and HQ may take 0 for its default."""

    name = "span"

    def __init__(self, least_s: float = 0.0) -> None:
        self.least_s = least_s

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = parse_span(value) if isinstance(value, str) else float(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < self.least_s:
            self.fail(f"{value!r} is too short: at least {self.least_s:g}s", param, ctx)
        return seconds
