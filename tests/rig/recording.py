"""The history of a run: one JSON object per line, in the shape that tests/checker/history.py describes."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any


def now_ns() -> int:
    """The machine's monotonic clock: the same in every process of a run."""
    return time.monotonic_ns()


class Recorder:
    """Writes events as they happen; use it as a context manager.

    Attributes:
        life: counts the histories of the store: a restore from a snapshot begins another one.
        counts: operations by (op, outcome).
        errors: failed operations by (op, reason).
    """

    def __init__(self, path: Path) -> None:
        self.path, self.life = path, 0
        self.counts: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self._next = 0
        self._file = gzip.open(path, "wt", compresslevel=1, encoding="utf-8")  # noqa: SIM115

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    @property
    def operations(self) -> int:
        """How many were recorded, watch messages included."""
        return sum(self.counts.values())

    def add(
        self,
        process: str,
        op: str,
        call_ns: int,
        *,
        outcome: str = "ok",
        error: str | None = None,
        key: str | None = None,
        life: int | None = None,
        **facts: Mapping[str, Any],
    ) -> None:
        """One operation that has ended just now."""
        self.counts[op, outcome] += 1
        if error:
            self.errors[op, error] += 1
        self.note(
            {
                "process": process,
                "op": op,
                "call_ns": call_ns,
                "return_ns": now_ns(),
                "outcome": outcome,
                "error": error,
                "key": key,
                "life": self.life if life is None else life,
                **facts,
            }
        )

    def note(self, event: Mapping[str, Any]) -> None:
        """Anything else that belongs into the history."""
        self._next += 1
        self._file.write(json.dumps({"i": self._next, **event}, separators=(",", ":")) + "\n")
