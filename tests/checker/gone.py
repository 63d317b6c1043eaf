"""GONE: what is dead is not ready: an instance that nobody reports any more expires within the bound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest

from tests.checker.history import Op, Stored
from tests.checker.past import Line
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

GONE = Promise(
    "GONE",
    "what is dead is not ready: an instance that nobody reports expires within the timeout and what faults forgive",
    "hq/liveness/deadlines.py (floor), sweep.py, guard.py (a hold that begins anew?); what a start forgives",
)


def check(story: Story) -> Iterator[Violation]:
    """Each silence between two reports of an instance that was ready when it began, in the last epoch."""
    if story.limits.gone_s is None:
        return
    past = story.pasts[-1]
    seen_ns, begins_ns = past.seen_ns(), story.cuts[-1].at_ns if story.cuts else 0
    for op, next_ns in _silences(story, max(seen_ns.values(), default=0)):
        last_ns = max(begins_ns, op.call_ns if op.return_ns is None else op.return_ns)
        if next_ns - last_ns > story.limits.gone_s * 1e9:
            for ready_ns, unready_ns in _ready(past.statuses[op.key], seen_ns, next_ns):
                yield from _overdue(story, op, max(last_ns, ready_ns), min(next_ns, unready_ns))


def _silences(story: Story, end_ns: int) -> Iterator[tuple[Op, int]]:
    """Each report, and when the next one of its instance was called; the last one: the end of the history."""
    by_instance: defaultdict[str, list[Op]] = defaultdict(list)
    for op in sorted(story.reports, key=lambda op: op.call_ns):
        by_instance[op.key].append(op)
    for ops in by_instance.values():
        for op, following in zip_longest(ops, ops[1:]):
            yield op, following.call_ns if following is not None else end_ns


def _ready(line: Line, seen_ns: dict[int, int], end_ns: int) -> Iterator[tuple[int, int]]:
    """From when to when an instance was ready."""
    began_ns: int | None = None
    for stored in line.stored:
        at_ns = seen_ns.get(stored.modified, 0)
        if _is_ready(stored):
            began_ns = at_ns if began_ns is None else began_ns
        elif began_ns is not None:
            yield began_ns, at_ns
            began_ns = None
    if began_ns is not None:
        yield began_ns, end_ns


def _overdue(story: Story, op: Op, from_ns: int, upto_ns: int) -> Iterator[Violation]:
    allowed_ns = _allowed_ns(story, from_ns, upto_ns)
    if upto_ns - from_ns > allowed_ns:
        lasted_s, bound_s = (upto_ns - from_ns) / 1e9, allowed_ns / 1e9
        yield GONE.broken(f"{op.key} is ready after {lasted_s:.0f} s of silence; at most {bound_s:.0f} s", op)


def _is_ready(status: Stored) -> bool:
    return status.kind == "put" and len(status.marks) > 2 and status.marks[2] == "T"


def _allowed_ns(story: Story, from_ns: int, upto_ns: int) -> int:
    """The bound, longer by each fault of that time: what it lasted, and what its end forgives."""
    assert story.limits.gone_s is not None
    allowed_s = story.limits.gone_s
    for fault in story.faults:
        overlap_ns = min(fault.ended_ns, upto_ns) - max(fault.began_ns, from_ns)
        if overlap_ns >= 0:
            allowed_s += overlap_ns / 1e9 + story.limits.forgiven_s
    return round(allowed_s * 1e9)
