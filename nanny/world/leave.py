"""Leave to take instances away: from a CMS, or, where there is none, by `max_unavailable` alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nanny.rollout.views import Key


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the instances may be taken away; `why` says what stands against it, and `retry_s` when to ask again."""

    granted: bool
    why: str = ""
    retry_s: float = 2.0


GRANTED = Answer(granted=True)


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


class NoCms:
    """Nobody to ask: the plan's own bound is all there is, and messages say so."""

    address = ""

    async def ask(self, task: str, service: str, instances: Sequence[Key], comment: str) -> Answer:
        return GRANTED

    async def confirm(self, task: str) -> Answer:
        return GRANTED

    async def give_back(self, task: str) -> bool:
        return True
