"""Spans of time on the command line: `90`, `90s`, `3m`, `1h30m`, `2d`."""

from __future__ import annotations

from typing import Any

import click

from clients.hqctl.words import parse_span


class Span(click.ParamType[float]):
    """A span of time, in seconds."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return parse_span(value) if isinstance(value, str) else float(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
