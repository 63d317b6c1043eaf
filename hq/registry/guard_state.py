"""The state of this replica's guard: in full, and the part that concerns the readers of one instance."""

from __future__ import annotations

from hq.liveness.guard import GuardCommand
from hq.liveness.liveness import Liveness
from hq.memory.cache import Cache
from hqpb.v1 import service_pb2
from serving.clock import Clock


def guard_state(liveness: Liveness, cache: Cache, clock: Clock) -> service_pb2.GuardState:
    """The state of this replica's guard."""
    now, wall_ms = clock.now(), clock.wall_ms()
    verdict, census = liveness.sweep.verdict, liveness.tracker.census(cache.nodes())
    state = service_pb2.GuardState(
        holding=verdict.hold,
        expected=census.expected,
        silent=census.silent,
        nodes=census.nodes,
        max_silent_share=liveness.guard.rules.max_silent_share,
        verdict=verdict.words,
        waiting=liveness.sweep.waiting,
    )
    for name, moment in (("since", verdict.since), ("until", verdict.until)):
        if moment is not None:
            getattr(state, name).FromMilliseconds(round(wall_ms + (moment - now) * 1000))
    word = liveness.orders.guard()
    if word is not None:
        state.override.by, state.override.reason = word.by, word.reason
        state.override.kind = (
            service_pb2.GUARD_OVERRIDE_KIND_RELEASE
            if word.order is GuardCommand.RELEASE
            else service_pb2.GUARD_OVERRIDE_KIND_FORCE
        )
        state.override.since.FromMilliseconds(word.since_ms)
        state.override.until.FromMilliseconds(word.until_ms)
    return state


def guard_in_short(state: service_pb2.GuardState) -> service_pb2.GuardState:
    """Return the part for readers of one instance: whether expiries are held back, and why; no orders."""
    short = service_pb2.GuardState(holding=state.holding, verdict=state.verdict if state.holding else "")
    for name in ("since", "until"):
        if state.HasField(name):
            getattr(short, name).CopyFrom(getattr(state, name))
    return short
