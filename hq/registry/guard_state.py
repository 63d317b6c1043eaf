"""What the guard of this replica does, as callers are told."""

from __future__ import annotations

from hq.liveness.guard import Order
from hq.replica import Replica
from hqpb.v1 import service_pb2


def guard_state(replica: Replica) -> service_pb2.GuardState:
    """What the guard of this replica does."""
    watchman, now, wall_ms = replica.watchman, replica.clock.now(), replica.clock.wall_ms()
    verdict, census = watchman.sweep.verdict, watchman.tracker.census(replica.cache.nodes())
    state = service_pb2.GuardState(
        holding=verdict.hold,
        expected=census.expected,
        silent=census.silent,
        nodes=census.nodes,
        max_silent_share=watchman.guard.rules.max_silent_share,
        verdict=verdict.words,
        waiting=watchman.sweep.waiting,
    )
    for name, moment in (("since", verdict.since), ("until", verdict.until)):
        if moment is not None:
            getattr(state, name).FromMilliseconds(round(wall_ms + (moment - now) * 1000))
    word = watchman.orders.guard()
    if word is not None:
        state.override.by, state.override.reason = word.by, word.reason
        state.override.kind = (
            service_pb2.GUARD_OVERRIDE_KIND_RELEASE
            if word.order is Order.RELEASE
            else service_pb2.GUARD_OVERRIDE_KIND_FORCE
        )
        state.override.since.FromMilliseconds(word.since_ms)
        state.override.until.FromMilliseconds(word.until_ms)
    return state


def guard_in_short(state: service_pb2.GuardState) -> service_pb2.GuardState:
    """What concerns the readers of one instance: whether flips are held back, and why; not who ordered what."""
    short = service_pb2.GuardState(holding=state.holding, verdict=state.verdict if state.holding else "")
    for name in ("since", "until"):
        if state.HasField(name):
            getattr(short, name).CopyFrom(getattr(state, name))
    return short
