"""The one event loop of a process's synchronous clients: a thread that starts with the first call, also in a fork."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from hqclient.errors import HqApiError

T = TypeVar("T")

_END_S = 5.0
_REST_S = 1.0


class BackgroundLoop:
    """Runs coroutines for threads that wait for them.

    Attributes:
        generation: changes when the loop ends: what belonged to it is gone.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.generation = 0
        self.opened: weakref.WeakSet[Reopened[Any]] = weakref.WeakSet()
        atexit.register(self.stop)
        # A fork has none of its parent's threads; gRPC's core, which loses its own, starts again only if at rest.
        os.register_at_fork(before=self._stop_for_fork, after_in_parent=self._unlock, after_in_child=self._unlock)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the coroutine's result or raise its exception, without frames of the loop. Ctrl-C cancels it."""
        loop = self._running_loop()
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a synchronous client cannot wait inside its own loop: use hqclient's asyncio one there")
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        try:
            return future.result()
        except HqApiError as error:
            raise error.with_traceback(None) from None
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], T]) -> T:
        """The result of a plain function that touches what belongs to the loop."""

        async def run_in_loop() -> T:
            return function()

        return self.run(run_in_loop())

    def stop(self) -> None:
        """Close what is open, and end the thread. The next call starts another one."""
        with self._lock:
            for each in list(self.opened):
                with suppress(Exception):  # whatever it is, it must hinder neither a fork nor the end of the process
                    each.close()
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
            self.generation += 1
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_END_S)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="hqclient", daemon=True)
                self._thread.start()
            return self._loop

    def _stop_for_fork(self) -> None:
        self._lock.acquire()  # until both sides of the fork are there
        if self._loop is not None:
            self.stop()
            gc.collect()  # gRPC's core comes to rest when its last channel is gone
            _wait_for_foreign_threads()

    def _unlock(self) -> None:
        self._lock.release()


def _wait_for_foreign_threads() -> None:
    """Until only Python's threads are left, or a second: gRPC's own end some milliseconds after its last channel."""
    until = time.monotonic() + _REST_S
    while time.monotonic() < until:
        try:
            running = sum(1 for _ in Path("/proc/self/task").iterdir())
        except OSError:  # not Linux
            return
        if running <= threading.active_count():
            return
        time.sleep(0.002)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_cancel_all())
    finally:
        loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


class Reopened(Generic[T]):
    """Something that lives in the background loop, and is opened again in the next loop (after a fork)."""

    def __init__(self, open_one: Callable[[], Awaitable[T]], close_one: Callable[[T], Awaitable[None]]) -> None:
        self._open_one, self._close_one = open_one, close_one
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._opened: tuple[int, T] | None = None

    def get(self) -> T:
        """What is open in the current loop; opens it if need be."""
        if self._pid != os.getpid():  # the lock may have been held by a thread that the fork does not have
            self._lock, self._pid = threading.Lock(), os.getpid()
        with self._lock:
            if self._opened is None or self._opened[0] != BACKGROUND.generation:
                self._opened = BACKGROUND.generation, BACKGROUND.run(_await_result(self._open_one))
                BACKGROUND.opened.add(self)
            return self._opened[1]

    def close(self) -> None:
        """Close it if it was opened. May be called twice; another `get` opens it again."""
        opened, self._opened = self._opened, None
        BACKGROUND.opened.discard(self)
        if opened is not None and opened[0] == BACKGROUND.generation:
            BACKGROUND.run(_await_result(lambda: self._close_one(opened[1])))


async def _await_result(make: Callable[[], Awaitable[T]]) -> T:
    return await make()


BACKGROUND = BackgroundLoop()
