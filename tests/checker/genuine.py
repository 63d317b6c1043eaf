"""GENUINE: a read shows exactly what was there at its version: nothing that never was, and nothing left out."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import OK, Item, Op, Read
from tests.checker.past import Past
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

GENUINE = Promise(
    "GENUINE",
    "an answer shows the instances that pass its filter as they were at its version, all of them and nothing else",
    "hq/memory/cache.py, hq/memory/index.py, hq/registry/reads.py and page.py; store/follow.py if it is wrong for good",
)


def check(story: Story) -> Iterator[Violation]:
    for op in story.reads:
        if op.read is None:
            continue
        past = story.past_of(op.read.epoch)
        if op.outcome == OK and past is None:
            yield GENUINE.broken(f"an answer is of epoch {op.read.epoch}, which never was", op)
        elif op.outcome == OK and past is not None:
            yield from _shown(past, op, op.read)
        elif op.error == "NOT_FOUND":
            yield from _denied(story, op)


def _shown(past: Past, op: Op, read: Read) -> Iterator[Violation]:
    if read.version > past.head:
        yield GENUINE.broken(f"an answer is of version {read.version}, and etcd only came to {past.head}", op)
        return
    if read.totals is not None:
        yield from _counted(past, op, read)
        return
    true = {i: item for i, item in past.matching(read.wanted, read.version).items() if _on_page(read, i)}
    for instance_id in sorted(true.keys() | read.items.keys()):
        shown, was = read.items.get(instance_id), true.get(instance_id)
        if shown != was:
            words = f"shows {_words(shown)}, and it was {_words(was)}"
            yield GENUINE.broken(f"{op.op} at version {read.version}: {instance_id} {words}", op)


def _counted(past: Past, op: Op, read: Read) -> Iterator[Violation]:
    found = past.matching(read.wanted, read.version)
    ready = sum(past.passes({"ready": "T"}, instance_id, read.version) for instance_id in found)
    if read.totals != (len(found), ready):
        what = f"a count at version {read.version} is {read.totals}, and there were {(len(found), ready)}"
        yield GENUINE.broken(what, op)


def _denied(story: Story, op: Op) -> Iterator[Violation]:
    """An instance is denied that was there all the time."""
    for past in story.pasts_of(op):
        first = story.floor(past, op.call_ns)
        last = min(story.ceiling(past, op.return_ns) - 1, past.head)
        line = past.specs[op.key]
        if line.at(first) is None or line.moved(first, last):
            return
    yield GENUINE.broken(f"there is no {op.key}, says {op.op}, and it was there all the time", op)


def _on_page(read: Read, instance_id: str) -> bool:
    return instance_id > read.after and (not read.upto or instance_id <= read.upto)


def _words(item: Item | None) -> str:
    return "nothing" if item is None else str(tuple(item))
