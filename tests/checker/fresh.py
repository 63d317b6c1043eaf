"""FRESH: no answer is older than what was demanded, and one that is old says how old."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import OK, STRONG, Op, Read
from tests.checker.past import Past
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

FRESH = Promise(
    "FRESH",
    "a read is not older than its min_version and than it says; a STRONG one has all that was acknowledged before",
    "hq/registry/source.py (is_fresh_for, wait_until_fresh), store/fence.py; at a gateway followed/picture.py",
)


def check(story: Story) -> Iterator[Violation]:
    for op in story.reads:
        if op.outcome != OK or op.read is None:
            continue
        read, past = op.read, story.past_of(op.read.epoch)
        if read.version < read.min_version:
            yield FRESH.broken(f"min_version {read.min_version} was answered with version {read.version}", op)
        if past is not None:
            yield from _old(story, past, op, read)


def _old(story: Story, past: Past, op: Op, read: Read) -> Iterator[Violation]:
    acknowledged = story.floor(past, op.call_ns)
    if read.consistency == STRONG and read.version < acknowledged:
        what = f"a STRONG read shows version {read.version}, and {acknowledged} was known before it began"
        yield FRESH.broken(what, op)
    if read.staleness_s is not None:
        age_s = read.staleness_s + story.limits.transit_s
        known = story.floor(past, op.call_ns - round(age_s * 1e9))
        if read.version < known:
            what = (
                f"version {read.version} is called {read.staleness_s} s old, and {known} was known {age_s:g} s before"
            )
            yield FRESH.broken(what, op)
    stale_after_s = story.limits.stale_after_s
    if read.staleness_s is not None:  # by its own words it may be fresh, and was under way as long as all messages may
        stale_after_s = max(stale_after_s, min(read.staleness_s, stale_after_s) + story.limits.transit_s)
    long_known = story.floor(past, op.call_ns - round(stale_after_s * 1e9))
    if not read.stale and read.version < long_known:
        what = f"version {read.version} is called fresh, and {long_known} was known {stale_after_s:g} s before"
        yield FRESH.broken(what, op)
