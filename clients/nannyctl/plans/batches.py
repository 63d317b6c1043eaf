"""Actions in portions that HQ takes in one request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from nannyctl.plans.actions import Action, Kind

BATCH_ITEMS = 50
BATCH_BYTES = 1024 * 1024


def batches(
    actions: Iterable[Action], items: int = BATCH_ITEMS, size_bytes: int = BATCH_BYTES
) -> Iterator[list[Action]]:
    """Portions of one way of sending and one epoch each, in order of ids within."""
    for _, alike in groupby(sorted(actions, key=_way), key=lambda action: _way(action)[:2]):
        yield from _portions(alike, items, size_bytes)


def way_of(action: Action) -> str:
    """How an action is sent: `apply` takes many at once, everything else goes one by one."""
    if action.kind is Kind.CREATE:
        return "create"
    if action.kind is Kind.DELETE:
        return "delete"
    return "clear" if action.clears_secrets else "apply"


def _way(action: Action) -> tuple[str, str, str]:
    return way_of(action), action.epoch, action.id


def _portions(actions: Iterable[Action], items: int, size_bytes: int) -> Iterator[list[Action]]:
    batch: list[Action] = []
    filled_bytes = 0
    for action in actions:
        own_bytes = action.after.ByteSize() if action.after is not None else 0
        if batch and (len(batch) == items or filled_bytes + own_bytes > size_bytes):
            yield batch
            batch, filled_bytes = [], 0
        batch.append(action)
        filled_bytes += own_bytes
    if batch:
        yield batch
