"""The command `hq audit verify`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

import click

from hq.audit.check import Check, Mark, in_order
from serving.auth.audit_chain import Link, link_of

_SHOWN: Final = 20


class _Expected(click.ParamType[Mark]):
    """SEQUENCE, or SEQUENCE:HASH."""

    name = "SEQUENCE[:HASH]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Mark:
        found = re.fullmatch(r"([1-9][0-9]{0,15})(?::([0-9a-f]{64}))?", str(value))
        if found is None:
            self.fail(f"{value!r} is not a line: write its number, preferably with its hash from the log", param, ctx)
        return Mark(int(found[1]), found[2] or "")


@click.group()
def audit() -> None:
    """Look after the audit log."""


@audit.command()
@click.option("--expect", "expected", type=_Expected(), multiple=True, help="Require this line; repeatable.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def verify(files: tuple[Path, ...], expected: tuple[Mark, ...]) -> None:
    """Verify that the audit log in FILES (in any order) was not changed.

    Finds lines that were edited, deleted or moved. To find lines that are missing at the very end, or a log that was
    recreated, give a line that was kept elsewhere as --expect: from HQ's own log ("the audit log is
    at SEQUENCE:HASH"), the metric hq_audit_sequence, or what the last verify said.

    Exits with 1 if the log was changed.
    """
    check = Check(set(expected))
    try:
        for name in in_order([(str(path), _first(path)) for path in dict.fromkeys(map(Path.resolve, files))]):
            with Path(name).open("rb") as file:
                check.file(name, file)
    except OSError as error:
        click.echo(f"hq: {error}", err=True)
        sys.exit(1)
    check.finish()
    _tell(check)
    if check.faults:
        sys.exit(1)


def _tell(check: Check) -> None:
    for note in check.notes:
        click.echo(f"note: {note}")
    for fault in check.faults[:_SHOWN]:
        click.echo(f"hq: {fault}", err=True)
    if len(check.faults) > _SHOWN:
        click.echo(f"hq: and {len(check.faults) - _SHOWN} more", err=True)
    for span in check.spans.values():
        before = f"; what came before line {span.first} is not in these files" if span.first > 1 else ""
        state = "the chain is broken" if check.faults else "intact"
        click.echo(f"chain {span.chain}: {span.lines} lines, {span.first} to {span.last}: {state}{before}")
        click.echo(f"  last line: --expect {span.last}:{span.hash}")
    if not check.spans:
        click.echo("no lines")


def _first(path: Path) -> Link | None:
    """The place of the first line that has one."""
    with path.open("rb") as file:
        return next((link for line in file if (link := link_of(line.rstrip(b"\n")))), None)
