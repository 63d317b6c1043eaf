"""What happened in a run, as outsiders saw it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from store.port import Batch


class Printed(NamedTuple):
    """An effect, and the acting word under which it was decided; `at` on the clock that all share."""

    book: str
    place: int
    order_id: str
    word: int
    at: float


@dataclass
class Story:
    """What happened in one run.

    Attributes:
        prefix: of the controller's keys.
        sent: the ids of orders that were sent, and their books.
        refused: those that the client was told are not stored and will not be.
        acked: ids by client, in the order in which each was told that they took effect.
        printed: effects, in order.
        batches: all revisions of the store.
        acting_since: when each acting word was stored at the latest, in order.
    """

    prefix: str
    sent: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    acked: dict[str, list[str]] = field(default_factory=dict)
    printed: list[Printed] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    acting_since: list[tuple[float, int]] = field(default_factory=list)

    @property
    def acks(self) -> int:
        return sum(map(len, self.acked.values()))
