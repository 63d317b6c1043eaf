"""SETTLED: what was refused did not happen; what nobody was told of happened once or never, and not by halves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.checker.history import FAILED, OK, Op
from tests.checker.past import Past
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

SETTLED = Promise(
    "SETTLED",
    "a refused write is nowhere in etcd; one of unknown outcome took place once or never, and whole",
    "store/commit.py (_settle), store/session.py, store/flight.py",
)


def check(story: Story) -> Iterator[Violation]:
    by_marker: defaultdict[str, list[Op]] = defaultdict(list)
    for op in story.writes + story.reports:
        if op.write is not None and op.write.marker:
            by_marker[op.write.marker].append(op)
    for marker, ops in by_marker.items():
        for past in story.pasts:
            yield from _one(past, marker, ops)
    yield from _authors(story, by_marker)


def _one(past: Past, marker: str, ops: list[Op]) -> Iterator[Violation]:
    landings = past.landings.get(marker, ())
    if landings and all(op.outcome == FAILED for op in ops):
        what = f"a {ops[0].op} of {ops[0].key} was refused, and took place at version {landings[0].revision}"
        yield SETTLED.broken(what, *ops)
    # A report may be repeated after an expiry or another one's turn; a write of a spec is one write.
    if len(landings) > len(ops) and ops[0].op not in ("report", "heartbeat"):
        where = ", ".join(str(landing.revision) for landing in landings)
        yield SETTLED.broken(f"a {ops[0].op} of {ops[0].key} took place several times: at {where}", *ops)
    if any(landing.id != ops[0].key for landing in landings):
        yield SETTLED.broken(f"a {ops[0].op} of {ops[0].key} took place in another instance", *ops, *landings)


def _authors(story: Story, by_marker: dict[str, list[Op]]) -> Iterator[Violation]:
    """Every change of a spec is somebody's write: one that nobody asked for is a write that was done twice."""
    silent = {(op.key, op.write.version) for op in story.writes if op.write is not None and not op.write.marker}
    unsure = {op.key for op in story.writes if op.outcome not in (OK, FAILED)}
    past = story.pasts[-1]
    landed = {(each.id, each.revision) for word in by_marker for each in past.landings.get(word, ())}
    for instance_id, line in past.specs.items():
        for stored in line.stored:
            known = (instance_id, stored.modified) in silent or (instance_id, stored.modified) in landed
            if not known and instance_id not in unsure:
                what = f"{instance_id} changed at version {stored.modified}, and no call asked for that"
                yield SETTLED.broken(what, stored)
