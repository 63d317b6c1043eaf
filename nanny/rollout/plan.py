"""The next step of a roll-out, from what is observed and what was recorded. A pure function; see `next_step`."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

from control.waves import is_over
from nanny.rollout.batches import choose_batch
from nanny.rollout.failures import failures, find_excess, format_keys, instance_count
from nanny.rollout.judge import expected_keys, is_calm
from nanny.rollout.moves import AskCheck, Failed, Finished, GiveBack, Prove, Step, StepOver, Switch, Wait
from nanny.rollout.policy import Policy
from nanny.rollout.steps import canaries, missing_canaries
from nanny.rollout.views import NOT_SWITCHED, SWITCHED, Key, RolloutProgress, Stage, Stages, keys_in


def next_step(
    policy: Policy,
    stages: Stages,
    progress: RolloutProgress,
    stalled_s: float,
    calm_s: float = 0.0,
    step_s: float = 0.0,
) -> Step:
    """Decide what comes next.

    Args:
        stalled_s: how long nothing has been completed since the batch began, without pauses.
        calm_s: how long all instances expected to be done have been done, since the last switch or fall.
        step_s: how long the step under way has held, or its check has been within its bound.
    """
    stages = _with_lost(stages, progress)
    if excess := find_excess(policy, stages, progress):
        return Failed(f"{excess.who} restarted, or did not stay ready ({excess.count})")
    if progress.batch:
        return _in_batch(policy, stages, progress, stalled_s)
    if hold := _hold(policy, stages, progress):
        return Wait(hold)
    late = awaited_keys(stages, progress)
    if late:  # switched in an earlier batch or by somebody else
        return _late(policy, stages, progress, stalled_s, late)
    if not progress.proven and (step := _soak(policy, stages, progress, stalled_s, calm_s)) is not None:
        return step
    if progress.step is not None:
        return _in_steps(policy, stages, progress, stalled_s, step_s)
    return _next_batch(policy, stages, progress, stalled_s, calm_s)


_NOT_YET: Final = (Stage.UNDER_WAY, Stage.UNHEARD, Stage.UNTOUCHED, Stage.SETTLING)


def _with_lost(stages: Stages, progress: RolloutProgress) -> Stages:
    """The same stages, but unheard instances that were waited for in vain are lost: they take no room."""
    unheard = stages.get(Stage.UNHEARD, frozenset())
    lost = unheard & progress.failed
    return {**stages, Stage.UNHEARD: unheard - lost, Stage.LOST: keys_in(stages, Stage.LOST) | lost} if lost else stages


def _due(stages: Stages, progress: RolloutProgress, among: Set[Key]) -> list[Key]:
    """Instances that the batch waits for: not those that were ailing before, or count as failures already."""
    return sorted(among - progress.failed - progress.fell - progress.ailing)


def awaited_keys(stages: Stages, progress: RolloutProgress) -> list[Key]:
    """Switched instances that have to become ready, or to stay it for a while, before anything else happens."""
    return _due(stages, progress, keys_in(stages, *_NOT_YET))


def _hold(policy: Policy, stages: Stages, progress: RolloutProgress) -> str:
    """Why a revision that may kill hosts goes no further until people look; empty: it may go on."""
    gone = sorted(keys_in(stages, Stage.GONE) - progress.ailing)
    allowed = max(1, policy.failures(instance_count(stages)))
    if progress.trusted or len(gone) <= allowed:
        return ""
    return (
        f"holds: {format_keys(gone)} fell silent after they were switched ({len(gone)}, {allowed} allowed). Look at "
        "their hosts; it goes on when they report again, and any other order replaces it"
    )


def _in_batch(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float) -> Step:
    batch = set(progress.batch)
    if missing := batch.intersection(keys_in(stages, *NOT_SWITCHED)):
        return Switch(tuple(sorted(missing)))
    if away := sorted(batch.intersection(keys_in(stages, Stage.AWAY))):
        # Switched or not, these may be down: another batch could take one too many.
        where = sorted({location for location, _ in away})
        waits = f"waits for location {', '.join(where)}, which does not answer (it has {format_keys(away)})"
        return Wait(f"{waits}; {policy.go_on_without(where)}")
    late = _due(stages, progress, batch & keys_in(stages, *_NOT_YET))
    return _late(policy, stages, progress, stalled_s, late) if late else GiveBack()


def _late(
    policy: Policy,
    stages: Stages,
    progress: RolloutProgress,
    stalled_s: float,
    waiting: Sequence[Key],
    to_be: str = "ready",
) -> Step:
    """Wait for these, up to the deadline; ready ones have their time to settle in addition.

    No deadline ends the wait for an agent that has not seen its switch and still serves: HQ says when it is silent.
    """
    deadline_s = policy.progress_deadline_s
    never = keys_in(stages, Stage.UNTOUCHED)
    if stalled_s < deadline_s + policy.min_ready_s:
        never = never | keys_in(stages, Stage.SETTLING)
    late = [key for key in waiting if key not in never]
    if stalled_s < deadline_s or not late:
        return Wait(f"waits for {format_keys(waiting)} to become {to_be}")
    if excess := find_excess(policy, stages, progress, late):
        first = "in the first batch " if not progress.proven and to_be == "ready" else ""
        return Failed(f"{excess.who} did not become {to_be} {first}within {deadline_s:g} s ({excess.count})")
    return GiveBack(tuple(late))


def _soak(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float, calm_s: float) -> Step | None:
    """Let the first batch stay done for a while; None: another batch begins, which counts as the first, too."""
    due = expected_keys(stages, progress)
    is_over = stalled_s >= policy.soak_s + policy.progress_deadline_s
    if is_calm(stages, progress) and calm_s >= policy.soak_s:
        return Prove(frozenset(due))
    fell = (progress.fell - progress.ailing - progress.failed) & keys_in(stages, *SWITCHED)
    if is_over or not (due or fell):
        return None
    seen = f"; {format_keys(sorted(fell))} did not stay ready" if fell else ""
    return Wait(f"watches the first instances for {policy.soak_s:g} s before it goes on ({calm_s:.0f} s calm{seen})")


def _in_steps(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float, step_s: float) -> Step:
    """Decide while a step is under way. No leave is held: the batch before was given back."""
    step = progress.step
    assert step is not None
    taken = canaries(policy, stages, progress)
    if (begin := choose_batch(policy, stages, progress, taken)) is not None:
        return begin
    if taken & keys_in(stages, Stage.UP):
        return Wait(_no_room(policy))
    where = f"step {progress.steps_over + 1} of {len(progress.steps)} ({step.words})"
    if step.reach is not None and (wait := _without_canaries(policy, stages, progress, stalled_s, taken)) is not None:
        return Wait(f"{where} {wait.why}") if isinstance(wait, Wait) else wait
    if is_over(step, step_s, is_promoted=progress.promoted > progress.steps_over):
        return StepOver()
    if step.check:
        return AskCheck(step.check, where)
    if step.promote:
        return Wait(f"{where} waits for `nanny rollout promote {policy.service}`")
    return Wait(f"{where} holds")


def _without_canaries(
    policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float, taken: Set[Key]
) -> Step | None:
    """Wait if some canaries cannot be looked at until later, or there are none to look at; None: go on."""
    missing, nobody = missing_canaries(policy, stages, progress), not taken & keys_in(stages, *SWITCHED)
    if missing:
        return Wait(f"waits for {format_keys(missing)}: {_unfinished_summary(stages, progress)}")
    if not nobody or not instance_count(stages):
        return None
    if unprepared := sorted(keys_in(stages, Stage.UNPREPARED) - progress.failed):
        return _late(policy, stages, progress, stalled_s, unprepared, "installed")
    return Wait(f"waits for an instance that can show something: {_unfinished_summary(stages, progress) or 'none can'}")


def _next_batch(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float, calm_s: float) -> Step:
    if (step := choose_batch(policy, stages, progress)) is not None:
        return step
    if keys_in(stages, Stage.UP, Stage.SILENT):
        return Wait(_no_room(policy))
    if unprepared := sorted(keys_in(stages, Stage.UNPREPARED) - progress.failed):
        return _late(policy, stages, progress, stalled_s, unprepared, "installed")
    return _nothing_left(policy, stages, progress, stalled_s, calm_s)


def _no_room(policy: Policy) -> str:
    used = "because max_unavailable is used up by instances that are not ready or still changing"
    return f"waits, {used}; see `nanny instances {policy.service}`"


def _nothing_left(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float, calm_s: float) -> Step:
    if keys_in(stages, Stage.AWAY, Stage.HELD, Stage.UNSEEN):
        where = {location for location, _ in keys_in(stages, Stage.AWAY)}
        hint = f"; {policy.go_on_without(where)}" if where else ""
        return Wait(f"waits for the rest: {_unfinished_summary(stages, progress)}{hint}")
    done = keys_in(stages, Stage.DONE)
    if instance_count(stages) and not done:
        if stalled_s < policy.progress_deadline_s:
            return Wait("waits for the first agent to report")
        return Failed(
            f"no instance became ready within {policy.progress_deadline_s:g} s: {_unfinished_summary(stages, progress)}"
        )
    due = expected_keys(stages, progress)
    if due and calm_s < policy.soak_s and stalled_s < policy.soak_s + policy.progress_deadline_s:
        return Wait(f"watches all instances for {policy.soak_s:g} s before it ends ({calm_s:.0f} s calm)")
    return Finished(_unfinished_summary(stages, progress), frozenset(due))


def _unfinished_summary(stages: Stages, progress: RolloutProgress) -> str:
    away = keys_in(stages, Stage.AWAY)
    where = ", ".join(sorted({location for location, _ in away}))
    done, unprepared = keys_in(stages, Stage.DONE), keys_in(stages, Stage.UNPREPARED)
    failed = failures(stages, progress)
    ailing = (progress.ailing & keys_in(stages, *SWITCHED)) - done - keys_in(stages, Stage.LOST, Stage.GONE)
    parts = {
        f"in locations that do not answer ({where})": away,
        "held by others": keys_in(stages, Stage.HELD),
        "whose agents have not seen the newest spec": keys_in(stages, Stage.UNSEEN),
        "whose agents have not reported": keys_in(stages, Stage.LOST),
        "whose agents are silent since they were switched": keys_in(stages, Stage.GONE),
        "not installed, so that they were not switched": unprepared,
        "not ready": failed - done - unprepared,
        "not ready as before": ailing,
        "that failed and are ready now": failed & done,
    }
    return ", ".join(f"{len(keys)} {what}" for what, keys in parts.items() if keys)
