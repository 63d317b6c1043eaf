"""What is to be done with one instance, and who decides it. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass
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
        before: as it is held; None: it is not there.
        after: as it shall be; None for DELETE, REFUSED and UNCHANGED.
        note: why, or what to take into account; empty: nothing.
        clears_secrets: descriptors go away, which HQ does only if told so.
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
        """That the versions belong to; empty: there is nothing to compare with."""
        return self.before.epoch if self.before is not None else ""


class Intent(Protocol):
    """What somebody wants of instances: asked again whenever an instance turned out to be another than it was."""

    def needs_secrets(self, held: Held) -> bool:
        """Descriptors have to be read before `action` can decide."""
        ...

    def action(self, instance_id: str, held: Held | None) -> Action:
        """What is to be done with what is there now."""
        ...
