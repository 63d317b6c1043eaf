"""Which instances a roll-out in steps switches: the same ones in every try, as far as they can show something. Pure."""

from __future__ import annotations

from typing import Final

from control.waves import reach_in
from nanny.rollout.policy import Policy
from nanny.rollout.views import SWITCHED, Key, RolloutProgress, Stage, Stages, keys_in

_SHOWS_NOTHING: Final = (Stage.SILENT, Stage.UNPREPARED, Stage.LOST, Stage.GONE)
_LATER: Final = (Stage.HELD, Stage.UNSEEN, Stage.AWAY)


def canaries(policy: Policy, stages: Stages, progress: RolloutProgress) -> set[Key]:
    """The instances that the steps so far cover: those already switched, then the first by location and name.

    One that is held or away still counts: it is waited for. One that was ailing, has failed, says nothing or is put
    off does not: the next in order takes its place, since it shows more.
    """
    total = sum(len(keys) for keys in stages.values())
    switched = keys_in(stages, *SWITCHED)
    left_out = keys_in(stages, *_SHOWS_NOTHING) | progress.ailing | progress.failed | progress.fell
    left_out |= set(progress.put_off) - switched
    in_order = sorted(
        keys_in(stages, *Stage) - left_out, key=lambda key: (key not in switched, policy.order(key[0]), key)
    )
    return set(in_order[: reach_in(progress.steps, progress.steps_over, total)])


def missing_canaries(policy: Policy, stages: Stages, progress: RolloutProgress) -> list[Key]:
    """Canaries that cannot be switched, or looked at, until later."""
    return sorted(canaries(policy, stages, progress) & keys_in(stages, *_LATER))
