"""The next step of a roll-out, from what is observed and what was recorded. A pure function; see `next_step`."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from nanny.rollout.policy import Policy
from nanny.rollout.views import SWITCHED, Key, Progress, Stage, Stages, at

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
class Wait:
    """Nothing to do yet; look again later. `why` is for people."""

    why: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Every instance is as it should be, except those `left`, which `why` explains."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The roll-out has failed; what is switched stays as it is."""

    why: str


Step = Begin | Switch | GiveBack | Wait | Finished | Failed


def next_step(policy: Policy, stages: Stages, progress: Progress, stalled_s: float) -> Step:
    """Decide what comes next.

    Args:
        stalled_s: how long nothing has been completed since the batch began, without pauses.
    """
    stages = _with_lost(stages, progress)
    if excess := _excess(policy, stages, progress):
        return Failed(f"{excess.who} restarted, or did not stay ready, after they were done ({excess.count})")
    if progress.batch:
        return _in_batch(policy, stages, progress, stalled_s)
    late = sorted(at(stages, *_NOT_YET) - progress.failed)
    if late:  # switched in an earlier batch or by somebody else
        return _late(policy, stages, progress, stalled_s, late)
    return _next_batch(policy, stages, progress, stalled_s)


_NOT_YET = (Stage.UNDER_WAY, Stage.UNHEARD, Stage.SETTLING)
NOT_SWITCHED = frozenset(Stage) - SWITCHED - {Stage.AWAY}


def _with_lost(stages: Stages, progress: Progress) -> Stages:
    """The same, but what was waited for in vain, without a word from its agent, is lost: it takes no room."""
    unheard = stages.get(Stage.UNHEARD, frozenset())
    lost = unheard & progress.failed
    return {**stages, Stage.UNHEARD: unheard - lost, Stage.LOST: at(stages, Stage.LOST) | lost} if lost else stages


def failures(stages: Stages, failed: Set[Key]) -> set[Key]:
    """Those of `failed` that say something about the snapshot: a node that died before it saw the switch does not."""
    return set(failed) - at(stages, Stage.UNHEARD, Stage.LOST)


@dataclass(frozen=True, slots=True)
class _Excess:
    """More failures than the policy allows: which, and how many of how many."""

    who: str
    count: str


def _excess(policy: Policy, stages: Stages, progress: Progress, late: Sequence[Key] = ()) -> _Excess | None:
    """Too many failures, with these that are late; None: they are within the policy.

    The first batch may have none. Those that could not be prepared were in no batch.
    """
    failed = failures(stages, progress.failed | set(late))
    allowed = policy.max_failures.of(_total(stages))
    if switched := failed - at(stages, Stage.UNPREPARED):
        allowed = policy.failures(_total(stages), progress.batches_done)
        failed = failed if allowed else switched
    if len(failed) <= allowed:
        return None
    return _Excess(_some(sorted(failed)), f"{len(failed)} failed, {allowed} allowed")


def _in_batch(policy: Policy, stages: Stages, progress: Progress, stalled_s: float) -> Step:
    batch = set(progress.batch)
    if missing := batch.intersection(at(stages, *NOT_SWITCHED)):
        return Switch(tuple(sorted(missing)))
    if away := sorted(batch.intersection(at(stages, Stage.AWAY))):
        # Switched or not, it may be down: another batch could take one too many.
        where = sorted({location for location, _ in away})
        waits = f"waits for location {', '.join(where)}, which does not answer (it has {_some(away)})"
        return Wait(f"{waits}; {policy.go_on_without(where)}")
    late = sorted(batch.intersection(at(stages, *_NOT_YET)) - progress.failed)
    return _late(policy, stages, progress, stalled_s, late) if late else GiveBack()


def _late(
    policy: Policy, stages: Stages, progress: Progress, stalled_s: float, late: Sequence[Key], to_be: str = "ready"
) -> Step:
    if stalled_s < policy.progress_deadline_s:
        return Wait(f"waits for {_some(late)} to become {to_be}")
    if excess := _excess(policy, stages, progress, late):
        first = "in the first batch " if not progress.batches_done and to_be == "ready" else ""
        deadline = f"{first}within {policy.progress_deadline_s:g} s"
        return Failed(f"{excess.who} did not become {to_be} {deadline} ({excess.count})")
    return GiveBack(tuple(late))


def _next_batch(policy: Policy, stages: Stages, progress: Progress, stalled_s: float) -> Step:
    if down := _in_order(policy, stages, Stage.DOWN):
        return Begin(down[:LARGEST_BATCH], ())
    # These are lost already, or nearly: an earlier roll-out took them within its limits.
    if leaving := _in_order(policy, stages, Stage.LEAVING):
        return Begin(leaving, leaving)
    room = _room(policy, stages, progress)
    costly = _of_first_location(_in_order(policy, stages, Stage.UP) or _in_order(policy, stages, Stage.SILENT))
    if costly and room > 0:
        batch = costly[: min(room, LARGEST_BATCH)]
        return Begin(batch, batch)
    if costly:
        failed = f" ({_some(sorted(progress.failed))})" if progress.failed else ""
        used = f"because max_unavailable is used up by instances that are not ready{failed} or still changing"
        why = f"{used}; see `nanny instances {policy.service}`"
        if stalled_s < policy.progress_deadline_s:
            return Wait(f"waits, {why}")
        return Failed(f"stopped: no instance could be switched for {policy.progress_deadline_s:g} s, {why}")
    if unprepared := sorted(at(stages, Stage.UNPREPARED) - progress.failed):
        return _late(policy, stages, progress, stalled_s, unprepared, "installed")
    return _nothing_left(policy, stages, progress, stalled_s)


def _room(policy: Policy, stages: Stages, progress: Progress) -> int:
    """How many more may be taken away. Instances that failed by themselves do not count; those that we broke do."""
    taken = at(stages, Stage.UNDER_WAY, Stage.UNHEARD, Stage.UNSEEN)
    serving = taken | at(stages, Stage.DONE, Stage.SETTLING, Stage.UP)
    room = policy.unavailable(max(len(serving), 1)) - len(taken)
    return min(room, progress.at_most) if progress.at_most else room


def _nothing_left(policy: Policy, stages: Stages, progress: Progress, stalled_s: float) -> Step:
    if at(stages, Stage.AWAY, Stage.HELD, Stage.UNSEEN):
        where = {location for location, _ in at(stages, Stage.AWAY)}
        hint = f"; {policy.go_on_without(where)}" if where else ""
        return Wait(f"waits for the rest: {_left(stages, progress)}{hint}")
    if _total(stages) and not at(stages, Stage.DONE):
        if stalled_s < policy.progress_deadline_s:
            return Wait("waits for the first agent to report")
        return Failed(f"no instance became ready within {policy.progress_deadline_s:g} s: {_left(stages, progress)}")
    return Finished(_left(stages, progress))


def _left(stages: Stages, progress: Progress) -> str:
    away = at(stages, Stage.AWAY)
    where = ", ".join(sorted({location for location, _ in away}))
    failed, done, unprepared = failures(stages, progress.failed), at(stages, Stage.DONE), at(stages, Stage.UNPREPARED)
    told = {
        f"in locations that do not answer ({where})": away,
        "held by others": at(stages, Stage.HELD),
        "whose agents have not seen the newest spec": at(stages, Stage.UNSEEN),
        "whose agents have not reported": at(stages, Stage.LOST),
        "not installed, so that they were not switched": unprepared,
        "not ready": failed - done - unprepared,
        "that failed and are ready now": failed & done,
    }
    return ", ".join(f"{len(keys)} {what}" for what, keys in told.items() if keys)


def _total(stages: Stages) -> int:
    return sum(len(keys) for keys in stages.values())


def _in_order(policy: Policy, stages: Stages, stage: Stage) -> tuple[Key, ...]:
    """In the order in which they are switched."""
    return tuple(sorted(stages.get(stage, ()), key=lambda key: (policy.order(key[0]), key)))


def _of_first_location(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    return tuple(key for key in keys if key[0] == keys[0][0])


def _some(keys: Sequence[Key]) -> str:
    """The first few by name."""
    names = [f"{name} ({location})" for location, name in keys[:3]]
    return ", ".join(names) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
