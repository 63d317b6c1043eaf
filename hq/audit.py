"""The command `hq audit verify`: whether the lines of an audit log are those that `serving/auth` wrote."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from serving.auth.audit_chain import ChainLink, hash_of, link_of
from serving.flags import InputFile

_STRANGE: Final = "not a valid line of an audit log: it was edited, or this is another kind of file"


class ExpectedLine(NamedTuple):
    """A line that must be there, as recorded elsewhere. `hash` empty: only its number is known."""

    sequence: int
    hash: str = ""

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}" if self.hash else str(self.sequence)


@dataclass(slots=True)
class ChainSpan:
    """The lines found of one chain.

    Attributes:
        first, last: sequence numbers of its first and last line.
        hash: of the last line.
    """

    chain: str
    first: int
    last: int = 0
    hash: str = ""
    lines: int = 0


@dataclass(slots=True)
class Check:
    """Takes files one after the other, in the order in which they were written, then `finish`.

    Attributes:
        expected: lines that were not found yet.
        faults: what does not fit, each with its place.
        notes: what is unusual, but not a fault.
    """

    expected: set[ExpectedLine] = field(default_factory=set)
    spans: dict[str, ChainSpan] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _strange: list[bytes] = field(default_factory=list)  # what was read since the last valid line

    def file(self, name: str, lines: Iterable[bytes]) -> None:
        """Check one file; its lines include their line ends."""
        chain, strange_at = "", 0
        for number, line in enumerate(lines, 1):
            link = link_of(line[:-1]) if line.endswith(b"\n") else None
            if link is not None:
                self._strangers(f"{name}:{strange_at or number}", link)
                if chain not in ("", link.chain):
                    self.faults.append(f"{name}:{number}: a new chain begins in the middle of a file: {link.chain}")
                self._line(f"{name}:{number}", link, line[:-1])
                chain, strange_at = link.chain, 0
            elif line.endswith(b"\n"):
                self._strange.append(line[:-1])
                strange_at = strange_at or number
            else:
                self._note_unfinished(f"{name}:{number}", len(line))
        if self._strange:
            self.faults.append(f"{name}:{strange_at}: {_STRANGE}")
            self._strange.clear()

    def finish(self) -> None:
        """Report the expected lines that were not found."""
        for mark in sorted(self.expected):
            self.faults.append(f"line {mark} is missing: lines were removed, or the log was recreated")

    def _strangers(self, place: str, link: ChainLink) -> None:
        """Judge the bytes before a line that are not lines: if HQ found them there, the line says so."""
        is_strange, found = bool(self._strange), b"\n".join(self._strange)
        self._strange.clear()
        if link.broken_off == (hash_of(found) if is_strange else ""):
            if is_strange:
                words = f"writing a line was interrupted ({len(found)} bytes), as line {link.sequence} says"
                self.notes.append(f"{place}: {words}")
        elif is_strange:
            self.faults.append(f"{place}: {_STRANGE}")
        else:
            words = f"line {link.sequence} says that an incomplete line came before it, which is missing now"
            self.faults.append(f"{place}: {words}")

    def _note_unfinished(self, place: str, size: int) -> None:
        words = f"the last {size} bytes are not a complete line: writing was interrupted, or the file was truncated"
        self.notes.append(f"{place}: {words}")

    def _line(self, place: str, link: ChainLink, line: bytes) -> None:
        self._meet(link)
        span = self.spans.get(link.chain)
        if span is None:
            span = self.spans[link.chain] = ChainSpan(link.chain, link.sequence)
            if (link.sequence == 1) != (link.previous == ""):
                self.faults.append(f"{place}: only line 1 may have no predecessor: this line was edited")
        elif fault := _fault(span, link):
            self.faults.append(f"{place}: {fault}")
        span.last, span.hash, span.lines = link.sequence, hash_of(line), span.lines + 1
        self.expected -= {ExpectedLine(span.last), ExpectedLine(span.last, span.hash)}

    def _meet(self, link: ChainLink) -> None:
        """If this is the chain's first line here, count the one before it as found: this line has its hash."""
        if link.sequence > 1 and link.chain not in self.spans:
            self.expected -= {ExpectedLine(link.sequence - 1), ExpectedLine(link.sequence - 1, link.previous)}


def _fault(span: ChainSpan, link: ChainLink) -> str:
    """Why the line cannot follow those of the span; empty: it can."""
    wanted = span.last + 1
    if link.sequence < wanted:
        return f"line {link.sequence} comes after line {span.last}: it was moved or duplicated"
    if link.sequence > wanted:
        missing = f"line {wanted} is" if link.sequence == wanted + 1 else f"lines {wanted} to {link.sequence - 1} are"
        return f"{missing} missing before this one"
    if link.previous != span.hash:
        return f"line {span.last}, the one before, has changed since this one was written: it was edited"
    return ""


def in_order(firsts: Sequence[tuple[str, ChainLink | None]]) -> list[str]:
    """Names of files in the order in which they were written, by the first line of each."""
    known = sorted((link.chain, link.sequence, name) for name, link in firsts if link is not None)
    return [name for *_, name in known] + [name for name, link in firsts if link is None]


_SHOWN: Final = 20


class _Expected(click.ParamType[ExpectedLine]):
    """SEQUENCE, or SEQUENCE:HASH."""

    name = "SEQUENCE[:HASH]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ExpectedLine:
        found = re.fullmatch(r"([1-9][0-9]{0,15})(?::([0-9a-f]{64}))?", str(value))
        if found is None:
            self.fail(f"{value!r} is not a line: write its number, preferably with its hash from the log", param, ctx)
        return ExpectedLine(int(found[1]), found[2] or "")


@click.group()
def audit() -> None:
    """Verify the audit log."""


@audit.command()
@click.option("--expect", "expected", type=_Expected(), multiple=True, help="Require this line; repeatable.")
@click.argument("files", nargs=-1, required=True, type=InputFile(Path))
def verify(files: tuple[Path, ...], expected: tuple[ExpectedLine, ...]) -> None:
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


def _first(path: Path) -> ChainLink | None:
    """The place in its chain of the file's first valid line."""
    with path.open("rb") as file:
        return next((link for line in file if (link := link_of(line.rstrip(b"\n")))), None)
