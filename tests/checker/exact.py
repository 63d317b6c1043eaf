"""EXACT: of two writers with one version one wins, and a refusal for a conflict is told the truth."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import FAILED, OK, Op
from tests.checker.past import Past
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

EXACT = Promise(
    "EXACT",
    "a write with a precondition replaces that version; a creation makes what was not there; refusals are true",
    "the conditions of writes: hq/registry/writes.py (_write), hq/registry/preconditions.py, store/etcd.py",
)


def check(story: Story) -> Iterator[Violation]:
    for op in story.writes:
        if op.write is None:
            continue
        wrong: list[str] = []
        if op.outcome == OK and op.write.version:
            wrong = [_won(past, op) for past in story.pasts_of(op)]
        elif op.outcome == FAILED and op.error in _REFUSALS:
            wrong = [_REFUSALS[op.error](story, past, op) for past in story.pasts_of(op)]
        if wrong and all(wrong):
            yield EXACT.broken(wrong[-1], op)


def _won(past: Past, op: Op) -> str:
    assert op.write is not None
    version, demanded = op.write.version, op.write.precondition_version
    before = past.specs[op.key].at(version - 1)
    if demanded and (before is None or before.modified != demanded):
        found = before.modified if before is not None else "nothing"
        return f"{op.op} of {op.key} at version {demanded} was acknowledged, and replaced {found}"
    if op.op != "create" or before is None or past.touched(op.key, version) is None:
        return ""
    if not past.was_created_with(op.key, version, op.write.marker):
        return f"{op.key} was created at {version}, and was there already at {before.modified}"
    return ""


def _conflict(story: Story, past: Past, op: Op) -> str:
    """A conflict is a lie if the demanded version stood all the time."""
    assert op.write is not None
    demanded = op.write.precondition_version
    stood = past.specs[op.key].at(story.floor(past, op.call_ns))
    if not demanded or stood is None or stood.modified != demanded or not _unmoved(story, past, op):
        return ""
    return f"{op.op} of {op.key} was refused for a conflict, and version {demanded} stood all the time"


def _exists(story: Story, past: Past, op: Op) -> str:
    absent = past.specs[op.key].at(story.floor(past, op.call_ns)) is None
    if not absent or not _unmoved(story, past, op):
        return ""
    return f"{op.key} was not created because it was there already, and it was not"


def _missing(story: Story, past: Past, op: Op) -> str:
    spec = past.specs[op.key].at(story.floor(past, op.call_ns))
    if spec is None or not _unmoved(story, past, op):
        return ""
    if op.op == "delete_revision" and op.write is not None and f";{op.write.revision_id}=" not in spec.marks[1]:
        return ""  # it was the revision that was missing
    return f"{op.op} was told that there is no {op.key}, and it was there all the time"


def _unmoved(story: Story, past: Past, op: Op) -> bool:
    """Whether the spec certainly did not change during a call."""
    first = story.floor(past, op.call_ns)
    last = min(story.ceiling(past, op.return_ns) - 1, past.head)
    return not past.specs[op.key].moved(first, last)


_REFUSALS = {"VERSION_CONFLICT": _conflict, "ALREADY_EXISTS": _exists, "NOT_FOUND": _missing}
