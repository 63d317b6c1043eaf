"""CONVERGED: when all is over, the memory of every replica is what lies in etcd."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import Final
from tests.checker.past import Past
from tests.checker.story import Story
from tests.checker.violation import Promise, Violation

CONVERGED = Promise(
    "CONVERGED",
    "at the end every replica is of the current epoch, knows of the last change, and holds exactly what lies in etcd",
    "store/follow.py (gaps, listings), hq/memory/cache.py (apply), store/anchor.py and epoch.py after a restore",
)


def check(story: Story) -> Iterator[Violation]:
    past = story.pasts[-1]
    for final in story.finals:
        if past.epochs and final.epoch != past.epochs[-1]:
            yield CONVERGED.broken(f"{final.replica} believes in epoch {final.epoch}, etcd in {past.epochs[-1]}", final)
        yield from _same(past, final)


def _same(past: Past, final: Final) -> Iterator[Violation]:
    if final.version < past.last_change():
        what = f"{final.replica} ends at version {final.version}, the last change was at {past.last_change()}"
        yield CONVERGED.broken(what)
    true = past.matching({}, past.head)
    for instance_id in sorted(true.keys() | final.items.keys()):
        held, lies = final.items.get(instance_id), true.get(instance_id)
        if held != lies:
            yield CONVERGED.broken(
                f"{final.replica} and etcd differ in {instance_id}", ("replica", held), ("etcd", lies)
            )
