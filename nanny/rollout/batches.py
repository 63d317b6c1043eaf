"""The next batch of a roll-out, and how much room `max_unavailable` leaves for it. Pure."""

from __future__ import annotations

from collections.abc import Set

from nanny.rollout.moves import Begin
from nanny.rollout.policy import Policy
from nanny.rollout.views import NOT_SWITCHED, Key, RolloutProgress, Stage, Stages, keys_in

LARGEST_BATCH = 1_000


def choose_batch(
    policy: Policy, stages: Stages, progress: RolloutProgress, among: Set[Key] | None = None
) -> Begin | None:
    """The next batch; if it is the first, without ailing instances, unless there are no others."""
    keys = among if among is not None else keys_in(stages, *NOT_SWITCHED)
    well = None if progress.proven else _candidates(policy, stages, progress, keys - progress.ailing)
    return well or _candidates(policy, stages, progress, keys)


def _candidates(policy: Policy, stages: Stages, progress: RolloutProgress, among: Set[Key]) -> Begin | None:
    """The next batch among these; None: there is none, or no room for it."""

    later = {key: place for place, key in enumerate(progress.put_off)}

    def in_order(stage: Stage) -> tuple[Key, ...]:
        """Instances in the order in which they are switched."""
        keys = stages.get(stage, frozenset()) & among
        return tuple(sorted(keys, key=lambda key: (later.get(key, -1), policy.order(key[0]), key)))

    if free := in_order(Stage.DOWN) + in_order(Stage.STALE):
        return Begin(free[:LARGEST_BATCH], ())
    # These are lost already, or nearly: an earlier roll-out took them within its limits.
    if leaving := in_order(Stage.LEAVING):
        return Begin(leaving, leaving)
    room = batch_room(policy, stages, progress)
    up, silent = in_order(Stage.UP), in_order(Stage.SILENT)
    ahead = [tuple(key for key in keys if key not in later) for keys in (up, silent)]
    costly = _of_first_location(ahead[0] or ahead[1] or up or silent)
    if not costly or room <= 0:
        return None
    batch = costly[: min(room, LARGEST_BATCH)]
    return Begin(batch, batch)


def batch_room(policy: Policy, stages: Stages, progress: RolloutProgress) -> int:
    """How many more may be taken away. Instances that failed, fell or were ailing take no room."""
    tolerated = progress.failed | progress.fell | progress.ailing
    taken = keys_in(stages, Stage.UNDER_WAY, Stage.UNHEARD, Stage.UNTOUCHED, Stage.UNSEEN) - tolerated
    serving = taken | keys_in(stages, Stage.DONE, Stage.SETTLING, Stage.UP, Stage.STALE)
    room = policy.unavailable(max(len(serving), 1)) - len(taken)
    return min(room, progress.at_most) if progress.at_most else room


def _of_first_location(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    return tuple(key for key in keys if key[0] == keys[0][0])
