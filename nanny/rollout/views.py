"""An instance as a roll-out sees it, and how far the roll-out is."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

Key = tuple[str, str]
"""Location and instance id."""


class Stage(enum.StrEnum):
    """Where an instance stands. The first four are switched: HQ wants this snapshot READY there."""

    DONE = "done"  # its agent has seen that, and it has been ready long enough
    SETTLING = "settling"  # ready, but not long enough yet
    UNDER_WAY = "under way"  # not ready yet
    UNHEARD = "unheard"  # nothing is ready there, and its agent has not been heard of since the switch
    DOWN = "down"  # not switched and not ready: switching it costs nothing
    UP = "up"  # not switched and ready
    LEAVING = "leaving"  # not switched; an earlier order is replacing what serves there by a third revision
    UNSEEN = "unseen"  # not switched and ready, but its agent has not seen the newest spec
    UNPREPARED = "unprepared"  # not switched, and its agent has not installed the snapshot yet: it comes last
    SILENT = "silent"  # not switched; its agent is silent, so it may or may not serve
    HELD = "held"  # others hold it: it comes later, which is no failure
    LOST = "lost"  # switched, but its agent is silent: it is left alone
    AWAY = "away"  # its location does not answer: nothing is known, nothing can be written


SWITCHED = frozenset({Stage.DONE, Stage.SETTLING, Stage.UNDER_WAY, Stage.UNHEARD, Stage.LOST})


Stages = Mapping[Stage, Set[Key]]
"""The instances that the snapshot names, each in one of the sets; stages without any may be absent."""


def at(stages: Stages, *wanted: Stage) -> set[Key]:
    """The instances in these stages."""
    return set().union(*(stages.get(stage, ()) for stage in wanted))


@dataclass(frozen=True, slots=True)
class Progress:
    """The stored progress of the action, from which another process can continue.

    Attributes:
        batch: switched, or about to be; empty: there is no current batch.
        batches_done: how many were given back.
        failed: instances that did not become ready within the deadline, also those that turn out to be lost; and those
            that broke after they were done.
        at_most: the largest batch, as leave for more was not granted; 0: as large as the policy allows.
    """

    batch: tuple[Key, ...] = ()
    batches_done: int = 0
    failed: frozenset[Key] = field(default_factory=frozenset)
    at_most: int = 0
