"""HEARD: an acknowledged heartbeat is in etcd's history, and nobody is expired who was heard within the timeout."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from tests.checker.history import OK, Op
from tests.checker.marks import by_revision
from tests.checker.past import Past
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

HEARD = Promise(
    "HEARD",
    "an acknowledged heartbeat or report is in etcd's history, and no replica expires its revision before the timeout",
    "hq/liveness/heartbeats.py (send, observe), hq/liveness/expiries.py (the compares of _commit), sweep.py (once)",
)

Subject = tuple[str, str]  # instance and revision


class _Heard:
    """When etcd heard of each revision: by heartbeats, resolved through the status record that they repeat."""

    def __init__(self, past: Past) -> None:
        self._rows: dict[tuple[str, int], tuple[str, list[str]]] = {}
        self.at: defaultdict[tuple[Subject, str], list[int]] = defaultdict(list)
        for instance_id, line in past.statuses.items():
            for stored in line.stored:
                if stored.kind == "put":
                    row = list(by_revision(stored.marks[1]))
                    self._rows[stored.marks[0], stored.modified] = instance_id, row
                    for revision_id, word in by_revision(stored.marks[1]).items():
                        self._note(instance_id, revision_id, word, stored.modified)
        for revision, heartbeats in past.heartbeats:
            for heartbeat in heartbeats:
                self._heartbeat(past, revision, heartbeat)
        for revisions in self.at.values():
            revisions.sort()

    def _heartbeat(self, past: Past, revision: int, heartbeat: str) -> None:
        uid, version, position = heartbeat.split(":")
        instance_id, row = self._rows.get((uid, int(version)), ("", []))
        current = past.statuses[instance_id].at(revision) if instance_id else None
        # A heartbeat counts only where the status that it repeats is still the current one.
        if current is not None and current.modified == int(version) and int(position) < len(row):
            word = by_revision(current.marks[1]).get(row[int(position)], "")
            self._note(instance_id, row[int(position)], word, revision)

    def _note(self, instance_id: str, revision_id: str, word: str, revision: int) -> None:
        self.at[(instance_id, revision_id), word].append(revision)

    def first(self, op: Op, after: int) -> int:
        """The first revision behind `after` at which what the call told was heard; 0: none."""
        assert op.write is not None
        revisions = self.at.get(((op.key, op.write.revision_id), op.write.marker), [])
        place = bisect_left(revisions, after + 1)
        return revisions[place] if place < len(revisions) else 0


def check(story: Story) -> Iterator[Violation]:
    heard = {id(past): _Heard(past) for past in story.pasts}
    for op in story.reports:
        if op.outcome != OK or op.write is None or op.op != "heartbeat":
            continue
        if not any(_in_time(story, past, heard[id(past)], op) for past in story.pasts_of(op)):
            yield HEARD.broken(
                f"a heartbeat of {op.key} was acknowledged, and is not in etcd's history at that time", op
            )
    if story.limits.liveness_timeout_s is not None:
        yield from _expiries(story, heard[id(story.pasts[-1])], story.limits.liveness_timeout_s)


def _in_time(story: Story, past: Past, heard: _Heard, op: Op) -> bool:
    at = heard.first(op, story.floor(past, op.call_ns))
    return bool(at) and at < story.ceiling(past, op.return_ns)


def _expiries(story: Story, heard: _Heard, timeout_s: float) -> Iterator[Violation]:
    past = story.pasts[-1]
    seen_ns = past.seen_ns()
    calls: defaultdict[Subject, list[Op]] = defaultdict(list)
    for op in story.reports:
        if op.outcome == OK and op.write is not None:
            calls[op.key, op.write.revision_id].append(op)
    for instance_id, revision_id, revision in expired(past):
        for op in reversed(calls[instance_id, revision_id]):
            if revision not in seen_ns or seen_ns[revision] >= op.call_ns + round(timeout_s * 1e9):
                break
            at = heard.first(op, story.floor(past, op.call_ns))
            if at and at < revision:
                what = f"{revision_id} of {instance_id} was expired at version {revision}, and was heard at {at}"
                yield HEARD.broken(what, op)


def expired(past: Past) -> Iterator[tuple[str, str, int]]:
    """Every expiry: instance, revision and version."""
    for instance_id, line in past.statuses.items():
        before: set[str] = set()
        for stored in line.stored:
            now = set(stored.marks[3].split(";")) - {""} if stored.kind == "put" else set()
            for revision_id in sorted(now - before):
                yield instance_id, revision_id, stored.modified
            before = now
