"""What a roll-out does next, from what is seen and what was recorded. A pure function; see `next_step`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nanny.rollout.policy import Policy
from nanny.rollout.views import SWITCHED, Key, Progress, Stage, View

LARGEST_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Begin:
    """A new batch: ask for leave, then switch these. `costs`: those among them that may be serving."""

    batch: tuple[Key, ...]
    costs: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """Instances of the batch under way that are not switched yet."""

    instances: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The batch is over; `failed` of it stayed not ready and are tolerated."""

    failed: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do but to look again. `why` is for people."""

    why: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Every instance is as it should be, but for those `left`, of which `why` says what is known."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The roll-out has failed; what is switched stays as it is."""

    why: str


Step = Begin | Switch | GiveBack | Wait | Finished | Failed


def next_step(policy: Policy, views: Sequence[View], progress: Progress, stalled_s: float) -> Step:
    """Decide what comes next.

    Args:
        views: one for each instance that the snapshot names.
        stalled_s: for how long nothing has become done, since the batch began; pauses do not count.
    """
    if progress.batch:
        return _in_batch(policy, views, progress, stalled_s)
    late = [view.key for view in views if view.stage in _NOT_YET and view.key not in progress.failed]
    if late:  # switched in an earlier batch, or by somebody else
        return _late(policy, views, progress, stalled_s, late)
    return _next_batch(policy, views, progress, stalled_s)


_NOT_YET = (Stage.UNDER_WAY, Stage.SETTLING)


def _in_batch(policy: Policy, views: Sequence[View], progress: Progress, stalled_s: float) -> Step:
    stages = {view.key: view.stage for view in views}
    missing = tuple(key for key in progress.batch if stages.get(key, Stage.AWAY) not in SWITCHED | {Stage.AWAY})
    if missing:
        return Switch(missing)
    if away := [key for key in progress.batch if stages.get(key) is Stage.AWAY]:
        # Switched or not, it may be down: a further batch beside it would take one too many.
        return Wait(f"waits for the location of {_some(away)} to answer")
    late = [key for key in progress.batch if stages.get(key) in _NOT_YET]
    return _late(policy, views, progress, stalled_s, late) if late else GiveBack()


def _late(policy: Policy, views: Sequence[View], progress: Progress, stalled_s: float, late: Sequence[Key]) -> Step:
    if stalled_s < policy.progress_deadline_s:
        return Wait(f"waits for {_some(late)} to become ready")
    failed = progress.failed | set(late)
    allowed = policy.failures(len(views), progress.batches_done)
    if len(failed) > allowed:
        first = "in the first batch " if not progress.batches_done else ""
        return Failed(
            f"{_some(sorted(failed))} did not become ready {first}within {policy.progress_deadline_s:g} s "
            f"({len(failed)} failed, {allowed} allowed)"
        )
    return GiveBack(tuple(late))


def _next_batch(policy: Policy, views: Sequence[View], progress: Progress, stalled_s: float) -> Step:
    by_stage = _by_stage(policy, views)
    if down := by_stage[Stage.DOWN]:
        return Begin(down[:LARGEST_BATCH], ())
    if leaving := by_stage[Stage.LEAVING]:  # lost already, or as good as: an earlier roll-out took no more than it may
        return Begin(leaving, leaving)
    room = _room(policy, views, progress)
    costly = _of_first_location(by_stage[Stage.UP]) or _of_first_location(by_stage[Stage.SILENT])
    if costly and room > 0:
        batch = costly[: min(room, LARGEST_BATCH)]
        return Begin(batch, batch)
    if costly:
        names = _some(sorted(progress.failed)) or "others"
        why = f"no further instance may be unavailable: {names} not ready, or changing"
        return Failed(why) if stalled_s >= policy.progress_deadline_s else Wait(why)
    return _nothing_left(policy, views, progress, stalled_s)


def _room(policy: Policy, views: Sequence[View], progress: Progress) -> int:
    """How many more may be taken away. What has failed by itself counts neither way; what we broke does."""
    counts = Counter(view.stage for view in views)
    serving = sum(counts[stage] for stage in (Stage.DONE, Stage.SETTLING, Stage.UNDER_WAY, Stage.UNSEEN, Stage.UP))
    room = policy.unavailable(max(serving, 1)) - counts[Stage.UNDER_WAY] - counts[Stage.UNSEEN]
    return min(room, progress.at_most) if progress.at_most else room


def _nothing_left(policy: Policy, views: Sequence[View], progress: Progress, stalled_s: float) -> Step:
    counts = Counter(view.stage for view in views)
    if counts[Stage.AWAY] or counts[Stage.HELD] or counts[Stage.UNSEEN]:
        return Wait(_left(counts, progress))
    if views and not counts[Stage.DONE]:
        if stalled_s < policy.progress_deadline_s:
            return Wait("waits for the first agent to report")
        return Failed(f"no instance became ready within {policy.progress_deadline_s:g} s: {_left(counts, progress)}")
    return Finished(_left(counts, progress))


def _left(counts: Mapping[Stage, int], progress: Progress) -> str:
    told = {
        "in locations that do not answer": counts.get(Stage.AWAY, 0),
        "held by others": counts.get(Stage.HELD, 0),
        "whose agents have not seen the newest spec": counts.get(Stage.UNSEEN, 0),
        "whose agents have not reported": counts.get(Stage.LOST, 0),
        "not ready": len(progress.failed),
    }
    return ", ".join(f"{count} {what}" for what, count in told.items() if count)


def _by_stage(policy: Policy, views: Sequence[View]) -> dict[Stage, tuple[Key, ...]]:
    """In the order in which they are switched."""
    ordered = sorted(views, key=lambda view: (policy.order(view.location), view.key))
    return {stage: tuple(view.key for view in ordered if view.stage is stage) for stage in Stage}


def _of_first_location(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    return tuple(key for key in keys if key[0] == keys[0][0])


def _some(keys: Sequence[Key]) -> str:
    """The first few by name."""
    names = [f"{name} ({location})" for location, name in keys[:3]]
    return ", ".join(names) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
