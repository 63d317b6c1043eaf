"""The state of a whole service: a table over the states of its snapshots."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from nanny.automaton.service import ManagedService, SnapshotState
from nanny.automaton.states import ACTIONS, Current, Target


class ServiceState(enum.StrEnum):
    """The state of a service that people see first. The first one that applies to any snapshot is shown."""

    UPDATING = "Updating"
    BROKEN = "Broken"
    PREPARING = "Preparing"
    ONLINE = "Online"
    OFFLINE = "Offline"


SHOWS: Final[Mapping[Current, ServiceState]] = {
    Current.GENERATING: ServiceState.PREPARING,
    Current.PARTIALLY_CREATED: ServiceState.OFFLINE,
    Current.CREATED: ServiceState.OFFLINE,
    Current.PREPARING: ServiceState.PREPARING,
    Current.PARTIALLY_PREPARED: ServiceState.OFFLINE,
    Current.PREPARED: ServiceState.OFFLINE,
    Current.ACTIVATING: ServiceState.UPDATING,
    Current.ACTIVE: ServiceState.ONLINE,
    Current.BROKEN: ServiceState.BROKEN,
    Current.DEACTIVATING: ServiceState.UPDATING,
    Current.REMOVING: ServiceState.PREPARING,
    Current.DESTROYING: ServiceState.PREPARING,
    Current.DEACTIVATE_PENDING: ServiceState.BROKEN,
}
"""Work towards ACTIVE shows as Updating, whatever the work is; PREPARED with targets of single instances as Online."""

MEANINGS: Final[Mapping[ServiceState, str]] = {
    ServiceState.UPDATING: "a roll-out or a switch-off is under way",
    ServiceState.BROKEN: "a roll-out did not reach its end; what ran before may still serve",
    ServiceState.PREPARING: "snapshots are made, prepared or removed; what serves is not touched",
    ServiceState.ONLINE: "one snapshot is ACTIVE, or single instances have targets of their own; nothing is under way",
    ServiceState.OFFLINE: "nothing runs",
}


def service_state(service: ManagedService) -> ServiceState:
    """The state of a service. Whether it is paused is shown separately."""
    shown = {_shows(state) for state in service.tuples.values()}
    return next((state for state in ServiceState if state in shown), ServiceState.OFFLINE)


def _shows(state: SnapshotState) -> ServiceState:
    if state.current in ACTIONS and state.target is Target.ACTIVE:
        return ServiceState.UPDATING
    shows = SHOWS[state.current]
    return (
        ServiceState.ONLINE if state.overrides and shows is ServiceState.OFFLINE else shows
    )  # as Offline it could not be stopped
