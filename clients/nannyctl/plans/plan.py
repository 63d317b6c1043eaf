"""What is to be done in one installation: actions by instance, the plan of them, and portions to send. Pure."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from hqpb.v1 import instance_pb2
from nannyctl.plans.diff import Change
from nannyctl.plans.held import Held


class Kind(enum.StrEnum):
    """What is to be done."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REFUSED = "refused"
    UNCHANGED = "unchanged"


WRITES = frozenset({Kind.CREATE, Kind.UPDATE, Kind.DELETE})


@dataclass(frozen=True, slots=True)
class Action:
    """What is to be done with one instance.

    Attributes:
        before: as HQ holds it; None: it does not exist.
        after: as wanted; None for DELETE, REFUSED and UNCHANGED.
        note: why, or a remark; empty: none.
        clears_secrets: removes secret descriptors, which HQ only does on explicit request.
    """

    id: str
    kind: Kind
    before: Held | None = None
    after: instance_pb2.Instance | None = None
    changes: tuple[Change, ...] = ()
    note: str = ""
    clears_secrets: bool = False

    @property
    def writes(self) -> bool:
        """Something is to be sent."""
        return self.kind in WRITES

    @property
    def epoch(self) -> str:
        """The epoch that the versions belong to; empty: there is nothing to compare with."""
        return self.before.epoch if self.before is not None else ""


class Intent(Protocol):
    """What a command wants of instances: asked again whenever an instance has changed."""

    def needs_secrets(self, held: Held) -> bool:
        """Descriptors have to be read before `action` can decide."""
        ...

    def action(self, instance_id: str, held: Held | None) -> Action:
        """What to do, given the current state."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions of one intent, by instance, in order of ids. `service` is for people."""

    service: str
    intent: Intent
    actions: tuple[Action, ...]

    @property
    def writes(self) -> list[Action]:
        """What is to be sent."""
        return [action for action in self.actions if action.writes]

    @property
    def refused(self) -> list[Action]:
        """What cannot be done."""
        return [action for action in self.actions if action.kind is Kind.REFUSED]

    @property
    def is_empty(self) -> bool:
        """Nothing would change and nothing is refused."""
        return all(action.kind is Kind.UNCHANGED for action in self.actions)

    def counts(self) -> dict[str, int]:
        """Actions by kind, all kinds."""
        found = Counter(action.kind.value for action in self.actions)
        return {kind.value: found[kind.value] for kind in Kind}


def make_plan(service: str, intent: Intent, ids: Iterable[str], holdings: Mapping[str, Held]) -> Plan:
    """The plan for these instances and for all in `holdings`."""
    every = sorted({*ids, *holdings})
    return Plan(service, intent, tuple(intent.action(one, holdings.get(one)) for one in every))


BATCH_ITEMS = 50
BATCH_BYTES = 1024 * 1024


def batches(
    actions: Iterable[Action], items: int = BATCH_ITEMS, size_bytes: int = BATCH_BYTES
) -> Iterator[list[Action]]:
    """Batches with one way of sending and one epoch each, ordered by id."""
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
