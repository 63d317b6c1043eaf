"""Judges a roll-out by its instances: which were done, which fell or failed for good, which are calm. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nanny.rollout.views import SWITCHED, Key, RolloutProgress, Stage, Stages, keys_in

RESTARTS: Final = 3
WITHIN_S: Final = 600.0
"""So many restarts within this time are a failure for good."""
START_S: Final = 60.0
"""An application that waits for a sidecar may restart for so long before it is ready for the first time."""
_READY: Final = (Stage.SETTLING, Stage.DONE)
_KEEPS_PROOF: Final = (*_READY, Stage.UNDER_WAY, Stage.UNHEARD, Stage.UNTOUCHED, Stage.AWAY)
_NOBODY: Final[frozenset[Key]] = frozenset()


class Findings(NamedTuple):
    """New observations: `fell` and `failed` are to be added to the progress, `recovered` no longer count as fallen."""

    fell: Set[Key]
    failed: Set[Key]
    recovered: Set[Key]


@dataclass(slots=True)
class Evidence:
    """Evidence for judging one roll-out. Not stored: a new process starts from what it sees, and knows the failures so
    far.

    Times are those of the roll-out's meter, in seconds: they stand still while it does.

    Attributes:
        firsts: instances that were ready, and that were done, at least once.
        done_since: instances that are done, and since when without interruption.
        proved: instances that were done at least once, and were neither held by others nor silent since.
    """

    firsts: set[tuple[Stage, Key]] = field(default_factory=set)
    done_since: dict[Key, float] = field(default_factory=dict)
    proved: set[Key] = field(default_factory=set)
    _switched_at: dict[Key, float] = field(default_factory=dict)
    _restarts: dict[Key, int] = field(default_factory=dict)
    _restarted_at: dict[Key, list[float]] = field(default_factory=dict)

    @property
    def progress(self) -> int:
        """A measure that only grows: an instance whose readiness comes and goes is no progress."""
        return len(self.firsts)

    def skip_proved(self, stages: Stages, fell: Set[Key]) -> Stages:
        """The same stages, but instances that were done once stay done: they need not see what was written later."""
        again = (stages.get(Stage.SETTLING, _NOBODY) & self.proved) - fell
        if not again:
            return stages
        settling = stages[Stage.SETTLING] - again
        return {**stages, Stage.SETTLING: settling, Stage.DONE: keys_in(stages, Stage.DONE) | again}

    def update(
        self, stages: Stages, restarts: Mapping[Key, int], progress: RolloutProgress, now_s: float, soak_s: float
    ) -> Findings:
        """Note what is there now.

        Args:
            stages: as `skip_proved` returns them.
            restarts: of containers, by instance; absent: none.
        """
        self._forget(stages)
        for key in keys_in(stages, *SWITCHED) - self._switched_at.keys():
            self._switched_at[key] = now_s
            if key in restarts:
                self._restarts[key] = restarts[key]
        restarted = self._count(restarts, now_s)
        down = self.proved & keys_in(stages, Stage.UNDER_WAY, Stage.UNHEARD)
        fell = (self.proved & restarted) | down
        done = stages.get(Stage.DONE, _NOBODY) - fell
        for key in self.done_since.keys() - done:
            del self.done_since[key]
        self.done_since |= dict.fromkeys(done - self.done_since.keys(), now_s)
        self.proved |= done
        self.firsts |= {(stage, key) for stage in _READY for key in stages.get(stage, ())}
        again = {key for key in progress.fell & self.done_since.keys() if now_s - self.done_since[key] >= soak_s}
        failed = {key for key, times in self._restarted_at.items() if _is_final(times, now_s)} - progress.failed
        return Findings(fell - progress.fell, failed, again)

    def _forget(self, stages: Stages) -> None:
        """An instance that others held, or that was silent, has to prove itself again."""
        for key in self._switched_at.keys() - keys_in(stages, *_KEEPS_PROOF):
            del self._switched_at[key]
            self._restarts.pop(key, None)
            self._restarted_at.pop(key, None)
            self.proved.discard(key)

    def _count(self, restarts: Mapping[Key, int], now_s: float) -> set[Key]:
        """Count the restarts since the last look that count against the snapshot."""
        restarted = set()
        for key in self._restarts.keys() - restarts.keys():
            del self._restarts[key]  # a supervisor that was restarted counts from 0
        for key in restarts.keys() & self._switched_at.keys():
            more = restarts[key] - self._restarts.get(key, 0)
            self._restarts[key] = restarts[key]
            if more > 0 and (key in self.proved or now_s - self._switched_at[key] >= START_S):
                self._restarted_at.setdefault(key, []).extend([now_s] * more)
                restarted.add(key)
        return restarted


def _is_final(times: list[float], now_s: float) -> bool:
    return sum(now_s - time <= WITHIN_S for time in times) >= RESTARTS


def expected_keys(stages: Stages, progress: RolloutProgress) -> set[Key]:
    """Switched instances that have to be done: not those that are lost, ailing, or counted as failures."""
    left = progress.failed | progress.fell | progress.ailing
    return keys_in(stages, *SWITCHED) - keys_in(stages, Stage.LOST, Stage.GONE) - left


def is_calm(stages: Stages, progress: RolloutProgress) -> bool:
    """Whether instances are expected to be done, and all of them are."""
    due = expected_keys(stages, progress)
    return bool(due) and due <= keys_in(stages, Stage.DONE)
