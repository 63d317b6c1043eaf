"""What a run writes down while it goes: every call and its outcome, as tests/checker/history.py has it, and counts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from hqclient.errors import HqApiError
from tests.checker.history import FAILED, OK, UNKNOWN, Fault, Op, Read, Watched, Write
from tests.checker.history_file import Recorder

T = TypeVar("T")


def now_ns() -> int:
    """The machine's monotonic clock: the same in every process of a run."""
    return time.monotonic_ns()


class Log:
    """The history of a run. Calls go through `call`.

    Attributes:
        counts: calls and watch messages by (op, outcome). errors: failed and unknown ones by (op, reason).
        newest: the highest version that anybody was acknowledged, in the store's present history.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._recorder = Recorder(path)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self.newest = 0

    def close(self) -> None:
        self._recorder.close()

    @property
    def operations(self) -> int:
        return sum(self.counts.values())

    async def call(
        self,
        process: str,
        op: str,
        send: Callable[[], Awaitable[T]],
        key: str = "",
        write: Callable[[T | None, HqApiError | None], Write] | None = None,
        read: Callable[[T], Read] | None = None,
    ) -> T:
        """Send, record and return the answer; `write` and `read` make the record of it. Raises HqApiError."""
        called = now_ns()
        try:
            answer = await send()
        except HqApiError as error:
            returned = now_ns()
            outcome = UNKNOWN if write is not None and error.outcome_unknown else FAILED
            wrote = write(None, error) if write is not None else None
            self._add(Op(0, process, op, called, returned, outcome, key, error.reason or error.code.name, wrote))
            raise
        except BaseException:
            if write is not None:
                self._add(Op(0, process, op, called, None, UNKNOWN, key, "CANCELLED", write(None, None)))
            raise
        returned = now_ns()
        wrote = write(answer, None) if write is not None else None
        if wrote is not None:
            self.newest = max(self.newest, wrote.version)
        shown = read(answer) if read is not None else None
        self._add(Op(0, process, op, called, returned, OK, key, "", wrote, shown))
        return answer

    def watched(self, process: str, message: Watched) -> None:
        """One message of a watch."""
        at = now_ns()
        self._add(Op(0, process, "watch", at, at, OK, "", "", None, None, message))

    def fault(self, name: str, began_ns: int) -> None:
        """A fault that is healed now."""
        self._recorder.add(Fault(name, began_ns, now_ns()))

    def _add(self, op: Op) -> None:
        self.counts[op.op, op.outcome] += 1
        if op.error:
            self.errors[op.op, op.error] += 1
        self._recorder.add(replace(op, i=self._recorder.number()))
