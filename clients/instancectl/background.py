"""Work in the background: named chores, each running at most once at a time, and threads that are never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

_AFTER_FAILURE_S = 5.0

log = logging.getLogger(__name__)
T = TypeVar("T")


class Chores:
    """Named pieces of work.

    Args:
        done: called when a chore has ended; after a delay if it failed, so that it can be retried.
    """

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a chore, unless one of this name is running."""
        if name not in self._tasks:
            task = self._tasks[name] = asyncio.create_task(work(), name=name)
            task.add_done_callback(self._on_task_done)

    async def wait(self) -> None:
        """Wait until the chores that are running now have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())
            await asyncio.sleep(0)  # lets the done callbacks run

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task.get_name()]
        if not task.cancelled() and (error := task.exception()):
            log.error("could not %s: %s", task.get_name(), error)
            asyncio.get_running_loop().call_later(_AFTER_FAILURE_S, self._done)
        else:
            self._done()


class Cancelled(Exception):
    """The work ended because it was stopped."""


class Cancel:
    """Tells blocking work to end; the work calls `check` from time to time."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._interrupts: list[Callable[[], object]] = []

    def set(self) -> None:
        self._event.set()
        for interrupt in self._interrupts:
            interrupt()

    def add_interrupt(self, interrupt: Callable[[], object]) -> None:
        """Call this, from another thread, to interrupt what the work waits for."""
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


def start_in_own_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Do `work` in a thread of its own.

    In a pool, work that hangs on a dead mount would hold up the work of all other instances, and the end of us.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def finish(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast("T", result))

    def run() -> None:
        result, fault = None, None
        try:
            result = context.run(work)
        except BaseException as error:
            fault = error
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(finish, result, fault)

    threading.Thread(target=run, name="instancectl work", daemon=True).start()
    return done


async def run_in_thread(work: Callable[[Cancel], T]) -> T:
    """Do `work` in a thread. When cancelled, return only when the work has ended, so nothing is left half done."""
    cancel = Cancel()
    running = start_in_own_thread(lambda: work(cancel))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancel.set()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # retrieved, so that asyncio does not complain about it
        raise
