"""Silence as a start reads it from the store, before it measures any itself. Pure.

A start reads the store as it was a few minutes ago and replays what came since. A record of silence counts for a
revision or agent without a report in that replay, and only if the replay began before the record was made: reports are
not kept, so earlier ones cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hq.liveness.deadlines import RevisionKey, Silence
from hq.memory.entry import Entry, Event, Mark
from hqpb.storage.v1 import storage_pb2

AGENT = ""  # in place of a revision's id: the agent of the instance, whatever it reports


class Carried(NamedTuple):
    """State that a start goes on with: the silence of revisions, and of agents by instance."""

    revisions: dict[RevisionKey, Silence]
    agents: dict[str, Silence]


class Replay:
    """Reports and orders replayed, with their versions.

    Attributes:
        began_at: everything after this version was seen.
        version: of what is seen now.
    """

    def __init__(self) -> None:
        self.began_at = self.version = 0
        self._reports: dict[tuple[int, str], int] = {}
        self._orders: dict[str, int] = {}

    def restart(self, version: int) -> None:
        """Begin again: everything was read as of this version."""
        self.began_at = self.version = version
        self._reports.clear()
        self._orders.clear()

    def record_report(self, entry: Entry, mark: Mark) -> None:
        """Note a report of a revision."""
        self._reports[entry.traits.uid, mark.id] = self.version

    def observe(self, event: Event) -> None:
        """Note the reports that a change of an instance shows."""
        if event.after is None:
            return
        before = event.before
        known = {mark.id: mark for mark in before.marks} if before else {}
        for mark in event.after.marks:
            if mark.incarnation and (mark.id not in known or mark.is_newer(known[mark.id])):
                self.record_report(event.after, mark)

    def record_order(self, node: str) -> None:
        """Note that planned work on a node began, or was said to be over."""
        self._orders[node] = self.version

    def carry_silences(
        self, records: Iterable[storage_pb2.SilenceRecord], epoch: str, presence_ms: int, entries: Iterable[Entry]
    ) -> Carried:
        """Return the silences that these records prove, by now on the clock of presence."""
        rows = dict[tuple[int, str], tuple[Silence, int]]()  # with the version of the record
        for record in records:
            if record.epoch != epoch or record.at < self.began_at:
                continue
            for key, row in rows_of(record):
                silence = row.silence(presence_ms)
                known = rows.get(key)
                if known is None or silence.silent_s > known[0].silent_s:
                    rows[key] = silence, record.at
        carried = Carried({}, {})
        if rows:
            self._judge(rows, entries, carried)
        return carried

    def _judge(
        self, rows: dict[tuple[int, str], tuple[Silence, int]], entries: Iterable[Entry], carried: Carried
    ) -> None:
        """Leave out what was heard since, or whose node was under planned work. All may be silent: keep it quick."""
        uids = {uid for uid, _ in rows}
        for entry in entries:
            traits, uid = entry.traits, entry.traits.uid
            if uid not in uids:
                continue
            ordered = newest = self._orders.get(traits.node, 0)
            for mark in entry.marks:
                heard = self._reports.get((uid, mark.id), 0)
                newest = max(newest, heard)
                silence, at = rows.get((uid, mark.id), _NO_ROW)
                if silence is not None and mark.ready and max(ordered, heard) <= at:
                    carried.revisions[RevisionKey(traits.id, mark.id)] = silence
            silence, at = rows.get((uid, AGENT), _NO_ROW)
            if silence is not None and newest <= at and entry.has_reporter() and not traits.silent:
                carried.agents[traits.id] = silence


_NO_ROW: tuple[Silence | None, int] = None, 0


class SilenceRow(NamedTuple):
    """One silence in a record: when it began, on the clock of presence, and how long reports were refused before."""

    heard_ms: int
    refused_ms: int

    def silence(self, presence_ms: int) -> Silence:
        """Silence up to now on that clock."""
        return Silence(max(0, presence_ms - self.heard_ms) / 1000, self.refused_ms / 1000)


def rows_of(record: storage_pb2.SilenceRecord) -> Iterable[tuple[tuple[int, str], SilenceRow]]:
    """Rows by uid and revision."""
    names = [AGENT, *record.revision]
    for uid, of, heard_ms, refused_ms in zip(record.uid, record.of, record.heard_ms, record.refused_ms, strict=False):
        if of < len(names):
            yield (uid, names[of]), SilenceRow(heard_ms, refused_ms)
