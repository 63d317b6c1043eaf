"""What does not fit in the lines of an audit log: edited, deleted, moved. Reads lines, opens no files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from serving.auth.audit_chain import Link, hash_of, link_of


class Mark(NamedTuple):
    """A line that must be there, as somebody else remembers it. `hash` empty: only its number is known."""

    sequence: int
    hash: str = ""

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}" if self.hash else str(self.sequence)


@dataclass(slots=True)
class Span:
    """What was found of one chain.

    Attributes:
        first, last: sequences of the lines at its ends.
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
        expected: that were not met yet.
        faults: what does not fit, each with its place.
        notes: what is not as usual, and is no fault.
    """

    expected: set[Mark] = field(default_factory=set)
    spans: dict[str, Span] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _strange: list[bytes] = field(default_factory=list)  # lines that are none, until the next that is one

    def file(self, name: str, lines: Iterable[bytes]) -> None:
        """One file; lines with their ends."""
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
                self._unfinished(f"{name}:{number}", len(line))
        if self._strange:
            self.faults.append(f"{name}:{strange_at}: not a valid line of an audit log: it was edited")
            self._strange.clear()

    def finish(self) -> None:
        """There are no more lines."""
        for mark in sorted(self.expected):
            self.faults.append(f"line {mark} is missing: lines were removed, or the log was recreated")

    def _strangers(self, place: str, link: Link) -> None:
        """What stands before a line and is none: the line says so, if HQ found it there."""
        is_strange, found = bool(self._strange), b"\n".join(self._strange)
        self._strange.clear()
        if link.broken_off == (hash_of(found) if is_strange else ""):
            if is_strange:
                words = f"writing a line was interrupted ({len(found)} bytes), as line {link.sequence} says"
                self.notes.append(f"{place}: {words}")
        elif is_strange:
            self.faults.append(f"{place}: not a valid line of an audit log: it was edited")
        else:
            words = f"line {link.sequence} says that an incomplete line came before it, which is missing now"
            self.faults.append(f"{place}: {words}")

    def _unfinished(self, place: str, size: int) -> None:
        words = f"the last {size} bytes are not a complete line: writing was interrupted, or the file was truncated"
        self.notes.append(f"{place}: {words}")

    def _line(self, place: str, link: Link, line: bytes) -> None:
        self._meet(link)
        span = self.spans.get(link.chain)
        if span is None:
            span = self.spans[link.chain] = Span(link.chain, link.sequence)
            if (link.sequence == 1) != (link.previous == ""):
                self.faults.append(f"{place}: only line 1 may have no predecessor: this line was edited")
        elif fault := _fault(span, link):
            self.faults.append(f"{place}: {fault}")
        span.last, span.hash, span.lines = link.sequence, hash_of(line), span.lines + 1
        self.expected -= {Mark(span.last), Mark(span.last, span.hash)}

    def _meet(self, link: Link) -> None:
        """The line before this one is known by what this one says of it, even where its file is not there."""
        if link.sequence > 1 and link.chain not in self.spans:
            self.expected -= {Mark(link.sequence - 1), Mark(link.sequence - 1, link.previous)}


def _fault(span: Span, link: Link) -> str:
    """Why the line cannot come behind those of the span; empty: it can."""
    wanted = span.last + 1
    if link.sequence < wanted:
        return f"line {link.sequence} comes after line {span.last}: it was moved or duplicated"
    if link.sequence > wanted:
        missing = f"line {wanted} is" if link.sequence == wanted + 1 else f"lines {wanted} to {link.sequence - 1} are"
        return f"{missing} missing before this one"
    if link.previous != span.hash:
        return f"line {span.last}, the one before, has changed since this one was written: it was edited"
    return ""


def in_order(firsts: Sequence[tuple[str, Link | None]]) -> list[str]:
    """Names of files in the order in which they were written, by the first line of each."""
    known = sorted((link.chain, link.sequence, name) for name, link in firsts if link is not None)
    return [name for *_, name in known] + [name for name, link in firsts if link is None]
