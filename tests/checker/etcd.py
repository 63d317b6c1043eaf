"""etcd's own account, before HQ is blamed: its revisions, its create and modify revisions, its final range."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import Range, Raw, Stored
from tests.checker.past import Past
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

ETCD = Promise(
    "ETCD",
    "revisions grow by one, records know when they were created and changed, and the final range is their replay",
    "the store and the observer of it, not HQ: 3.4.23 and 3.5.1 have known faults",
)


def check(story: Story) -> Iterator[Violation]:
    for past in story.pasts:
        yield from _revisions(past)
    for past, final in story.ranges:
        yield from _replayed(past, final)


def _revisions(past: Past) -> Iterator[Violation]:
    last, live = 0, dict[str, Stored]()
    for raw in past.raws:
        if raw.revision <= last:
            yield ETCD.broken(f"revision {raw.revision} came after {last}", raw)
        last = raw.revision
        for stored in raw.events:
            yield from _record(raw, stored, live.get(stored.key))
            if stored.kind == "put":
                live[stored.key] = stored
            else:
                live.pop(stored.key, None)


def _record(raw: Raw, stored: Stored, before: Stored | None) -> Iterator[Violation]:
    if stored.modified != raw.revision:
        yield ETCD.broken(f"{stored.key} says it changed at {stored.modified}, and it did at {raw.revision}", raw)
    if stored.kind == "delete":
        if before is None:
            yield ETCD.broken(f"{stored.key} was deleted at {raw.revision}, and did not exist", raw)
        return
    created = before.created if before is not None else raw.revision
    if stored.created != created:
        yield ETCD.broken(f"{stored.key} says it was created at {stored.created}, and it was at {created}", raw)


def _replayed(past: Past, final: Range) -> Iterator[Violation]:
    live: dict[str, Stored] = {}
    expected = past.raws[0].revision if past.raws else 0
    for raw in past.raws:
        if raw.revision > final.revision:
            break
        if final.gapless and raw.revision != expected:
            yield ETCD.broken(f"revisions {expected} to {raw.revision - 1} are missing", raw)
        expected = raw.revision + 1
        for stored in raw.events:
            if stored.kind == "put":
                live[stored.key] = stored
            else:
                live.pop(stored.key, None)
    shown = {stored.key: stored for stored in final.records}
    for key in sorted(live.keys() | shown.keys()):
        if live.get(key) != shown.get(key):
            what = f"the range at {final.revision} and the replay differ in {key}"
            yield ETCD.broken(what, live.get(key, "not in the replay"), shown.get(key, "not in the range"))
