"""Blocking work in a thread that is never left behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


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
