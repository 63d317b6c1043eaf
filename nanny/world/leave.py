"""Leave to take instances away: from a CMS, or, where there is none, by `max_unavailable` alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nanny.rollout.views import Key


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the instances may be taken away; `why` says what stands against it, and `retry_s` when to ask again.

    Attributes:
        at_most: so many at once could ever be granted, were all others ready; 0: not known, or no bound.
    """

    granted: bool
    why: str = ""
    retry_s: float = 2.0
    at_most: int = 0


GRANTED = Answer(granted=True)


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave that somebody has: of these instances, and of all that stand on these hosts."""

    task: str
    instances: frozenset[Key] = frozenset()
    hosts: frozenset[str] = frozenset()

    def covers(self, key: Key, host: str) -> bool:
        return key in self.instances or host in self.hosts


class Leave(Protocol):
    """Who gives leave. A task is known by its id: asked for twice, it is one."""

    address: str

    async def ask(self, task: str, service: str, instances: Sequence[Key], comment: str) -> Answer:
        """Create the task unless it is there, and answer how it stands. Provisional until `confirm`."""
        ...

    async def confirm(self, task: str) -> Answer:
        """Directly before the first effect: decided anew."""
        ...

    async def give_back(self, task: str) -> bool:
        """The instances serve again, or the task is not needed any more. False: it is not known to be gone."""
        ...

    async def holds_of_others(self, service: str) -> Sequence[Hold]:
        """What others were granted of a service: such instances are left for later. As of a moment ago."""
        ...

    async def declare(self, running: Sequence[Hold]) -> bool:
        """Say what is under way, if the CMS asks for it: its store has a new history. Whether it did ask."""
        ...


class NoCms:
    """Nobody to ask: the plan's own bound is all there is, and messages say so."""

    address = ""

    async def ask(self, task: str, service: str, instances: Sequence[Key], comment: str) -> Answer:
        return GRANTED

    async def confirm(self, task: str) -> Answer:
        return GRANTED

    async def give_back(self, task: str) -> bool:
        return True

    async def holds_of_others(self, service: str) -> Sequence[Hold]:
        return ()

    async def declare(self, running: Sequence[Hold]) -> bool:
        return False
