"""Which instances speak against a snapshot, and whether they are more than the policy allows. Pure."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

from nanny.rollout.policy import Policy
from nanny.rollout.views import Key, RolloutProgress, Stage, Stages, keys_in

_DEAD: Final = (Stage.UNHEARD, Stage.UNTOUCHED, Stage.LOST, Stage.GONE)


def failures(stages: Stages, progress: RolloutProgress) -> Set[Key]:
    """Return the failures that count against the snapshot: not instances that failed before, nor silent nodes."""
    return (progress.failed | progress.fell) - progress.ailing - keys_in(stages, *_DEAD)


@dataclass(frozen=True, slots=True)
class Excess:
    """More failures than the policy allows: which, and how many of how many."""

    who: str
    count: str


def find_excess(policy: Policy, stages: Stages, progress: RolloutProgress, late: Sequence[Key] = ()) -> Excess | None:
    """The failures, with `late`, if they are more than the policy allows; else None.

    In the first batch one instance that failed for good is too many; one that only fell counts like any other.
    Instances that could not be prepared were in no batch.
    """
    failed = failures(stages, progress) | (set(late) - progress.ailing - keys_in(stages, *_DEAD))
    allowed = policy.failures(instance_count(stages))
    if not progress.proven:
        final = (failed & (progress.failed | set(late))) - keys_in(stages, Stage.UNPREPARED)
        failed, allowed = (final, 0) if final else (failed, allowed)
    if len(failed) <= allowed:
        return None
    return Excess(format_keys(sorted(failed)), f"{len(failed)} failed, {allowed} allowed")


def instance_count(stages: Stages) -> int:
    """Number of instances in all stages together."""
    return sum(len(keys) for keys in stages.values())


def format_keys(keys: Sequence[Key]) -> str:
    """The first few by name."""
    names = [f"{name} ({location})" for location, name in keys[:3]]
    return ", ".join(names) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
