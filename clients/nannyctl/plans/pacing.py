"""The pace of a roll-out: which instances to switch now, and when to stop. Pure: no I/O, the time is given.

- At most `limit` instances that were ready are switched at once; the next batch begins when each of the last one has
  been ready for `min_ready_s`.
- Instances that are not ready when their turn comes cost nothing: they are switched with the first batch and are not
  waited for.
- If no instance becomes ready for the first time within `patience_s`, the roll-out has failed: what was switched stays
  switched, nothing further is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from descriptions.desired import ready_of
from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE, Instance

Instances = Mapping[str, Instance]


@dataclass(frozen=True, slots=True)
class PacingSettings:
    """How a roll-out goes.

    Attributes:
        max_unavailable: instances at once: a number, or a share of all (0 to 1) if `is_share`, rounded down.
        min_ready_s: how long an instance must be ready before it counts.
        patience_s: without progress for this long the roll-out has failed.
    """

    max_unavailable: float = 0.1
    is_share: bool = True
    min_ready_s: float = 3.0
    patience_s: float = 600.0

    def limit(self, instances: int) -> int:
        """Instances at once, at least 1: a roll-out of none would never end."""
        return max(1, math.floor(instances * self.max_unavailable if self.is_share else self.max_unavailable))


@dataclass(frozen=True, slots=True)
class PacingStep:
    """What to do now.

    Attributes:
        switch: ids of instances to switch.
        late: ids that did not become ready in time: stop. Empty: go on.
        is_done: nothing is left to do.
        wake_in_s: look again then, if nothing changes before.
    """

    switch: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    is_done: bool = False
    wake_in_s: float = math.inf


@dataclass
class Roll:
    """One roll-out of one service in one installation, by `pace`; `pending`: ids to switch, in this order."""

    revision: str
    pending: list[str]
    pace: PacingSettings
    limit: int
    unwatched: set[str] = field(default_factory=set)
    _ready_since: dict[str, float | None] = field(default_factory=dict)
    _were_ready: set[str] = field(default_factory=set)
    _progress_at: float = 0.0

    def look(self, instances: Instances, now: float) -> PacingStep:
        """Decide by the current instances. Those in `switch` count as switched from then on."""
        self._note(instances, now)
        unsettled = [one for one, since in self._ready_since.items() if not self._is_settled(since, now)]
        if not unsettled:
            return self._next_batch(instances, now)
        waits_s = self._progress_at + self.pace.patience_s - now
        if waits_s <= 0:
            return PacingStep(late=tuple(unsettled))
        settles = [since + self.pace.min_ready_s - now for since in self._ready_since.values() if since is not None]
        return PacingStep(wake_in_s=min([waits_s, *(seconds for seconds in settles if seconds > 0)]))

    def _next_batch(self, instances: Instances, now: float) -> PacingStep:
        down = [one for one in self.pending if not _is_ready(instances.get(one))]
        up = [one for one in self.pending if one not in down][: self.limit]
        self.pending = [one for one in self.pending if one not in down and one not in up]
        self.unwatched |= set(down)
        self._ready_since |= dict.fromkeys(up)
        self._progress_at = now
        return PacingStep(switch=(*down, *up), is_done=not (down or up))

    def _note(self, instances: Instances, now: float) -> None:
        for one, since in list(self._ready_since.items()):
            if one not in instances:
                del self._ready_since[one]  # somebody deleted it
            elif not _is_ready(instances[one], self.revision):
                self._ready_since[one] = None
            elif since is None:
                self._ready_since[one] = now
                if one not in self._were_ready:  # a crash loop is no progress
                    self._were_ready.add(one)
                    self._progress_at = now

    def _is_settled(self, since: float | None, now: float) -> bool:
        return since is not None and now - since >= self.pace.min_ready_s


def _is_ready(instance: Instance | None, revision: str = "") -> bool:
    """The revision wanted READY (and it is `revision`, if given) is ready."""
    wanted = ready_of(instance) if instance is not None else ""
    if instance is None or not wanted or revision not in ("", wanted):
        return False
    return any(one.id == wanted and one.ready.status == CONDITION_STATUS_TRUE for one in instance.status.revision)
