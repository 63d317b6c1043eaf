"""GHOST: what was deleted is gone everywhere: no replica shows it for longer than a pass of the proof takes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import OK, Op, Read
from tests.checker.past import Past
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

GHOST = Promise(
    "GHOST",
    "what was deleted is gone everywhere: no fresh answer of any replica shows it later than memory was compared",
    "store/proof.py (count, compare_all), store/follow.py (where a watch begins anew)",
)


def check(story: Story) -> Iterator[Violation]:
    if story.limits.ghost_s is None:
        return
    bound_ns = round(story.limits.ghost_s * 1e9)
    seen_ns = {id(past): past.seen_ns() for past in story.pasts}
    for op in story.reads:
        past = story.past_of(op.read.epoch) if op.read is not None else None
        if op.outcome == OK and op.read is not None and past is not None and not op.read.stale:
            yield from _ghosts(past, seen_ns[id(past)], op, op.read, bound_ns)


def _ghosts(past: Past, seen_ns: dict[int, int], op: Op, read: Read, bound_ns: int) -> Iterator[Violation]:
    for instance_id, item in read.items.items():
        deleted = past.specs[instance_id].deleted_after(item.version) if instance_id in past.specs else 0
        if deleted in seen_ns and op.call_ns > seen_ns[deleted] + bound_ns:
            since_s = (op.call_ns - seen_ns[deleted]) / 1e9
            yield GHOST.broken(
                f"{read.replica} shows {instance_id} {since_s:.0f} s after version {deleted} deleted it", op
            )
