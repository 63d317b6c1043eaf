"""The next moves of a roll-out: the plan decides them, and the action carries them out."""

from __future__ import annotations

from dataclasses import dataclass

from nanny.rollout.views import Key


@dataclass(frozen=True, slots=True)
class Begin:
    """A new batch: ask for leave, then switch these. `costs`: those of them that may be serving."""

    batch: tuple[Key, ...]
    costs: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """Instances of the current batch that are not switched yet."""

    instances: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The batch is over; `failed` of them did not become ready, which is tolerated."""

    failed: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Prove:
    """The first batch has soaked: go on, once each of these has reported in the last interval."""

    instances: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait, and look again later. `why` is for people."""

    why: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Every instance is as it should be, except those `left`, which `why` explains.

    Attributes:
        instances: each of these must have reported in the last interval.
    """

    why: str = ""
    instances: frozenset[Key] = frozenset()


@dataclass(frozen=True, slots=True)
class Failed:
    """The roll-out has failed; what is switched stays as it is."""

    why: str


@dataclass(frozen=True, slots=True)
class StepOver:
    """The step under way is over; the next one begins."""


@dataclass(frozen=True, slots=True)
class AskCheck:
    """The step under way is this check: ask it. `why` is for people."""

    check: str
    why: str


Step = Begin | Switch | GiveBack | Prove | StepOver | AskCheck | Wait | Finished | Failed
