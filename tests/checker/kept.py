"""KEPT: the records of an instance stay whole: they come and go together, and nobody's part is lost to another's."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import Raw, Stored
from tests.checker.marks import by_revision
from tests.checker.past import Past
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

KEPT = Promise(
    "KEPT",
    "spec, status and secrets of an instance are created and deleted together; what one writes, no other one loses",
    "hq/registry/changes.py, hq/registry/writes.py (delete), hq/memory/statuses.py (keep, begin, expire)",
)


def check(story: Story) -> Iterator[Violation]:
    yield from _together(story.pasts[-1])
    yield from _words_kept(story)


def _together(past: Past) -> Iterator[Violation]:
    live: dict[str, set[str]] = {"spec": set(), "status": set(), "secrets": set()}
    for raw in past.raws:
        for instance_id in _take(live, raw):
            yield from _whole(past, live, instance_id, raw)
            yield from _one_uid(past, instance_id, raw)


def _take(live: dict[str, set[str]], raw: Raw) -> dict[str, None]:
    touched: dict[str, None] = {}
    for stored in raw.events:
        kind, _, instance_id = stored.key.partition("/")
        if kind in live:
            touched[instance_id] = None
            (live[kind].add if stored.kind == "put" else live[kind].discard)(instance_id)
    return touched


def _whole(past: Past, live: dict[str, set[str]], instance_id: str, raw: Raw) -> Iterator[Violation]:
    if instance_id in live["spec"]:
        if instance_id not in live["status"]:
            yield KEPT.broken(f"{instance_id} has a spec and no status at version {raw.revision}", raw)
        yield from _agreed(past, instance_id, raw)
        return
    for kind in ("status", "secrets"):
        if instance_id in live[kind]:
            yield KEPT.broken(f"{instance_id} has no spec at version {raw.revision}, and a {kind} record", raw)


def _agreed(past: Past, instance_id: str, raw: Raw) -> Iterator[Violation]:
    spec, status = past.specs[instance_id].at(raw.revision), past.statuses[instance_id].at(raw.revision)
    if spec is not None and status is not None:
        for revision_id in by_revision(status.marks[1]).keys() - by_revision(spec.marks[1]).keys():
            what = f"the status of {instance_id} tells of {revision_id} at version {raw.revision}"
            yield KEPT.broken(f"{what}, which its spec does not list", raw)


def _one_uid(past: Past, instance_id: str, raw: Raw) -> Iterator[Violation]:
    spec, status = past.specs[instance_id].at(raw.revision), past.statuses[instance_id].at(raw.revision)
    if spec is not None and status is not None and spec.marks[0] != status.marks[0]:
        what = f"at version {raw.revision} the spec of {instance_id} has uid {spec.marks[0]}"
        yield KEPT.broken(f"{what}, its status of {status.marks[0]}", raw)


def _words_kept(story: Story) -> Iterator[Violation]:
    """What a report told stays until the next report of that revision, or until the spec drops it."""
    past = story.pasts[-1]
    reports = {(op.key, op.write.marker) for op in story.reports if op.write is not None}
    for instance_id, line in past.statuses.items():
        before: Stored | None = None
        for stored in line.stored:
            if before is not None and before.kind == stored.kind == "put":
                for revision, word in _changed(before, stored):
                    dropped = not word and _dropped(past, instance_id, revision, stored.modified)
                    if not dropped and (instance_id, word) not in reports:
                        what = f"what was reported of {revision} of {instance_id} is gone at version {stored.modified}"
                        yield KEPT.broken(what, before, stored)
            before = stored


def _changed(before: Stored, after: Stored) -> Iterator[tuple[str, str]]:
    """Revisions whose marker is another one, with the new one."""
    new = by_revision(after.marks[1])
    if before.marks[0] != after.marks[0]:
        return  # another uid
    for revision, word in by_revision(before.marks[1]).items():
        if word and new.get(revision, "") != word:
            yield revision, new.get(revision, "")


def _dropped(past: Past, instance_id: str, revision_id: str, revision: int) -> bool:
    """Whether the spec of that revision moved the instance or does not list the revision."""
    spec, before = past.specs[instance_id].at(revision), past.specs[instance_id].at(revision - 1)
    if spec is None or before is None:
        return True
    moved = spec.marks[3] != before.marks[3]
    return spec.modified == revision and (moved or revision_id not in by_revision(spec.marks[1]))
