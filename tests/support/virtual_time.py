"""Tests in virtual time: an event loop whose clock jumps to the next timer instead of waiting for it.

Everything must happen in memory: where nothing is left to do and no timer is set, the test fails as a deadlock.

    @in_virtual_time
    async def test_an_hour_takes_no_time() -> None:
        await asyncio.sleep(3600)
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

START_S = 1_000.0
START_WALL_MS = 1_700_000_000_000
EPSILON_S = 1e-6


class Deadlock(Exception):
    """Every task waits for something that cannot come."""


class _Clockwork(selectors.SelectSelector):
    """Never waits: moves the loop's time instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = START_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # With no socket but the loop's own wake-up there is nothing to ask the system for, unless all tasks wait.
        ready = super().select(0) if timeout is None or len(self.get_map()) > 1 else []
        if not ready and timeout is None:
            raise Deadlock("all tasks wait, and no timer is set")
        if not ready and timeout:
            self.now_s += timeout + EPSILON_S
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is virtual."""

    def __init__(self) -> None:
        self._clockwork = _Clockwork()
        super().__init__(self._clockwork)

    def time(self) -> float:
        return self._clockwork.now_s

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run it here and now: time must not jump while a thread works."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # it is the caller's
            future.set_exception(error)
        return future

    def jump(self, seconds: float) -> None:
        """Let time pass while nothing happens, as if the machine had been suspended."""
        self._clockwork.now_s += seconds


class VirtualClock:
    """HQ's clock on the running loop; its wall clock may be off."""

    def __init__(self, off_s: float = 0.0) -> None:
        self._off_s = off_s

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def wall_ms(self) -> int:
        return START_WALL_MS + round((self.now() - START_S + self._off_s) * 1000)


def run_virtually(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run to the end in virtual time. Tasks left over are cancelled."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Make a test in virtual time of an async function."""

    @functools.wraps(test)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtually(lambda: test(*args, **kwargs))

    return wrapper
