"""Waiting for one server: a page waits for it once, and not again while it hangs."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

from console.backends.asking import TIMEOUT_S, SignInNeeded, Trouble, try_call

T = TypeVar("T")

PART_S: Final = 1.5
"""How long a page waits for a part that it can be shown without."""
_PROBE_S: Final = 0.2
_HUNG_S: Final = 1.0  # no answer after so long: it hangs, rather than refuses connections


class Patience:
    """Reads of one server.

    While it hangs, one call at a time is in progress; other reads fail at once. Any answer, however late, ends that
    state. A late call does not begin it if another was answered meanwhile: many requests of one person wait at the
    server for their turn.
    """

    def __init__(
        self,
        server: str,
        wait_s: float = TIMEOUT_S,
        now: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        """`wait_s`: for one answer; the call itself goes on until its own timeout."""
        self._server, self._wait_s, self._now, self._wall_s = server, wait_s, now, wall_s
        self._hangs_since: float | None = None
        self._answered_at = -math.inf
        self._under_way: set[asyncio.Task[object]] = set()

    async def run_call(self, call: Callable[[], Awaitable[T]], wait_s: float | None = None) -> T | Trouble:
        """Return the answer of the call, or why there is none. Raises SignInNeeded."""
        hangs = self._hangs_since is not None
        if hangs and self._under_way:
            return self._hangs()
        began, began_wall_s = self._now(), self._wall_s()
        task: asyncio.Task[T | Trouble] = asyncio.create_task(self._try_call(call, began, began_wall_s))
        self._under_way.add(task)
        task.add_done_callback(self._on_task_done)
        await asyncio.wait((task,), timeout=_PROBE_S if hangs else self._wait_s if wait_s is None else wait_s)
        if task.done():
            return task.result()
        if wait_s is None:
            self._note_silence(began, began_wall_s)
        return self._hangs()

    async def _try_call(self, call: Callable[[], Awaitable[T]], began: float, began_wall_s: float) -> T | Trouble:
        try:
            found = await try_call(self._server, call())
        except SignInNeeded:
            self._note_answer()
            raise
        if not (isinstance(found, Trouble) and found.kind == "away"):
            self._note_answer()
        elif self._now() - began >= _HUNG_S:
            self._note_silence(began, began_wall_s)
        return found

    def _note_answer(self) -> None:
        self._hangs_since, self._answered_at = None, self._now()

    def _note_silence(self, began: float, began_wall_s: float) -> None:
        if self._hangs_since is None and self._answered_at < began:
            self._hangs_since = began_wall_s

    def _on_task_done(self, task: asyncio.Task[T | Trouble]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, as nobody may be waiting for it any more

    def _hangs(self) -> Trouble:
        since_s = self._hangs_since if self._hangs_since is not None else self._wall_s()
        at = datetime.fromtimestamp(since_s, UTC).strftime("%H:%M:%S")
        text = f"{self._server} has not answered since {at} UTC"
        return Trouble(self._server, "away", text, "What it knows is missing here. The console keeps trying.")
