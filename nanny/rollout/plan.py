"""The next step of a roll-out, from what is observed and what was recorded. A pure function; see `next_step`."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

from control.waves import is_over
from nanny.rollout.judge import expected_keys, is_calm
from nanny.rollout.policy import Policy
from nanny.rollout.steps import canaries, missing_canaries
from nanny.rollout.views import SWITCHED, Key, RolloutProgress, Stage, Stages, keys_in

LARGEST_BATCH = 1_000


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
    """Nothing to do yet; look again later. `why` is for people."""

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
        calm_s: how long everybody who is expected to be done has been, since the last switch or fall.
        step_s: how long the step under way has held, or its check has been within its bound.
    """
    stages = _with_lost(stages, progress)
    if excess := _excess(policy, stages, progress):
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
NOT_SWITCHED: Final = frozenset(Stage) - SWITCHED - {Stage.AWAY}
_DEAD: Final = (Stage.UNHEARD, Stage.UNTOUCHED, Stage.LOST, Stage.GONE)


def _with_lost(stages: Stages, progress: RolloutProgress) -> Stages:
    """The same, but what was waited for in vain, without a word from its agent, is lost: it takes no room."""
    unheard = stages.get(Stage.UNHEARD, frozenset())
    lost = unheard & progress.failed
    return {**stages, Stage.UNHEARD: unheard - lost, Stage.LOST: keys_in(stages, Stage.LOST) | lost} if lost else stages


def _due(stages: Stages, progress: RolloutProgress, among: Set[Key]) -> list[Key]:
    """Those of them that are waited for: nobody waits for what was ailing, or counts as a failure already."""
    return sorted(among - progress.failed - progress.fell - progress.ailing)


def awaited_keys(stages: Stages, progress: RolloutProgress) -> list[Key]:
    """Switched instances that have to become ready, or to stay it for a while, before anything else happens."""
    return _due(stages, progress, keys_in(stages, *_NOT_YET))


def failures(stages: Stages, progress: RolloutProgress) -> Set[Key]:
    """What speaks against the snapshot: not what was ailing, nor a node that says nothing."""
    return (progress.failed | progress.fell) - progress.ailing - keys_in(stages, *_DEAD)


@dataclass(frozen=True, slots=True)
class _Excess:
    """More failures than the policy allows: which, and how many of how many."""

    who: str
    count: str


def _excess(policy: Policy, stages: Stages, progress: RolloutProgress, late: Sequence[Key] = ()) -> _Excess | None:
    """Too many failures, with these that are late; None: they are within the policy.

    In the first batch one that failed for good is too many; one that fell counts. Those that could not be prepared were
    in no batch.
    """
    failed = failures(stages, progress) | (set(late) - progress.ailing - keys_in(stages, *_DEAD))
    allowed = policy.failures(_total(stages))
    if not progress.proven:
        final = (failed & (progress.failed | set(late))) - keys_in(stages, Stage.UNPREPARED)
        failed, allowed = (final, 0) if final else (failed, allowed)
    if len(failed) <= allowed:
        return None
    return _Excess(_some(sorted(failed)), f"{len(failed)} failed, {allowed} allowed")


def _hold(policy: Policy, stages: Stages, progress: RolloutProgress) -> str:
    """Why a revision that may kill hosts stays where it is until people look; empty: it does not."""
    gone = sorted(keys_in(stages, Stage.GONE) - progress.ailing)
    allowed = max(1, policy.failures(_total(stages)))
    if progress.trusted or len(gone) <= allowed:
        return ""
    return (
        f"holds: {_some(gone)} fell silent after they were switched ({len(gone)}, {allowed} allowed). Look at their "
        "hosts; it goes on when they report again, and any other order replaces it"
    )


def _in_batch(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float) -> Step:
    batch = set(progress.batch)
    if missing := batch.intersection(keys_in(stages, *NOT_SWITCHED)):
        return Switch(tuple(sorted(missing)))
    if away := sorted(batch.intersection(keys_in(stages, Stage.AWAY))):
        # Switched or not, it may be down: another batch could take one too many.
        where = sorted({location for location, _ in away})
        waits = f"waits for location {', '.join(where)}, which does not answer (it has {_some(away)})"
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
    """Wait for these, up to the deadline. One that is ready has its time to settle on top of it.

    No deadline ends the wait for an agent that still serves and has not seen its switch: HQ says when it is silent.
    """
    deadline_s = policy.progress_deadline_s
    never = keys_in(stages, Stage.UNTOUCHED)
    if stalled_s < deadline_s + policy.min_ready_s:
        never = never | keys_in(stages, Stage.SETTLING)
    late = [key for key in waiting if key not in never]
    if stalled_s < deadline_s or not late:
        return Wait(f"waits for {_some(waiting)} to become {to_be}")
    if excess := _excess(policy, stages, progress, late):
        first = "in the first batch " if not progress.proven and to_be == "ready" else ""
        return Failed(f"{excess.who} did not become {to_be} {first}within {deadline_s:g} s ({excess.count})")
    return GiveBack(tuple(late))


def _soak(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float, calm_s: float) -> Step | None:
    """The first batch has to stay done for a while; None: another one begins, and as the first one if nobody was."""
    due = expected_keys(stages, progress)
    is_over = stalled_s >= policy.soak_s + policy.progress_deadline_s
    if is_calm(stages, progress) and calm_s >= policy.soak_s:
        return Prove(frozenset(due))
    fell = (progress.fell - progress.ailing - progress.failed) & keys_in(stages, *SWITCHED)
    if is_over or not (due or fell):
        return None
    seen = f"; {_some(sorted(fell))} did not stay ready" if fell else ""
    return Wait(f"watches the first instances for {policy.soak_s:g} s before it goes on ({calm_s:.0f} s calm{seen})")


def _in_steps(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float, step_s: float) -> Step:
    """No leave is kept: the batch before was given back."""
    step = progress.step
    assert step is not None
    taken = canaries(policy, stages, progress)
    if (begin := _first_candidates(policy, stages, progress, taken)) is not None:
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
    """Some cannot be looked at until later, or there is nobody to look at; None: it goes on."""
    missing, nobody = missing_canaries(policy, stages, progress), not taken & keys_in(stages, *SWITCHED)
    if missing:
        return Wait(f"waits for {_some(missing)}: {_unfinished_summary(stages, progress)}")
    if not nobody or not _total(stages):
        return None
    if unprepared := sorted(keys_in(stages, Stage.UNPREPARED) - progress.failed):
        return _late(policy, stages, progress, stalled_s, unprepared, "installed")
    return Wait(f"waits for an instance that can show something: {_unfinished_summary(stages, progress) or 'none can'}")


def _next_batch(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float, calm_s: float) -> Step:
    if (step := _first_candidates(policy, stages, progress)) is not None:
        return step
    if keys_in(stages, Stage.UP, Stage.SILENT):
        return Wait(_no_room(policy))
    if unprepared := sorted(keys_in(stages, Stage.UNPREPARED) - progress.failed):
        return _late(policy, stages, progress, stalled_s, unprepared, "installed")
    return _nothing_left(policy, stages, progress, stalled_s, calm_s)


def _no_room(policy: Policy) -> str:
    used = "because max_unavailable is used up by instances that are not ready or still changing"
    return f"waits, {used}; see `nanny instances {policy.service}`"


def _first_candidates(
    policy: Policy, stages: Stages, progress: RolloutProgress, among: Set[Key] | None = None
) -> Begin | None:
    """The next batch; a first one has none that was ailing, if there are others."""
    keys = among if among is not None else keys_in(stages, *NOT_SWITCHED)
    well = None if progress.proven else _candidates(policy, stages, progress, keys - progress.ailing)
    return well or _candidates(policy, stages, progress, keys)


def _candidates(policy: Policy, stages: Stages, progress: RolloutProgress, among: Set[Key]) -> Begin | None:
    """The next batch among these; None: there is none, or no room for it."""

    def in_order(stage: Stage) -> tuple[Key, ...]:
        """In the order in which they are switched."""
        keys = stages.get(stage, frozenset()) & among
        return tuple(sorted(keys, key=lambda key: (policy.order(key[0]), key)))

    if free := in_order(Stage.DOWN) + in_order(Stage.STALE):
        return Begin(free[:LARGEST_BATCH], ())
    # These are lost already, or nearly: an earlier roll-out took them within its limits.
    if leaving := in_order(Stage.LEAVING):
        return Begin(leaving, leaving)
    room = _room(policy, stages, progress)
    costly = _of_first_location(in_order(Stage.UP) or in_order(Stage.SILENT))
    if not costly or room <= 0:
        return None
    batch = costly[: min(room, LARGEST_BATCH)]
    return Begin(batch, batch)


def _room(policy: Policy, stages: Stages, progress: RolloutProgress) -> int:
    """How many more may be taken away. Who failed by itself takes none, nor does a failure that is tolerated."""
    tolerated = progress.failed | progress.fell | progress.ailing
    taken = keys_in(stages, Stage.UNDER_WAY, Stage.UNHEARD, Stage.UNTOUCHED, Stage.UNSEEN) - tolerated
    serving = taken | keys_in(stages, Stage.DONE, Stage.SETTLING, Stage.UP, Stage.STALE)
    room = policy.unavailable(max(len(serving), 1)) - len(taken)
    return min(room, progress.at_most) if progress.at_most else room


def _nothing_left(policy: Policy, stages: Stages, progress: RolloutProgress, stalled_s: float, calm_s: float) -> Step:
    if keys_in(stages, Stage.AWAY, Stage.HELD, Stage.UNSEEN):
        where = {location for location, _ in keys_in(stages, Stage.AWAY)}
        hint = f"; {policy.go_on_without(where)}" if where else ""
        return Wait(f"waits for the rest: {_unfinished_summary(stages, progress)}{hint}")
    done = keys_in(stages, Stage.DONE)
    if _total(stages) and not done:
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


def _total(stages: Stages) -> int:
    return sum(len(keys) for keys in stages.values())


def _of_first_location(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    return tuple(key for key in keys if key[0] == keys[0][0])


def _some(keys: Sequence[Key]) -> str:
    """The first few by name."""
    names = [f"{name} ({location})" for location, name in keys[:3]]
    return ", ".join(names) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
