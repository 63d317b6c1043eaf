"""A fair queue for work that comes all at once: who is next, and how much is done in one turn of the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

_MOST, _MOST_S = 16, 0.001  # requests, and seconds, before others have their turn
_SLICE_S = 0.002  # of work that takes long; not Final, which would be compiled into the code: a test changes it


class Turns:
    """One queue for all who share it. Everybody else (other servers of the process, the store) runs in between."""

    def __init__(self) -> None:
        self.left = _MOST  # requests until others have their turn; at 0 or below: `wait`
        self._line: deque[Callable[[], None]] = deque()
        self._is_coming = False

    def wait(self, act: Callable[[], None]) -> None:
        """Call `act` when those in line before have had their turn."""
        self._line.append(act)
        self._call()

    def enter(self, weight: int) -> bool:
        """Begin work that takes as long as so many requests. False: others wait, or this turn is full; call `next`."""
        if self._line or self.left < weight:
            return False
        self.left -= weight
        self._call()  # the turn ends with this round of the loop
        return True

    async def next(self, weight: int = _MOST) -> None:
        """Return when those in line before have had their turn; what follows takes as long as so many requests."""
        begins = asyncio.get_running_loop().create_future()

        def begin() -> None:
            if not begins.done():  # else its caller has left
                self.left -= weight
                begins.set_result(None)

        self.wait(begin)
        await begins

    async def in_slices(self, make: Callable[[S], T], things: Iterable[S]) -> list[T]:
        """Make a result of each, and let others run every few milliseconds."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        made = []
        for thing in things:
            made.append(make(thing))
            if loop.time() - began > _SLICE_S:
                await self.next()
                began = loop.time()
        return made

    def _call(self) -> None:
        if not self._is_coming:
            self._is_coming = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        time = asyncio.get_running_loop().time
        self._is_coming, self.left, until = False, _MOST, time() + _MOST_S
        try:
            while self._line:
                self._line.popleft()()
                if self.left <= 0 or time() > until:
                    break
        finally:  # the loop reports whatever one of them raised
            if self._line:
                self.left = 0
                self._call()
