"""Needs of other snapshots that share a revision with one that is lowered. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from nanny.automaton.service import SnapshotState
from nanny.automaton.states import LIVE, Current, Target
from nanny.rollout.views import Key
from nanny.snapshots.wanted import CREATED, INSTALLED, READY, rank_of
from nannypb.v1 import service_pb2
from nannypb.v1.records_pb2 import InstanceTargetRecord

Needs = Mapping[Key, int]
"""By instance, the lowest target in HQ that the shared revision must keep; absent: none."""

_SERVES: Final = frozenset({Current.ACTIVE, Current.ACTIVATING, Current.DEACTIVATE_PENDING})
_BY_OWN: Final = {
    service_pb2.TARGET_ACTIVE: READY,
    service_pb2.TARGET_PREPARED: INSTALLED,
    service_pb2.TARGET_CREATED: CREATED,
}


def need_of(state: SnapshotState) -> int | None:
    """The target in HQ that a snapshot needs of its revision, wherever it names an instance; None: none."""
    if state.current in _SERVES or (state.current in LIVE and state.target is Target.ACTIVE):
        return READY
    if state.target in (Target.ACTIVE, Target.PREPARED) or state.current in LIVE:
        return INSTALLED  # one that is switched off is PREPARED for a moment, and stays so if that is ordered meanwhile
    return CREATED if state.target is Target.CREATED and state.fill else None


def needs_of(
    others: Iterable[tuple[str, SnapshotState, Collection[Key]]], own_targets: Mapping[Key, InstanceTargetRecord]
) -> Needs:
    """Return the needs of all other snapshots together.

    Args:
        others: the other snapshots with the same revision: their states, and the instances that they name.
        own_targets: an instance's own target replaces the need of the snapshot that it is set for, and no other need.
    """
    needs: dict[Key, int] = {}
    for snapshot, state, named in others:
        need = need_of(state)
        for key in named:
            own = own_targets.get(key)
            here = _BY_OWN[own.target] if own is not None and own.snapshot_id == snapshot else need
            if here is not None and rank_of(here) > rank_of(needs.get(key)):
                needs[key] = here
    return needs


def kept_target(lowest: int | None, need: int | None) -> int | None:
    """The target to lower to: no less than others need. None: the revision must not be there."""
    return need if rank_of(need) > rank_of(lowest) else lowest
