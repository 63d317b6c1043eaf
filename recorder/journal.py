"""From what the watches say to the files: one batch a second, in a thread; what a full disk does."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Mapping

from hqclient import Client, HqApiError
from recorder.archive import DAY_MS, Archive, Gap
from recorder.observed import ObservedLocation, Row, Step
from serving.clock import Clock

log = logging.getLogger(__name__)

_FLUSH_S = 1.0
_RETRY_S = 10.0
_STEP_BACK_MS = 1_000


class Journal:
    """Follows locations and writes what they show.

    While the disk takes nothing, nothing is recorded and serving goes on; afterwards the difference is, behind a gap.

    Attributes:
        trouble: why nothing is being written; empty: it is.
        gaps: by location, since when nothing is heard from it, and why.
    """

    def __init__(self, archive: Archive, clients: Mapping[str, Client], clock: Clock) -> None:
        self._archive, self._clients, self._clock = archive, clients, clock
        self._locations: dict[str, ObservedLocation] = {}
        self._rows: list[Row] = []
        self._begun: list[Gap] = []
        self._ended: dict[str, int] = {}
        self._current: set[str] = set()
        self._last_ms = 0
        self.gaps: dict[str, Gap] = {}
        self.trouble = ""
        self.written_rows = 0
        self.known_ms: dict[str, int] = {}

    @property
    def locations(self) -> list[str]:
        """The names of those that are followed."""
        return list(self._clients)

    @property
    def instances(self) -> int:
        """How many are known now."""
        return sum(len(location) for location in self._locations.values())

    @property
    def is_complete(self) -> bool:
        """Every location is heard, and all is written."""
        return len(self._locations) == len(self._clients) and not self.gaps and not self.trouble

    async def run(self) -> None:
        """Until cancelled."""
        await self._load()
        try:
            async with asyncio.TaskGroup() as group:
                for name in self._clients:
                    group.create_task(self._follow(name), name=f"record {name}")
                group.create_task(self._write_on(), name="write")
        finally:
            await self._write(self._now_ms())

    async def _load(self) -> None:
        for name in self._clients:
            recorded, until_ms = await asyncio.to_thread(self._archive.newest, name)
            self._locations[name] = ObservedLocation(name, recorded)
            now_ms = self._now_ms()
            self._last_ms = max(self._last_ms, min(until_ms, now_ms))
            self._begin_gap(name, until_ms or now_ms, "the recorder was not running")

    async def _follow(self, name: str) -> None:
        while True:
            try:
                async with self._clients[name].watch() as items:
                    async for item in items:
                        self._add(name, self._locations[name].apply(item, self._now_ms()))
            except HqApiError as error:
                log.warning("%s cannot be followed: %s", name, error)
                self._begin_gap(name, self._now_ms(), f"HQ refuses: {error.message}")
            await asyncio.sleep(_RETRY_S)

    def _add(self, name: str, step: Step) -> None:
        now_ms = self._now_ms()
        self._rows.extend(step.rows)
        if step.gap:
            self._begin_gap(name, now_ms, step.gap)
        if step.is_current:
            self._current.add(name)
            if self.gaps.pop(name, None) is not None:
                self._ended[name] = now_ms

    def _begin_gap(self, name: str, since_ms: int, reason: str) -> None:
        if name in self.gaps:
            return
        if name in self._ended:  # in this batch: it goes on
            del self._ended[name]
        self.gaps[name] = gap = Gap(name, since_ms, None, reason)
        self._begun.append(gap)

    def _now_ms(self) -> int:
        """Never earlier than what was recorded before: an order by time is the order in which things were heard."""
        now_ms = self._clock.wall_ms()
        if now_ms < self._last_ms - _STEP_BACK_MS:
            log.warning("the clock of this machine was set back by %.0f s", (self._last_ms - now_ms) / 1000)
        self._last_ms = max(self._last_ms, now_ms)
        return self._last_ms

    async def _write_on(self) -> None:
        pruned_day = -1
        while True:
            await asyncio.sleep(_FLUSH_S if not self.trouble else _RETRY_S)
            now_ms = self._now_ms()
            await self._write(now_ms)
            if not self.trouble and now_ms // DAY_MS != pruned_day:
                pruned_day = now_ms // DAY_MS
                for day in await asyncio.to_thread(self._archive.prune):
                    log.info("deleted the record of %s", day)

    async def _write(self, now_ms: int) -> None:
        if self.trouble and not await self._catch_up(now_ms):
            return
        rows, self._rows = self._rows, []
        begun, self._begun = self._begun, []
        ended, self._ended = self._ended, {}
        current, self._current = self._current, set()
        if not (rows or begun or ended or current):
            return
        try:
            await asyncio.to_thread(self._archive.write, now_ms, rows, begun, current, ended)
        except (sqlite3.Error, OSError) as error:
            self.trouble = f"the record cannot be written: {error}"
            log.warning("%s; what happens now is missing in it", self.trouble)
            for name in self._clients:
                self.gaps.pop(name, None)
                self._begun = [gap for gap in begun if gap.cluster != name]
                self._begin_gap(name, self.known_ms.get(name, now_ms), self.trouble)
            return
        self.written_rows += len(rows)
        self.known_ms.update(dict.fromkeys(current, now_ms))

    async def _catch_up(self, now_ms: int) -> bool:
        """Whether the disk takes records again; then what it lacks is the next to be written."""
        try:
            for name, location in self._locations.items():
                recorded, _ = await asyncio.to_thread(self._archive.newest, name)
                location.start_from(recorded)
            self._rows = [row for location in self._locations.values() for row in location.difference(now_ms)]
            await asyncio.to_thread(self._archive.write, now_ms, (), (), (), {})
        except (sqlite3.Error, OSError) as error:
            log.warning("the record still cannot be written: %s", error)
            self._rows.clear()
            return False
        self.trouble = ""
        return True
