"""Writes what watches deliver to files: one batch a second, in a thread. Says what happens when the disk is full."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hqclient import Client, HqApiError
from recorder.archive import Archive
from recorder.day_file import DAY_MS
from recorder.decided import DecisionRow
from recorder.decision_tables import LedgerChunk
from recorder.gaps import Gap, server_name
from recorder.observed import ObservedLocation, Row, Step
from recorder.servers import ServerSource
from serving.clock import Clock

log = logging.getLogger(__name__)

_FLUSH_S = 1.0
_RETRY_S = 10.0
_STEP_BACK_MS = 1_000
NOT_RUNNING: Final = "the recorder was not running"
NOTHING_BEFORE: Final = "nothing was recorded before"


@dataclass(slots=True)
class _Batch:
    """The next batch to write. `ended`: when open gaps on record end; `current`: locations known up to now."""

    rows: list[Row] = field(default_factory=list)
    decisions: list[DecisionRow] = field(default_factory=list)
    chunks: list[LedgerChunk] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    ended: dict[str, int] = field(default_factory=dict)
    current: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.rows or self.decisions or self.chunks or self.gaps or self.ended or self.current)


class Journal:
    """Follows locations, and CMS, Nanny and Wall-E, and writes what they show.

    While the disk takes nothing, nothing is recorded and serving goes on; then the difference is recorded, after a gap.

    Attributes:
        trouble: why nothing is being written; empty: it is.
        gaps: by location or server (`server_name`), since when nothing is heard from it, and why.
        known_ms: likewise, up to when the record is complete.
    """

    def __init__(
        self, archive: Archive, clients: Mapping[str, Client], clock: Clock, sources: Sequence[ServerSource] = ()
    ) -> None:
        self._archive, self._clients, self._clock, self._sources = archive, clients, clock, sources
        self._newest: dict[str, int] = {}
        self._locations: dict[str, ObservedLocation] = {}
        self._reasons: dict[str, str] = {}  # why a location or server is not followed, as logged last
        self._batch = _Batch()
        self._last_ms = 0
        self._is_set_back = False
        self.gaps: dict[str, Gap] = {}
        self.trouble = ""
        self.written_rows = 0
        self.known_ms: dict[str, int] = {}

    @property
    def locations(self) -> list[str]:
        """The names of all locations and servers that are followed."""
        return [*self._clients, *(server_name(one.server) for one in self._sources)]

    @property
    def instances(self) -> int:
        """How many instances are known now."""
        return sum(len(location) for location in self._locations.values())

    def staleness_s(self) -> float | None:
        """For how long the location with the oldest record has not been known; None: one was never known."""
        known_ms = [self.known_ms.get(name, 0) for name in self._clients]
        if not all(known_ms):
            return None
        return max(0, self._clock.wall_ms() - min(known_ms)) / 1_000 if known_ms else 0.0

    async def run(self) -> None:
        """Follow and write until cancelled."""
        await self._load()
        try:
            async with asyncio.TaskGroup() as group:
                for name in self._clients:
                    group.create_task(self._follow(name), name=f"record {name}")
                for source in self._sources:
                    running = source.run(self, self._newest.get(source.server, 0))
                    group.create_task(running, name=f"record {source.server}")
                group.create_task(self._write_on(), name="write")
        finally:
            await self._write(self.now_ms())

    async def _load(self) -> None:
        for name in self._clients:
            recorded, until_ms = await asyncio.to_thread(self._archive.newest, name)
            self._locations[name] = ObservedLocation(name, recorded)
            self._last_ms = max(self._last_ms, min(until_ms, self.now_ms()))
            if until_ms:
                self.known_ms[name] = until_ms
            self._begin_gap(name, until_ms, NOT_RUNNING if until_ms else NOTHING_BEFORE)
        for source in self._sources:
            name = server_name(source.server)
            _, until_ms = await asyncio.to_thread(self._archive.newest, name)
            self._newest[source.server] = await asyncio.to_thread(self._archive.newest_decision, source.server)
            self._begin_gap(name, until_ms, NOT_RUNNING if until_ms else NOTHING_BEFORE)

    async def _follow(self, name: str) -> None:
        while True:
            try:
                async with self._clients[name].watch() as items:
                    async for item in items:
                        self._add(name, self._locations[name].apply(item, self.now_ms()))
            except HqApiError as error:
                log.warning("%s cannot be followed: %s", name, error)
                self._add(name, Step(gap=f"HQ refuses: {error.message}"))
            await asyncio.sleep(_RETRY_S)

    def _add(self, name: str, step: Step) -> None:
        if self.trouble:
            return  # the comparison in `_catch_up` finds what is lost now
        self._batch.rows.extend(step.rows)
        if step.gap:
            self._warn(name, step.gap, "location")
            self._begin_gap(name, self.now_ms(), step.gap)
        if step.is_current:
            self._note_current(name)

    def add_decisions(self, server: str, rows: Sequence[DecisionRow], chunks: Sequence[LedgerChunk] = ()) -> bool:
        """Record these; the server is known up to now. False: nothing is recorded now, start over later."""
        if self.trouble:
            return False
        self._batch.decisions.extend(rows)
        self._batch.chunks.extend(chunks)
        self._note_current(server_name(server))
        return True

    def lose_server(self, server: str, reason: str) -> None:
        """Note that nothing is heard from a server."""
        if not self.trouble:
            flag = next(one.flag for one in self._sources if one.server == server)
            self._warn(server_name(server), reason, flag)
            self._begin_gap(server_name(server), self.now_ms(), reason)

    def _note_current(self, name: str) -> None:
        self._reasons.pop(name, None)
        self._batch.current.add(name)
        if (gap := self.gaps.pop(name, None)) is not None:
            self._end_gap(gap)

    def _end_gap(self, gap: Gap) -> None:
        if gap in self._batch.gaps:
            self._batch.gaps[self._batch.gaps.index(gap)] = gap._replace(until_ms=self.now_ms())
        else:
            self._batch.ended[gap.cluster] = self.now_ms()

    def _warn(self, name: str, reason: str, flag: str) -> None:
        if self._reasons.get(name) != reason:
            log.warning("%s (check --%s): %s; trying again", name, flag, reason)
        self._reasons[name] = reason

    def _begin_gap(self, name: str, since_ms: int, reason: str) -> None:
        if name not in self.gaps:
            self.gaps[name] = gap = Gap(name, since_ms, None, reason)
            self._batch.gaps.append(gap)

    def now_ms(self) -> int:
        """The time, never earlier than what was recorded: rows ordered by time are in the order they were heard in."""
        now_ms = self._clock.wall_ms()
        is_set_back = now_ms < self._last_ms - _STEP_BACK_MS
        if is_set_back and not self._is_set_back:
            log.warning("the clock of this machine was set back by %.0f s", (self._last_ms - now_ms) / 1_000)
        self._is_set_back = is_set_back
        self._last_ms = max(self._last_ms, now_ms)
        return self._last_ms

    async def _write_on(self) -> None:
        pruned_day = -1
        while True:
            await asyncio.sleep(_FLUSH_S if not self.trouble else _RETRY_S)
            now_ms = self.now_ms()
            await self._write(now_ms)
            if not self.trouble and now_ms // DAY_MS != pruned_day:
                pruned_day = now_ms // DAY_MS
                await self._prune()

    async def _prune(self) -> None:
        try:
            for day in await asyncio.to_thread(self._archive.prune):
                log.info("deleted the record of %s", day)
        except OSError as error:
            log.warning("old days cannot be deleted: %s", error)

    async def _write(self, now_ms: int) -> None:
        try:
            if self.trouble:
                await self._catch_up(now_ms)
            batch, self._batch = self._batch, _Batch()
            if batch:
                where = batch.gaps, batch.current, batch.ended
                await asyncio.to_thread(self._archive.write, now_ms, batch.rows, *where, batch.decisions, batch.chunks)
        except (sqlite3.Error, OSError) as error:
            self._stop_recording(f"the record cannot be written: {error}", now_ms)
            return
        self.written_rows += len(batch.rows)
        self.known_ms.update(dict.fromkeys(batch.current, now_ms))

    def _stop_recording(self, why: str, now_ms: int) -> None:
        if not self.trouble:
            log.warning("%s; what happens now is missing in it", why)
        self.trouble, self._batch = why, _Batch()
        for name in self.locations:
            earlier = self.gaps.get(name)
            since_ms = min(self.known_ms.get(name, now_ms), earlier.since_ms if earlier is not None else now_ms)
            self.gaps[name] = Gap(name, since_ms, None, why)

    async def _catch_up(self, now_ms: int) -> None:
        """If the disk takes records again, have what the record lacks written next. Raises sqlite3.Error, OSError."""
        await asyncio.to_thread(self._archive.check_writable)  # first: all is read only if this succeeds
        for name, location in self._locations.items():
            recorded, _ = await asyncio.to_thread(self._archive.newest, name)
            location.start_from(recorded)
        rows = [row for location in self._locations.values() for row in location.difference(now_ms)]
        self._batch = _Batch(rows, gaps=[*self.gaps.values()])
        self.trouble = ""
        log.info("the record is written again")
