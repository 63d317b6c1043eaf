"""Work in the background of which each piece is under way once at most."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

_AFTER_FAILURE_S = 5.0

log = logging.getLogger(__name__)


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
