"""Errors on stderr: a line for people, or with `-o json` one JSON document a line for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import Final

import click

from hqcli.terminal import colour_of, escape_controls, json_controls

_AS_JSON: Final = ContextVar("_AS_JSON", default=False)


def complainer(program: str) -> Callable[[str], None]:
    """Return the function with which a program prints errors. Their kind shows in the exit code."""

    def complain(text: str) -> None:
        if _AS_JSON.get():
            told = json.dumps({"error": {"program": program, "message": text}}, ensure_ascii=False)
            click.echo(json_controls(told), err=True)
            return
        click.secho(f"{program}: ", fg="red", bold=True, nl=False, err=True, color=colour_of(sys.stderr))
        click.echo(escape_controls(text), err=True)

    return complain


@contextmanager
def complaints_as_asked(words: Sequence[str]) -> Iterator[None]:
    """Inside the block, complaints are JSON if these words of a command line, even a faulty one, ask for `-o json`."""
    asked = any(pair in (("-o", "json"), ("--output", "json")) for pair in pairwise(words))
    token = _AS_JSON.set(asked or "-ojson" in words or "--output=json" in words)
    try:
        yield
    finally:
        _AS_JSON.reset(token)
