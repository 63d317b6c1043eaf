"""The plan for one installation: actions by instance, the plan of them, and portions to send. Pure."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from descriptions.held import HeldInstance
from hqclient.batches import split_batches
from hqpb.v1 import instance_pb2
from nannyctl.plans.diff import FieldChange


class PlannedKind(enum.StrEnum):
    """The kinds of actions."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REFUSED = "refused"
    UNCHANGED = "unchanged"


WRITES = frozenset({PlannedKind.CREATE, PlannedKind.UPDATE, PlannedKind.DELETE})


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """The action on one instance.

    Attributes:
        before: as HQ holds it; None: it does not exist.
        after: as wanted; None for DELETE, REFUSED and UNCHANGED.
        note: why, or a remark; empty: none.
        clears_secrets: removes secret descriptors, which HQ only does on explicit request.
    """

    id: str
    kind: PlannedKind
    before: HeldInstance | None = None
    after: instance_pb2.Instance | None = None
    changes: tuple[FieldChange, ...] = ()
    note: str = ""
    clears_secrets: bool = False

    @property
    def writes(self) -> bool:
        """Whether something is to be sent."""
        return self.kind in WRITES

    @property
    def epoch(self) -> str:
        """The epoch that the versions belong to; empty: there is nothing to compare with."""
        return self.before.epoch if self.before is not None else ""


class PlanIntent(Protocol):
    """A command's wish for instances: asked again whenever an instance has changed."""

    def needs_secrets(self, held: HeldInstance) -> bool:
        """Whether secret descriptors have to be read before `action` can decide."""
        ...

    def action(self, instance_id: str, held: HeldInstance | None) -> PlannedAction:
        """Return the action, given the current state."""
        ...


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """Actions of one intent, by instance, in order of ids. `service` is for people."""

    service: str
    intent: PlanIntent
    actions: tuple[PlannedAction, ...]

    @property
    def writes(self) -> list[PlannedAction]:
        """Return the actions to send."""
        return [action for action in self.actions if action.writes]

    @property
    def refused(self) -> list[PlannedAction]:
        """Return the actions that cannot be done."""
        return [action for action in self.actions if action.kind is PlannedKind.REFUSED]

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change and nothing is refused."""
        return all(action.kind is PlannedKind.UNCHANGED for action in self.actions)

    def counts(self) -> dict[str, int]:
        """Actions by kind, all kinds."""
        found = Counter(action.kind.value for action in self.actions)
        return {kind.value: found[kind.value] for kind in PlannedKind}


def make_plan(
    service: str, intent: PlanIntent, ids: Iterable[str], holdings: Mapping[str, HeldInstance]
) -> InstancePlan:
    """The plan for these instances and for all in `holdings`."""
    every = sorted({*ids, *holdings})
    return InstancePlan(service, intent, tuple(intent.action(one, holdings.get(one)) for one in every))


BATCH_ITEMS = 50


def batches(actions: Iterable[PlannedAction]) -> Iterator[list[PlannedAction]]:
    """Batches with one way of sending and one epoch each, ordered by id."""
    for _, alike in groupby(sorted(actions, key=_way), key=lambda action: _way(action)[:2]):
        yield from split_batches(alike, BATCH_ITEMS, lambda action: action.after.ByteSize() if action.after else 0)


def way_of(action: PlannedAction) -> str:
    """How an action is sent: `apply` takes many at once, everything else goes one by one."""
    if action.kind is PlannedKind.CREATE:
        return "create"
    if action.kind is PlannedKind.DELETE:
        return "delete"
    return "clear" if action.clears_secrets else "apply"


def _way(action: PlannedAction) -> tuple[str, str, str]:
    return way_of(action), action.epoch, action.id
