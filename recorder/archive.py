"""The record on disk: a SQLite file for each day (UTC). It begins with all that there was: each can be read alone.

One thread writes at a time. Readers open files of their own, read-only. A file can be copied, moved or deleted.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from hqpb.v1 import instance_pb2
from recorder import decision_tables
from recorder.day_file import (
    BASE,
    DAY_MS,
    FORMAT,
    Selection,
    begin_day,
    create_day,
    day_start,
    file_size,
    open_to_read,
    read_age,
    read_instances,
)
from recorder.decided import DecisionRow
from recorder.decision_tables import LedgerChunk
from recorder.gaps import Gap, is_asked_for, join_gap, overlaps
from recorder.observed import DELETED, Row, is_ready


class Moment(NamedTuple):
    """The known state at a time. `age_ms`: for how long nothing had been heard; `gap`: why."""

    instances: list[instance_pb2.Instance]
    age_ms: int
    gap: str


class ReadinessCount(NamedTuple):
    """Instances at a time. `least_ready`: the fewest that were ready since the time before."""

    instances: int
    ready: int
    least_ready: int


class DirectoryInUse(OSError):
    """Another process writes there."""


class Archive:
    """The files of one directory. Methods block: call them in a thread. They raise sqlite3.Error and OSError."""

    def __init__(self, directory: Path, keep_days: int, max_bytes: int) -> None:
        self._directory, self._keep_days, self._max_bytes = directory, keep_days, max_bytes
        self._lock = threading.Lock()
        self._writing: tuple[int, sqlite3.Connection] | None = None
        self._locked = -1
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def lock(self) -> None:
        """Write here alone, until closed. Raises DirectoryInUse."""
        self._locked = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise DirectoryInUse(
                f"another recorder writes in {self._directory}: give each a --dir of its own"
            ) from None

    def close(self) -> None:
        """Close it: nothing is written afterwards."""
        with self._lock:
            self._let_go()
            if self._locked >= 0:
                os.close(self._locked)
                self._locked = -1

    def check_writable(self) -> None:
        """Rewrite a page of the newest file, if there is one."""
        with self._lock:
            if self._writing is None:
                return
            try:
                self._writing[1].execute(f"PRAGMA user_version = {FORMAT}")
            except BaseException:
                self._let_go()
                raise

    def newest(self, cluster: str) -> tuple[dict[str, instance_pb2.Instance], int]:
        """Return the last recorded state of a location, by id, and its time; 0: nothing is on record."""
        for path in reversed(self._files()):
            with closing(open_to_read(path)) as file:
                until_ms = file.execute(
                    "SELECT max(until_ms) FROM (SELECT until_ms FROM known WHERE cluster = :cluster"
                    " UNION ALL SELECT max(at_ms) FROM change WHERE cluster = :cluster)",
                    {"cluster": cluster},
                ).fetchone()[0]
                if until_ms is not None:
                    rows = read_instances(file, day_start(path) + 2 * DAY_MS, Selection(cluster=cluster))
                    return {one.meta.id: one for one in rows}, until_ms
        return {}, 0

    def write(
        self,
        now_ms: int,
        rows: Sequence[Row],
        gaps: Iterable[Gap],
        current: Iterable[str],
        ends: Mapping[str, int],
        decisions: Sequence[DecisionRow] = (),
        chunks: Sequence[LedgerChunk] = (),
    ) -> None:
        """Add to the record, all or nothing.

        `gaps` are added. `ends`: by location or server, when its gaps that are still open on record end. `current`:
        those whose record is complete up to now.
        """
        with self._lock:
            file = self._file_for(now_ms)
            try:
                with file:
                    file.executemany("INSERT INTO change VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
                    for cluster, at_ms in ends.items():
                        file.execute(
                            "UPDATE gap SET until_ms = ? WHERE cluster = ? AND until_ms IS NULL", (at_ms, cluster)
                        )
                    file.executemany("INSERT INTO gap VALUES(NULL, ?, ?, ?, ?)", gaps)
                    file.executemany("INSERT OR REPLACE INTO known VALUES(?, ?)", [(one, now_ms) for one in current])
                    decision_tables.insert(file, decisions, chunks)
            except BaseException:
                self._let_go()
                raise

    def prune(self) -> list[str]:
        """Delete the oldest days beyond what is kept, by age or size; return their names. The newest stays."""
        files = self._files()
        gone = files[: max(0, len(files) - self._keep_days)]
        left = files[len(gone) :]
        while len(left) > 1 and sum(file_size(path) for path in left) > self._max_bytes:
            gone.append(left.pop(0))
        for path in gone:
            for each in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
                each.unlink(missing_ok=True)
        return [path.stem for path in gone]

    def size(self) -> int:
        """Bytes on disk."""
        return sum(file_size(path) for path in self._files())

    def at(self, when_ms: int, which: Selection, sees: Callable[[str], bool] = lambda _: True) -> Moment:
        """The instances as they were known at a time, by cluster and id; age and gap of locations that are seen."""
        files = self._files()
        path = next((one for one in reversed(files) if day_start(one) <= when_ms), None)
        if path is None:
            return Moment([], 0, "nothing was recorded before")
        # A recorder that was down records its gap once it is back, in the file of the day on which it is back.
        gaps = [gap for gap in _read_gaps(files[files.index(path) :]) if overlaps(gap, when_ms, when_ms + 1)]
        with closing(open_to_read(path)) as file:
            instances = read_instances(file, when_ms, which)
            age_ms, gap = read_age(file, gaps, when_ms, which.cluster, sees)
        return Moment(instances, age_ms, gap)

    def events(self, which: Selection, since_ms: int, until_ms: int) -> Iterator[tuple[str, Row]]:
        """Changes in [since, until), latest first, each with a token to go on after it."""
        more, parameters = which.condition()
        for path in reversed(self._files_between(since_ms, until_ms)):
            with closing(open_to_read(path)) as file:
                found = file.execute(
                    "SELECT seq, at_ms, kind, cluster, instance, service, node, version, ready, reason, message, x''"  # nosec B608: only names of columns
                    f" FROM change WHERE kind > {BASE} AND at_ms >= ? AND at_ms < ?{more} ORDER BY seq DESC",
                    (since_ms, until_ms, *parameters),
                )
                for seq, *rest in found:
                    yield f"{path.stem}/{seq}", Row(*rest)

    def gaps(self, since_ms: int, until_ms: int, cluster: str = "") -> list[Gap]:
        """Gaps that overlap [since, until), latest first; one that spans midnight is in two files, but counts once.

        `cluster`: a location or `server_name`; empty: all locations.
        """
        overlapping = [gap for gap in _read_gaps(self._files()) if overlaps(gap, since_ms, until_ms)]
        return [gap for gap in reversed(overlapping) if is_asked_for(gap.cluster, cluster)]

    def decisions(self, since_ms: int, until_ms: int) -> Iterator[tuple[str, DecisionRow]]:
        """Yield decisions of servers in [since, until), latest first, each with a token to go on after it."""
        for path in reversed(self._files_between(since_ms, until_ms)):
            with closing(open_to_read(path)) as file:
                for seq, row in decision_tables.decisions(file, since_ms, until_ms):
                    yield f"{path.stem}/{seq}", row

    def newest_decision(self, server: str) -> int:
        """When the newest decision on record of a server is from; 0: there is none."""
        for path in reversed(self._files()):
            with closing(open_to_read(path)) as file:
                if at_ms := decision_tables.newest_decision(file, server):
                    return at_ms
        return 0

    def ledger_chunks(self, since_ms: int, until_ms: int, table: str = decision_tables.LEDGER) -> Iterator[LedgerChunk]:
        """Chunks of the CMS's ledger, or of fuses, before `until`, from the last full state at or before `since` on."""
        is_begun = False
        for path in self._files_between(since_ms, until_ms):
            with closing(open_to_read(path)) as file:
                for chunk in decision_tables.ledger_chunks(file, since_ms, until_ms, table, is_begun=is_begun):
                    is_begun = True
                    yield chunk

    def _files_between(self, since_ms: int, until_ms: int) -> list[Path]:
        return [one for one in self._files() if day_start(one) < until_ms and day_start(one) + DAY_MS > since_ms]

    def counts(self, which: Selection, times_ms: Sequence[int]) -> list[ReadinessCount]:
        """How many instances there were at these rising times, and how many of them ready."""
        if not times_ms:
            return []
        present = {(i.meta.cluster, i.meta.id): i for i in self.at(times_ms[0], which).instances}
        state = {key: is_ready(one) for key, one in present.items()}
        found = [row for _, row in self.events(which, times_ms[0] + 1, times_ms[-1] + 1)]
        found.reverse()  # the sort keeps the order within a millisecond, in which an instance may be created and ready
        changes = sorted(found, key=lambda row: row.at_ms)
        counts, position, ready = [], 0, sum(state.values())
        for time_ms in times_ms:
            least = ready
            while position < len(changes) and changes[position].at_ms <= time_ms:
                ready += _follow(state, changes[position])
                least = min(least, ready)
                position += 1
            counts.append(ReadinessCount(len(state), ready, least))
        return counts

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob("????-??-??.sqlite"))

    def _file_for(self, now_ms: int) -> sqlite3.Connection:
        day = now_ms // DAY_MS
        if self._writing is not None and self._writing[0] == day:
            return self._writing[1]
        self._let_go()
        path = self._directory / f"{datetime.fromtimestamp(day * DAY_MS / 1000, UTC):%Y-%m-%d}.sqlite"
        before = [one for one in self._files() if one < path]
        if not path.exists():
            create_day(path, before[-1] if before else None, day * DAY_MS)
        file = sqlite3.connect(path, check_same_thread=False, timeout=5.0)
        try:
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            if not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                begin_day(file, before[-1] if before else None, day * DAY_MS)
            decision_tables.create_tables(file)
        except BaseException:
            file.close()
            raise
        self._writing = (day, file)
        return file

    def _let_go(self) -> None:
        if self._writing is not None:
            self._writing[1].close()
            self._writing = None


def _read_gaps(files: Iterable[Path]) -> list[Gap]:
    """The gaps in these files, earliest first; one that spans midnight counts once."""
    found: list[Gap] = []
    for path in files:
        with closing(open_to_read(path)) as file:
            for row in file.execute("SELECT cluster, since_ms, until_ms, reason FROM gap ORDER BY seq"):
                join_gap(found, Gap._make(row))
    return found


def _follow(state: dict[tuple[str, str], bool], row: Row) -> int:
    """Apply a change; return how many more instances are ready."""
    key = (row.cluster, row.instance)
    before = state.pop(key, False)
    if row.kind != DELETED:
        state[key] = bool(row.ready)
    return state.get(key, False) - before
