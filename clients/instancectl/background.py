"""Work in the background: named pieces, each under way once at most, and threads that are never left behind."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_AFTER_FAILURE_S = 5.0

log = logging.getLogger(__name__)
T = TypeVar("T")


class Chores:
    """Named pieces of work.

    Args:
        done: called when a piece has ended; a while later if it failed, so that it can be tried again.
    """

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a piece of work, unless one of this name is under way."""
        if name not in self._tasks:
            task = self._tasks[name] = asyncio.create_task(work(), name=name)
            task.add_done_callback(self._ended)

    async def wait(self) -> None:
        """Until what is under way now has ended."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())
            await asyncio.sleep(0)  # lets the ends be noted

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task.get_name()]
        if not task.cancelled() and (error := task.exception()):
            log.error("could not %s: %s", task.get_name(), error)
            asyncio.get_running_loop().call_later(_AFTER_FAILURE_S, self._done)
        else:
            self._done()


class Cancelled(Exception):
    """The work was told to end, and did."""


class Cancel:
    """Tells blocking work to end. It asks `check` every now and then."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._interrupts: list[Callable[[], object]] = []

    def set(self) -> None:
        self._event.set()
        for interrupt in self._interrupts:
            interrupt()

    def interrupted_by(self, interrupt: Callable[[], object]) -> None:
        """Call this, from another thread, to end what the work waits for."""
        self._interrupts.append(interrupt)
        if self._event.is_set():
            interrupt()

    def check(self) -> None:
        """Raises Cancelled."""
        if self._event.is_set():
            raise Cancelled

    def wait(self, timeout_s: float) -> None:
        """Sleep, unless told to end. Raises Cancelled."""
        self._event.wait(timeout_s)
        self.check()


async def in_thread(work: Callable[[Cancel], T]) -> T:
    """Do `work` in a thread. When cancelled, return only when the work has ended: it leaves nothing half done."""
    cancel = Cancel()
    running = asyncio.ensure_future(asyncio.to_thread(work, cancel))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancel.set()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # looked at, so that nobody complains about it
        raise
