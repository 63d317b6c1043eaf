"""DURABLE: what was acknowledged is in etcd, and was when it was acknowledged."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import OK, Op
from tests.checker.marks import by_revision, words_of
from tests.checker.past import Past
from tests.checker.story import FOREVER, Story
from tests.checker.violation import Promise, Violation

DURABLE = Promise(
    "DURABLE",
    "an acknowledged write or report is in etcd, at the version that was told, no later than it was acknowledged",
    "store/commit.py (answers before the commit?), hq/registry/writes.py, hq/registry/reports.py",
)


def check(story: Story) -> Iterator[Violation]:
    for op in story.writes + story.reports:
        if op.outcome != OK or op.write is None or op.op == "heartbeat":
            continue
        wrong = [_wrong(story, past, op) for past in story.pasts_of(op)]
        if all(wrong):
            yield DURABLE.broken(f"{op.op} of {op.key} was acknowledged, and {wrong[-1]}", op)


def _wrong(story: Story, past: Past, op: Op) -> str:
    """Why the call cannot have taken place as told; empty: it did."""
    assert op.write is not None
    version = op.write.version or _landed(story, past, op)
    if not version:
        return "is nowhere in etcd"
    if op.op != "report" and not _stands(past, op, version):
        return f"is not what etcd holds at version {version}"
    if story.users[op.write.marker] > 1 or not op.write.marker:
        return ""  # an earlier try may have made it
    if version < story.floor(past, op.call_ns):
        return f"its version {version} is older than what was there before it was called"
    if version >= story.ceiling(past, op.return_ns):
        return f"its version {version} came only after it was acknowledged"
    return ""


def _landed(story: Story, past: Past, op: Op) -> int:
    """Where the marker came into the record, or stood already when it was repeated."""
    assert op.write is not None
    for landing in past.landings.get(op.write.marker, ()):
        if landing.id == op.key and landing.revision < story.ceiling(past, op.return_ns or FOREVER):
            return landing.revision
    if any(landing.id == op.key for landing in past.landings.get(op.write.marker, ())):
        return past.landings[op.write.marker][0].revision
    return 0


def _stands(past: Past, op: Op, version: int) -> bool:
    """Whether the record changed at the version as the call asked."""
    assert op.write is not None
    stored = past.touched(op.key, version)
    if stored is None:
        return False
    if op.op == "delete":
        return stored.kind == "delete"
    if stored.kind == "delete":
        return False
    if op.op == "delete_revision":
        return op.write.revision_id not in by_revision(stored.marks[1])
    if op.op == "create" and past.was_created_with(op.key, version, op.write.marker):
        return True  # whoever creates again what is his is told what became of it since
    return op.write.marker in words_of(stored.marks[1])
