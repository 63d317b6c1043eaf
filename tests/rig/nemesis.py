"""Strikes the faults of a schedule, several at a time, never two of one target."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.rig.faults import Faults
from tests.rig.recording import Log, now_ns
from tests.rig.schedule import Order


class Nemesis:
    """Strikes the faults of a schedule, at most a few at a time, and counts them.

    Attributes:
        struck, failed: how many of each kind; a fault that could not be struck (nobody to compact, say) has failed.
    """

    def __init__(self, faults: Faults, log: Log, say: Callable[[str], None], at_once: int = 3) -> None:
        self._faults, self._log, self._say, self._at_once = faults, log, say, at_once
        self._active: set[asyncio.Task[None]] = set()
        self._targets: set[tuple[str, int]] = set()
        self._fatal: BaseException | None = None  # no fault may do that: a replica died of itself, say
        self.struck: dict[str, int] = {}
        self.failed: dict[str, int] = {}

    async def run(self, orders: list[Order]) -> None:
        """Strike one after the other, each at its time or, if too many are under way, later."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            for order in orders:
                await asyncio.sleep(began + order.at_s - loop.time())
                while len(self._active) >= (1 if order.kind.alone else self._at_once):
                    await asyncio.wait(self._active, return_when=asyncio.FIRST_COMPLETED)
                task = asyncio.create_task(self._strike(order))
                self._active.add(task)
                task.add_done_callback(self._done)
                if self._fatal is not None:
                    raise self._fatal
                if order.kind.alone:
                    await asyncio.wait((task,))
            await self.quiet()
            if self._fatal is not None:
                raise self._fatal
        finally:
            for task in self._active:
                task.cancel()
            await asyncio.gather(*self._active, return_exceptions=True)

    async def quiet(self) -> None:
        """Return when no fault is under way."""
        if self._active:
            await asyncio.wait(self._active)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._active.discard(task)
        if not task.cancelled():
            self._fatal = self._fatal or task.exception()

    async def _strike(self, order: Order) -> None:
        order = self._free(order)
        what, taken = order.kind.name, self._subjects(order)
        if taken & self._targets:
            self.failed[what] = self.failed.get(what, 0) + 1
            return
        self._targets |= taken
        began_ns = now_ns()
        try:
            async with self._faults.of(order):
                self.struck[what] = self.struck.get(what, 0) + 1
                self._say(str(order))
                await asyncio.sleep(order.lasts_s)
        except (OSError, TimeoutError) as error:
            self.failed[what] = self.failed.get(what, 0) + 1
            self._say(f"{order}: {error!r}")
        finally:
            self._targets -= taken
            if not order.kind.records_itself:
                self._log.fault(what, began_ns)

    def _free(self, order: Order) -> Order:
        """The order, at another target if its own is taken."""
        for step in range(3):
            moved = order._replace(target=(order.target + step) % 3, other=(order.other + step) % 3)
            if not self._subjects(moved) & self._targets:
                return moved
        return order

    @staticmethod
    def _subjects(order: Order) -> set[tuple[str, int]]:
        name = order.kind.name
        if name.startswith("gateway"):
            return {("gateway", 0)}
        if name.startswith("all replicas"):
            return {("replica", number) for number in range(3)}
        if name.startswith(("all members", "leader")):
            return {("member", number) for number in range(3)}
        kind = "replica" if name.startswith("replica") else "member" if name.startswith("member") else name
        return {(kind, order.target)}
