"""What the record has when a disk is full, HQ is away for an hour, a clock is set back, a second recorder starts."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from hqclient.errors import HqApiError
from hqclient.watch_items import Bookmark, Changes, Interrupted, SnapshotPart, Synced, WatchItem
from hqpb.v1 import service_pb2
from recorder.archive import Archive, DirectoryInUse
from recorder.day_file import DAY_MS, Selection
from recorder.gaps import Gap
from recorder.journal import NOT_RUNNING, Journal
from recorder.observed import Row
from serving.clock import ManualClock
from tests.recorder.test_archive import SOURCES, instance
from tests.support.virtual_time import run_virtually

DAY_END_MS = 1_800_000_000_000


class FullDisk(Archive):
    """A real record on a disk that can be full."""

    is_full = False
    writes = reads = 0

    def write(
        self,
        now_ms: int,
        rows: Sequence[Row],
        gaps: Iterable[Gap],
        current: Iterable[str],
        ends: Mapping[str, int],
        *of_servers: Any,
    ) -> None:
        self.writes += 1
        if self.is_full:
            raise sqlite3.OperationalError("database or disk is full")
        super().write(now_ms, rows, gaps, current, ends, *of_servers)

    def check_writable(self) -> None:
        if self.is_full:
            raise sqlite3.OperationalError("database or disk is full")
        super().check_writable()

    def newest(self, cluster: str) -> Any:
        self.reads += 1
        return super().newest(cluster)


class ScriptedHq:
    """A client whose watch says what it is told to."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[WatchItem] = asyncio.Queue()

    def says(self, *items: WatchItem) -> None:
        for item in items:
            self._items.put_nowait(item)

    def watch(self) -> Any:
        @asynccontextmanager
        async def opened() -> AsyncIterator[AsyncIterator[WatchItem]]:
            async def run() -> AsyncIterator[WatchItem]:
                while True:
                    yield await self._items.get()

            yield run()

        return opened()

    def shows(self, *instances: Any) -> None:
        """A whole snapshot."""
        self.says(SnapshotPart(instances), Synced("t", SOURCES))

    def changes(self, version: int, changed: Any) -> None:
        self.says(Changes((service_pb2.WatchEvent(version=version, put=changed),), "t", SOURCES))


class Scene:
    def __init__(self, directory: Path, *names: str) -> None:
        self.archive, self.clock = FullDisk(directory, 30, 1 << 30), ManualClock()
        self.hq = {name: ScriptedHq() for name in names or ("ams",)}
        clients: Any = self.hq
        self.journal = Journal(self.archive, clients, self.clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Scene]:
        task = asyncio.create_task(self.journal.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(1.0)
            await asyncio.sleep(1.0)
            await asyncio.sleep(0)

    def kinds(self) -> list[int]:
        return [row.kind for _, row in self.archive.events(Selection(), 0, DAY_END_MS)][::-1]

    def gaps(self) -> list[Gap]:
        return self.archive.gaps(0, DAY_END_MS)

    def ids(self) -> list[str]:
        return [one.meta.id for one in self.archive.at(self.clock.wall_ms(), Selection()).instances]


BOOKMARK = Bookmark("t", SOURCES)


def away() -> Interrupted:
    return Interrupted(HqApiError(grpc.StatusCode.UNAVAILABLE, "connection refused"), 10.0)


@pytest.mark.parametrize("names", [("ams",), ("ams", "fra")])
def test_a_disk_that_is_full_for_an_hour_is_a_gap_and_costs_little(tmp_path: Path, names: tuple[str, ...]) -> None:
    async def main() -> None:
        async with Scene(tmp_path, *names).running() as scene:
            for hq in scene.hq.values():
                hq.shows(instance("web-1"))
            await scene.passes(3)
            scene.archive.is_full = True
            began_ms, reads = scene.clock.wall_ms(), scene.archive.reads
            for number in range(360):  # of heartbeats and changes
                scene.hq["ams"].changes(number + 2, instance("web-1", ready=number % 2 == 0))
                for hq in scene.hq.values():
                    hq.says(BOOKMARK)
                await scene.passes(10)
            assert "full" in scene.journal.trouble
            assert scene.archive.reads == reads  # the record is not read while nothing can be written
            scene.archive.is_full = False
            scene.hq["ams"].changes(1_000, instance("web-2"))
            await scene.passes(15)
            for hq in scene.hq.values():
                hq.says(BOOKMARK)
            await scene.passes(3)
            assert not scene.journal.trouble
            assert scene.ids().count("web-2") == 1
            full = [gap for gap in scene.gaps() if "full" in gap.reason]
            assert {gap.cluster for gap in full} == set(names)
            assert all(gap.since_ms <= began_ms and gap.until_ms == scene.journal.known_ms[gap.cluster] for gap in full)

    run_virtually(main)


def test_an_hour_without_hq_is_one_gap_and_no_writes(tmp_path: Path) -> None:
    async def main() -> None:
        async with Scene(tmp_path).running() as scene:
            scene.hq["ams"].shows(instance("web-1"))
            await scene.passes(3)
            scene.hq["ams"].says(away())
            await scene.passes(3)
            writes = scene.archive.writes
            for _ in range(360):
                scene.hq["ams"].says(away())
                await scene.passes(10)
            assert scene.archive.writes == writes
            scene.hq["ams"].says(Synced("t", SOURCES))
            scene.hq["ams"].changes(9, instance("web-2"))
            await scene.passes(3)
            assert scene.journal.gaps  # what was missed may still be on its way
            scene.hq["ams"].says(BOOKMARK)
            await scene.passes(3)
            assert not scene.journal.gaps
            [gap] = [gap for gap in scene.gaps() if "followed" in gap.reason]
            assert gap.until_ms is not None
            assert 3_600_000 <= gap.until_ms - gap.since_ms < 3_700_000

    run_virtually(main)


def test_a_clock_that_is_set_back_never_turns_the_order_around(tmp_path: Path) -> None:
    async def main() -> None:
        async with Scene(tmp_path).running() as scene:
            scene.hq["ams"].shows(instance("web-1"))
            await scene.passes(3)
            scene.clock = scene.journal._clock = ManualClock(wall_ms=scene.clock.wall_ms() - 600_000)
            scene.hq["ams"].changes(2, instance("web-2"))
            await scene.passes(3)
            times = [row.at_ms for _, row in scene.archive.events(Selection(), 0, DAY_END_MS)][::-1]
            assert len(times) == 2
            assert times == sorted(times)

    run_virtually(main)


def test_before_its_first_start_nothing_is_known_and_a_snapshot_is_current_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with Scene(tmp_path).running() as scene:
            scene.hq["ams"].shows(instance("web-1"))
            await scene.passes(3)
            assert not scene.journal.gaps
            then = scene.archive.at(scene.clock.wall_ms() - 3_600_000, Selection())
            assert (then.instances, then.age_ms) == ([], 0)
            assert "nothing was recorded before" in then.gap
            assert not scene.archive.at(scene.clock.wall_ms(), Selection()).gap

    run_virtually(main)


def test_a_directory_has_one_recorder(tmp_path: Path) -> None:
    first = Archive(tmp_path, 30, 1 << 30)
    first.lock()
    with pytest.raises(DirectoryInUse, match="another recorder"):
        Archive(tmp_path, 30, 1 << 30).lock()
    first.close()
    Archive(tmp_path, 30, 1 << 30).lock()


def test_a_recorder_that_was_killed_and_is_two_days_old_shows_its_gap_as_a_gap(tmp_path: Path) -> None:
    async def main() -> None:
        async with Scene(tmp_path / "killed").running() as scene:
            scene.hq["ams"].shows(instance("web-1"), instance("web-2"))
            await scene.passes(3)
            shutil.copytree(tmp_path / "killed", tmp_path / "copy")  # open files, with their logs: what a kill leaves
            stopped_ms = scene.clock.wall_ms()
        later = Scene(tmp_path / "copy")
        later.clock = later.journal._clock = ManualClock(wall_ms=stopped_ms + 2 * DAY_MS)
        async with later.running():
            later.hq["ams"].shows(instance("web-1"), instance("web-3"))
            await later.passes(3)
            assert later.ids() == ["web-1", "web-3"]
            assert not later.archive.at(later.clock.wall_ms(), Selection()).gap
            for away_ms in (60_000, DAY_MS, 2 * DAY_MS - 60_000):
                then = later.archive.at(stopped_ms + away_ms, Selection())
                assert [one.meta.id for one in then.instances] == ["web-1", "web-2"]
                assert abs(then.age_ms - away_ms) <= 3_000
                assert then.gap == f"ams: {NOT_RUNNING}", away_ms
            [gap] = [gap for gap in later.gaps() if gap.reason == NOT_RUNNING]
            assert gap.until_ms is not None
            assert gap.until_ms - gap.since_ms >= 2 * DAY_MS - 3_000
            found = {
                (row.instance, row.at_ms > stopped_ms) for _, row in later.archive.events(Selection(), 0, DAY_END_MS)
            }
            assert {("web-2", True), ("web-3", True)} <= found  # dated when it was found

    run_virtually(main)
