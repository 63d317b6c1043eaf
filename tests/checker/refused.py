"""REFUSED: who was refused for a reason of HQ's own, and kept trying, is not expired within two timeouts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.checker.heard import Subject, expired
from tests.checker.history import OK, Op
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

REFUSED = Promise(
    "REFUSED",
    "a report that HQ refused for a reason of its own is not silence, for one timeout at most",
    "hq/liveness/refusals.py, hq/liveness/refusals.py, hq/liveness/reachability.py, hq/liveness/deadlines.py (refused)",
)
OURS = frozenset(("OVERLOADED", "STORE_UNAVAILABLE", "STORE_FULL"))
_KNOWN_AFTER_S = 8.0  # a refusal is told to the other replicas every few seconds


def check(story: Story) -> Iterator[Violation]:
    timeout_s = story.limits.liveness_timeout_s
    if timeout_s is None:
        return
    past = story.pasts[-1]
    seen_ns = {raw.revision: raw.seen_ns for raw in past.raws if raw.seen_ns}
    calls: defaultdict[Subject, list[Op]] = defaultdict(list)
    for op in story.reports:
        if op.write is not None and op.return_ns is not None:
            calls[op.key, op.write.revision_id].append(op)
    for instance_id, revision_id, revision in expired(past):
        at_ns = seen_ns.get(revision, 0)
        before = [op for op in calls[instance_id, revision_id] if op.call_ns < at_ns]
        taken_ns = max((op.call_ns for op in before if op.outcome == OK), default=0)
        since_ns = max(taken_ns, at_ns - round((timeout_s - _KNOWN_AFTER_S) * 1e9))
        refused = [op for op in before if op.error in OURS and op.call_ns > since_ns]
        if refused and at_ns < taken_ns + round((2 * timeout_s - _KNOWN_AFTER_S) * 1e9):
            what = f"{revision_id} of {instance_id} was expired at version {revision}; its report had been refused"
            yield REFUSED.broken(what, refused[-1])
