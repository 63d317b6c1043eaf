"""A day (UTC) of the record: a SQLite file that begins with all that there was, so that it can be read alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hqpb.v1 import instance_pb2
from recorder import decision_tables
from recorder.gaps import Gap, is_asked_for
from recorder.observed import Row, is_ready

DAY_MS: Final = 86_400_000
BASE: Final = 0  # a row of what there was when the file began: no event
FORMAT: Final = 1
_SCHEMA: Final = f"""
CREATE TABLE change(
    seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind INTEGER NOT NULL, cluster TEXT NOT NULL,
    instance TEXT NOT NULL, service TEXT NOT NULL, node TEXT NOT NULL, version INTEGER NOT NULL,
    ready INTEGER NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX by_instance ON change(cluster, instance, seq);
CREATE INDEX by_service ON change(service, at_ms);
CREATE INDEX by_node ON change(node, at_ms);
CREATE TABLE gap(seq INTEGER PRIMARY KEY, cluster TEXT NOT NULL, since_ms INTEGER NOT NULL, until_ms INTEGER,
    reason TEXT NOT NULL);
CREATE TABLE known(cluster TEXT PRIMARY KEY, until_ms INTEGER NOT NULL);
PRAGMA user_version = {FORMAT};
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which instances. Empty: all."""

    service: str = ""
    instance: str = ""
    node: str = ""
    cluster: str = ""

    def condition(self) -> tuple[str, list[str]]:
        """SQL over `change`, and its parameters."""
        fields = {"service": self.service, "instance": self.instance, "node": self.node, "cluster": self.cluster}
        named = {name: value for name, value in fields.items() if value}
        return "".join(f" AND {name} = ?" for name in named), list(named.values())


def create_day(path: Path, before: Path | None, day_ms: int) -> None:
    """Begin a day's file under another name: whoever reads it finds it whole, or not at all."""
    begun = path.with_name(f"new-{path.name}")
    begun.unlink(missing_ok=True)
    with closing(sqlite3.connect(begun, timeout=5.0)) as file:
        begin_day(file, before, day_ms)
        decision_tables.create_tables(file)
    begun.rename(path)


def begin_day(file: sqlite3.Connection, before: Path | None, day_ms: int) -> None:
    """Begin a day with all that there was, and with the gaps that have not ended."""
    base: list[Row] = []
    gaps: list[Gap] = []
    known: list[tuple[str, int]] = []
    if before is not None:
        with closing(open_to_read(before)) as earlier:
            for one in read_instances(earlier, day_ms + DAY_MS, Selection()):
                meta = one.meta
                body = one.SerializeToString()
                base.append(
                    Row(
                        day_ms,
                        BASE,
                        meta.cluster,
                        meta.id,
                        meta.service_id,
                        one.spec.node_name,
                        0,
                        is_ready(one),
                        "",
                        "",
                        body,
                    )
                )
            found = earlier.execute("SELECT cluster, since_ms, until_ms, reason FROM gap WHERE until_ms IS NULL")
            gaps = [Gap._make(row) for row in found]
            known = earlier.execute("SELECT cluster, until_ms FROM known").fetchall()
    with file:
        file.executescript(f"BEGIN;{_SCHEMA}")
        file.executemany("INSERT INTO change VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", base)
        file.executemany("INSERT INTO gap VALUES(NULL, ?, ?, ?, ?)", gaps)
        file.executemany("INSERT INTO known VALUES(?, ?)", known)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a day's file read-only."""
    return sqlite3.connect(
        f"file:{path}?mode=ro", uri=True, timeout=5.0, check_same_thread=False
    )  # several threads use it, one after the other


def read_instances(file: sqlite3.Connection, when_ms: int, which: Selection) -> list[instance_pb2.Instance]:
    """The instances as they were known at a time, by cluster and id."""
    more, parameters = which.condition()
    # An instance that was once on the node or of the service counts only if its last row still says so.
    ever = "SELECT cluster, instance FROM change WHERE at_ms <= ?"
    named = f" AND (cluster, instance) IN ({ever}{more})" if more else ""
    found = file.execute(
        f"SELECT body FROM change WHERE seq IN (SELECT max(seq) FROM change WHERE at_ms <= ?{named}"  # nosec B608: only names of columns
        f" GROUP BY cluster, instance) AND length(body) > 0{more} ORDER BY cluster, instance",
        (when_ms, *((when_ms, *parameters) if more else ()), *parameters),
    )
    return [instance_pb2.Instance.FromString(body) for (body,) in found]


def read_age(
    file: sqlite3.Connection, gaps: Iterable[Gap], when_ms: int, cluster: str, sees: Callable[[str], bool]
) -> tuple[int, str]:
    """How old, in ms, the knowledge at a time is, and why. `gaps`: all gaps at that time, of whatever file."""
    for of, since_ms, _, reason in sorted(gaps, key=lambda gap: gap.since_ms):
        if is_asked_for(of, cluster) and sees(of):
            return when_ms - since_ms if since_ms else 0, f"{of}: {reason}" if of else reason
    known = file.execute("SELECT cluster, until_ms FROM known").fetchall()
    until_ms = min((at_ms for of, at_ms in known if is_asked_for(of, cluster) and sees(of)), default=when_ms)
    return max(0, when_ms - until_ms), ""


def file_size(path: Path) -> int:
    """Bytes on disk, with the log beside the file."""
    return sum(each.stat().st_size for each in (path, path.with_name(path.name + "-wal")) if each.exists())


def day_start(path: Path) -> int:
    """When the day of a file begins, in Unix milliseconds."""
    return int(datetime.strptime(path.stem, "%Y-%m-%d").replace(tzinfo=UTC).timestamp() * 1000)
