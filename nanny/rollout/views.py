"""An instance as a roll-out sees it, and how far the roll-out is."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from control.waves import WaveStep

Key = tuple[str, str]
"""Location and instance id."""


class Stage(enum.StrEnum):
    """Where an instance stands. In those of SWITCHED, HQ wants this snapshot READY there."""

    DONE = "done"  # its agent has seen that, and it has been ready long enough
    SETTLING = "settling"  # ready, but not long enough yet
    UNDER_WAY = "under way"  # not ready yet
    UNHEARD = "unheard"  # nothing is ready there, and its agent has not been heard of since the switch
    UNTOUCHED = "untouched"  # its agent has not seen the switch, and what ran there before is still ready
    DOWN = "down"  # not switched and not ready: switching it costs nothing
    UP = "up"  # not switched and ready
    STALE = "stale"  # runs this snapshot; what HQ holds differs in what restarts nothing: writing it costs nothing
    LEAVING = "leaving"  # not switched; an earlier order is replacing what serves there by a third revision
    UNSEEN = "unseen"  # not switched and ready, but its agent has not seen the newest spec
    UNPREPARED = "unprepared"  # not switched, and its agent has not installed the snapshot yet: it comes last
    SILENT = "silent"  # not switched; its agent is silent, so it may or may not serve
    HELD = "held"  # others hold it: it comes later, which is no failure
    LOST = "lost"  # switched, but its agent was silent before it saw that: it is left alone
    GONE = "gone"  # its agent saw the switch, and is silent since: the revision may have taken the host with it
    AWAY = "away"  # its location does not answer: nothing is known, nothing can be written


SWITCHED = frozenset(
    {Stage.DONE, Stage.SETTLING, Stage.UNDER_WAY, Stage.UNHEARD, Stage.UNTOUCHED, Stage.LOST, Stage.GONE}
)
NOT_SWITCHED = frozenset(Stage) - SWITCHED - {Stage.AWAY}


Stages = Mapping[Stage, Set[Key]]
"""The instances that the snapshot names, each in one of the sets; stages without any may be absent."""


def keys_in(stages: Stages, *wanted: Stage) -> set[Key]:
    """The instances in these stages."""
    return set().union(*(stages.get(stage, ()) for stage in wanted))


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """The stored progress of the action, from which another process can continue.

    Attributes:
        batch: switched, or about to be; empty: there is no current batch.
        batches_done: how many were given back.
        failed: instances that failed for good: they missed the deadline or kept restarting. Also those that were waited
            for in vain and turn out to be lost.
        fell: instances that were done, then restarted or were not ready, and have not been done for a whole soak since.
        ailing: instances that should have been ready when the order began, and were not: they count for nothing.
        at_most: the largest batch, as leave for more was not granted; 0: as large as the policy allows.
        put_off: instances that the CMS cannot approve now: they come last, in this order.
        proven: a batch has soaked, or the snapshot has served before: no later batch is waited for like a first one.
        trusted: it was ACTIVE last, so whatever goes wrong now is not its doing.
        steps: they come before all the rest follows; the first `steps_over` of them are over.
        promoted: steps up to this number are promoted.
    """

    batch: tuple[Key, ...] = ()
    batches_done: int = 0
    failed: frozenset[Key] = field(default_factory=frozenset)
    fell: frozenset[Key] = field(default_factory=frozenset)
    ailing: frozenset[Key] = field(default_factory=frozenset)
    at_most: int = 0
    put_off: tuple[Key, ...] = ()
    proven: bool = False
    trusted: bool = False
    steps: tuple[WaveStep, ...] = ()
    steps_over: int = 0
    promoted: int = 0

    @property
    def step(self) -> WaveStep | None:
        """The step under way; None: all are over."""
        return self.steps[self.steps_over] if self.steps_over < len(self.steps) else None
