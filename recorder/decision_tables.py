"""The tables of decisions, of the ledger of the CMS and of the fuses of Wall-E in a file of the record."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from cmspb.v1 import record_pb2
from recorder.decided import DecisionRow, ReadersOf
from wallepb.v1 import project_pb2, service_pb2

LEDGER: Final = "ledger"
FUSES: Final = "fuses"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS decision(
    seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, server TEXT NOT NULL, subject TEXT NOT NULL, event TEXT NOT NULL,
    by TEXT NOT NULL, message TEXT NOT NULL, based_on TEXT NOT NULL, services TEXT NOT NULL, nodes TEXT NOT NULL,
    readers TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS decision_at ON decision(at_ms);
CREATE TABLE IF NOT EXISTS ledger(
    seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, is_start INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS ledger_start ON ledger(is_start, at_ms);
CREATE TABLE IF NOT EXISTS fuses(
    seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, is_start INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS fuses_start ON fuses(is_start, at_ms);
"""


class LedgerChunk(NamedTuple):
    """Entries as they came, of the ledger or of fuses. `is_start`: everything known follows; `table`: where they go."""

    at_ms: int
    is_start: bool
    body: bytes  # a compressed FollowLedgerResponse, or FollowFusesResponse
    table: str = LEDGER

    @classmethod
    def of(cls, at_ms: int, entries: Sequence[record_pb2.LedgerEntry]) -> LedgerChunk:
        """A chunk of entries of the ledger."""
        body = record_pb2.FollowLedgerResponse(entry=entries).SerializeToString()
        return cls(at_ms, any(one.HasField("start") for one in entries), zlib.compress(body, 1))

    @classmethod
    def of_fuses(cls, at_ms: int, entries: Sequence[project_pb2.FuseEntry]) -> LedgerChunk:
        """A chunk of entries of fuses."""
        body = service_pb2.FollowFusesResponse(entry=entries).SerializeToString()
        return cls(at_ms, any(one.HasField("start") for one in entries), zlib.compress(body, 1), FUSES)

    def entries(self) -> Sequence[record_pb2.LedgerEntry]:
        """Return the entries that a chunk of the ledger was made of."""
        return record_pb2.FollowLedgerResponse.FromString(zlib.decompress(self.body)).entry

    def fuse_entries(self) -> Sequence[project_pb2.FuseEntry]:
        """Return the entries that a chunk of fuses was made of."""
        return service_pb2.FollowFusesResponse.FromString(zlib.decompress(self.body)).entry


def create_tables(file: sqlite3.Connection) -> None:
    """Create the tables in a new file, or in one of an older version."""
    file.executescript(_SCHEMA)


def insert(file: sqlite3.Connection, rows: Iterable[DecisionRow], chunks: Iterable[LedgerChunk]) -> None:
    """Add to a file, inside its transaction."""
    file.executemany(
        "INSERT INTO decision VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (*row[:6], json.dumps(row.based_on), json.dumps(row.services), json.dumps(row.nodes), row.readers.text())
            for row in rows
        ],
    )
    for at_ms, is_start, body, table in chunks:
        file.execute(f"INSERT INTO {table} VALUES(NULL, ?, ?, ?)", (at_ms, is_start, body))  # nosec B608: a constant


def decisions(file: sqlite3.Connection, since_ms: int, until_ms: int) -> Iterator[tuple[int, DecisionRow]]:
    """Decisions in [since, until), latest first, each with its number."""
    if not _has_tables(file):
        return
    found = file.execute(
        "SELECT * FROM decision WHERE at_ms >= ? AND at_ms < ? ORDER BY at_ms DESC, seq DESC", (since_ms, until_ms)
    )
    for seq, at_ms, server, subject, event, by, message, based_on, services, nodes, readers in found:
        lines, of_services, of_nodes = (tuple(json.loads(one)) for one in (based_on, services, nodes))
        who = ReadersOf.parse(readers)
        yield seq, DecisionRow(at_ms, server, subject, event, by, message, lines, of_services, of_nodes, who)


def newest_decision(file: sqlite3.Connection, server: str) -> int:
    """When the newest decision of a server is from; 0: there is none."""
    if not _has_tables(file):
        return 0
    found: int | None = file.execute("SELECT max(at_ms) FROM decision WHERE server = ?", (server,)).fetchone()[0]
    return found or 0


def ledger_chunks(
    file: sqlite3.Connection, since_ms: int, until_ms: int, table: str = LEDGER, *, is_begun: bool = False
) -> Iterator[LedgerChunk]:
    """Ledger chunks before a time, from the last full state at or before `since`, or from the first chunk.

    `is_begun`: chunks of the file before were read, and those before this file's first full state go on from them.
    """
    if not _has_tables(file, table):
        return
    begin = 0 if is_begun else _first_to_read(file, since_ms, table)
    if begin is not None:
        rows = file.execute(
            f"SELECT at_ms, is_start, body FROM {table} WHERE seq >= ? AND at_ms < ? ORDER BY seq",  # nosec B608
            (begin, until_ms),
        )
        for at_ms, is_start, body in rows:
            yield LedgerChunk(at_ms, bool(is_start), body, table)


def _first_to_read(file: sqlite3.Connection, since_ms: int, table: str) -> int | None:
    begin: int | None
    starts = f"FROM {table} WHERE is_start = 1"
    [begin] = file.execute(f"SELECT max(seq) {starts} AND at_ms <= ?", (since_ms,)).fetchone()  # nosec B608
    if begin is None:
        [begin] = file.execute(f"SELECT min(seq) {starts}").fetchone()  # nosec B608
    return begin


def _has_tables(file: sqlite3.Connection, table: str = LEDGER) -> bool:
    return bool(file.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone())
