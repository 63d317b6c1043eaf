"""What a roll-out has seen of its instances: which proved themselves, and which broke afterwards. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nanny.rollout.views import Key, Stage, Stages, at

_READY: Final = (Stage.SETTLING, Stage.DONE)
_KEEPS_PROOF: Final = (*_READY, Stage.UNDER_WAY, Stage.AWAY)


@dataclass(slots=True)
class Evidence:
    """Of one roll-out. It is not stored: another process begins with what it finds, and knows the failures so far.

    Attributes:
        firsts: instances that were ready, and that were done, at least once.
        restarts: by instance that proved itself, how often its containers had restarted by then.
    """

    firsts: set[tuple[Stage, Key]] = field(default_factory=set)
    restarts: dict[Key, int] = field(default_factory=dict)

    @property
    def progress(self) -> int:
        """Only grows: an instance whose readiness comes and goes is no progress."""
        return len(self.firsts)

    def relapses(self, stages: Stages, restarts: Mapping[Key, int]) -> set[Key]:
        """Instances that were done, and then were not ready or restarted; none that is silent, held or away.

        Args:
            restarts: of containers, by instance; absent: none.
        """
        here = at(stages, *_READY, Stage.UNDER_WAY)
        restarted = {key for key, count in restarts.items() if self.restarts.get(key, count) < count}
        return (restarted & here) | (self.restarts.keys() & stages.get(Stage.UNDER_WAY, frozenset()))

    def update(self, stages: Stages, restarts: Mapping[Key, int]) -> None:
        """Note what is there now. An instance that others held, or that was silent, has to prove itself anew."""
        for key in self.restarts.keys() - at(stages, *_KEEPS_PROOF):
            del self.restarts[key]
        # A supervisor that was started anew counts from 0.
        self.restarts |= {key: min(count, restarts.get(key, 0)) for key, count in self.restarts.items() if count}
        new = stages.get(Stage.DONE, frozenset()) - self.restarts.keys()
        self.restarts |= {key: restarts.get(key, 0) for key in new}
        self.firsts |= {(stage, key) for stage in _READY for key in stages.get(stage, ())}
