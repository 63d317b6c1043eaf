"""What a roll-out has seen of its instances: which proved themselves, and which broke afterwards. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from nanny.rollout.views import Key, Stage, Stages, at

_KEEPS_PROOF: Final = (Stage.DONE, Stage.SETTLING, Stage.UNDER_WAY, Stage.AWAY)


@dataclass(slots=True)
class Evidence:
    """Of one roll-out. It is not stored: another process begins with what it finds, and knows the failures so far.

    Attributes:
        once_ready: instances that were ready at least once.
        proven: those that were done, with the restarts of their containers until then.
    """

    once_ready: set[Key] = field(default_factory=set)
    proven: dict[Key, int] = field(default_factory=dict)

    @property
    def progress(self) -> tuple[int, int]:
        """Only grows: an instance whose readiness comes and goes is no progress."""
        return len(self.once_ready), len(self.proven)

    def fallen(self, stages: Stages, restarts: Mapping[Key, int]) -> set[Key]:
        """Those that were done, and then were not ready or restarted. What is silent, held or away does not fall.

        Args:
            restarts: of containers, by instance; absent: none.
        """
        here = at(stages, Stage.DONE, Stage.SETTLING, Stage.UNDER_WAY)
        restarted = {key for key, count in restarts.items() if key in here and self.proven.get(key, count) < count}
        return restarted | {key for key in stages.get(Stage.UNDER_WAY, ()) if key in self.proven}

    def take(self, stages: Stages, restarts: Mapping[Key, int]) -> None:
        """Note what is there now. An instance that others held, or that was silent, has to prove itself anew."""
        for key in self.proven.keys() - at(stages, *_KEEPS_PROOF):
            del self.proven[key]
        self.proven |= {key: min(count, restarts.get(key, 0)) for key, count in self.proven.items() if count}
        done: Set[Key] = stages.get(Stage.DONE, frozenset())
        self.proven |= {key: restarts.get(key, 0) for key in done - self.proven.keys()}
        self.once_ready |= done | stages.get(Stage.SETTLING, frozenset())
