"""Reconcile: bring the world, key by key, to what the records say. Level-triggered: a run looks for itself what to do.

At most one run per key; triggers during a run cause one more. Runs happen only while this process acts, and
are cancelled when it stops acting. A run that fails is repeated with backoff and jitter, and its error is a record.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Protocol

from control.errors import RecordChanged
from hqclient.backoff import backoff_limit_s
from serving.clock import Clock
from serving.errors import ServiceError

log = logging.getLogger(__name__)

BACKOFF_S = (0.5, 30.0)

Run = Callable[[str], Awaitable[float | None]]


class Failures(Protocol):
    """Where the errors of keys are shown."""

    async def show(self, key: str, error: str) -> None: ...

    async def clear(self, key: str) -> None: ...


class Due:
    """Which keys are to be run, and when. Pure."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []  # of keys not running; entries that differ from `_at` are stale
        self._held: dict[str, float] = {}  # keys in backoff, and until when
        self._running: set[str] = set()

    def add(self, key: str, at: float) -> None:
        """Run a key at a time, or earlier if it is already scheduled so; not before its backoff ends."""
        at = max(at, self._held.get(key, at))
        if at < self._at.get(key, float("inf")):
            self._at[key] = at
            if key not in self._running:
                heapq.heappush(self._heap, (at, key))

    def hold(self, key: str, until: float) -> None:
        """After a failed run, let the next one come at this time, whatever triggers it."""
        self._held[key] = until
        self._at.pop(key, None)
        self.add(key, until)

    def take(self, now: float) -> str | None:
        """A due key that is not running; it counts as running until `finish`."""
        if self.next_at() > now:
            return None
        _, key = heapq.heappop(self._heap)
        del self._at[key]
        self._held.pop(key, None)
        self._running.add(key)
        return key

    def finish(self, key: str) -> None:
        self._running.discard(key)
        if key in self._at:
            heapq.heappush(self._heap, (self._at[key], key))

    def next_at(self) -> float:
        """When the next key is due; inf: none is."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else float("inf")


class Reconciler:
    """Runs one function over keys."""

    def __init__(
        self,
        name: str,
        run: Run,
        keys: Callable[[], Iterable[str]],
        failures: Failures,
        clock: Clock,
        rng: random.Random,
        workers: int = 8,
    ) -> None:
        """`run` returns after how many seconds the key runs again without a trigger; None: it does not.

        `keys`: all existing keys; each runs once when this process begins to act.
        """
        self.name = name
        self._run, self._keys, self._failures = run, keys, failures
        self._clock, self._rng, self._workers = clock, rng, workers
        self._due = Due()
        self._attempts: dict[str, int] = {}
        self._moved = asyncio.Event()

    def trigger(self, key: str, after_s: float = 0.0) -> None:
        """Run a key soon, or in some seconds; does nothing while this process does not act."""
        self._due.add(key, self._clock.now() + after_s)
        self._moved.set()

    def trigger_all(self) -> None:
        for key in self._keys():
            self.trigger(key)

    async def serve(self) -> None:
        """Run keys until cancelled: all existing ones, then those that are triggered."""
        self._due, self._attempts = Due(), {}
        self.trigger_all()
        tasks: set[asyncio.Task[None]] = set()

        def on_task_done(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            self._moved.set()

        try:
            while True:
                self._moved.clear()
                while len(tasks) < self._workers and (key := self._due.take(self._clock.now())) is not None:
                    task = asyncio.create_task(self._once(self._due, key), name=f"{self.name} {key}")
                    tasks.add(task)
                    task.add_done_callback(on_task_done)
                await self._wait(full=len(tasks) >= self._workers)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait(self, *, full: bool) -> None:
        delay_s = None if full else max(0.0, self._due.next_at() - self._clock.now())
        try:
            async with asyncio.timeout(None if delay_s == float("inf") else delay_s):
                await self._moved.wait()
        except TimeoutError:
            pass

    async def _once(self, due: Due, key: str) -> None:
        try:
            again_s = await self._run(key)
            self._attempts.pop(key, None)
            with suppress(ServiceError):
                await self._failures.clear(key)
            if again_s is not None:
                due.add(key, self._clock.now() + again_s)
        except RecordChanged:
            due.add(key, self._clock.now())  # its basis has changed: decide again
        except Exception as error:
            await self._record_failure(due, key, error)
        finally:
            due.finish(key)

    async def _record_failure(self, due: Due, key: str, error: Exception) -> None:
        attempt = self._attempts[key] = self._attempts.get(key, 0) + 1
        longest_s = backoff_limit_s(attempt, *BACKOFF_S)
        due.hold(key, self._clock.now() + self._rng.uniform(longest_s / 2, longest_s))
        text = str(error) if isinstance(error, ServiceError) else f"{type(error).__name__}: {error}"
        log.warning(
            "%s %s failed, attempt %d: %s", self.name, key, attempt, text, exc_info=not isinstance(error, ServiceError)
        )
        try:
            await self._failures.show(key, text)
        except ServiceError as unshown:
            log.info("%s %s: the failure is not stored: %s", self.name, key, unshown)
