"""A broken promise, in words that say where to look."""

from __future__ import annotations

from typing import NamedTuple

from tests.checker.history_file import encoded

_SHOWN_AT_MOST = 6


class Promise(NamedTuple):
    """One word of what users rely on, what it means, and what to look at when it does not hold."""

    word: str
    meaning: str
    look: str

    def broken(self, what: str, *events: object) -> Violation:
        """`events`: those of the history concerned, or anything that shows it."""
        return Violation(self, what, events)


class Violation(NamedTuple):
    """A promise that does not hold. str() tells everything."""

    promise: Promise
    what: str
    events: tuple[object, ...]

    @property
    def word(self) -> str:
        return self.promise.word

    def __str__(self) -> str:
        lines = [f"{self.word} is broken: {self.what}", f"  promised: {self.promise.meaning}"]
        lines += [f"  event: {_line(event)}" for event in self.events[:_SHOWN_AT_MOST]]
        return "\n".join([*lines, f"  look at: {self.promise.look}"])


def _line(event: object) -> str:
    if hasattr(event, "__dataclass_fields__"):
        return str(encoded(event))  # type: ignore[arg-type]
    return str(event)
