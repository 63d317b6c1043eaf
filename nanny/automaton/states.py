"""The states that a snapshot may have, and the events that change it. The names are those that users see."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class Current(enum.StrEnum):
    """The state of a snapshot on the nodes; a snapshot without any has no tuple."""

    GENERATING = "GENERATING"
    PARTIALLY_CREATED = "PARTIALLY_CREATED"
    CREATED = "CREATED"
    PREPARING = "PREPARING"
    PARTIALLY_PREPARED = "PARTIALLY_PREPARED"
    PREPARED = "PREPARED"
    ACTIVATING = "ACTIVATING"
    ACTIVE = "ACTIVE"
    BROKEN = "BROKEN"
    DEACTIVATING = "DEACTIVATING"
    REMOVING = "REMOVING"
    DESTROYING = "DESTROYING"
    DEACTIVATE_PENDING = "DEACTIVATE_PENDING"
    DESTROYED = "DESTROYED"
    ACTIVATION_MUST_BE_CANCELLED = "ACTIVATION_MUST_BE_CANCELLED"


class Target(enum.StrEnum):
    """The state that people ordered for a snapshot."""

    DESTROYED = "DESTROYED"
    CREATED = "CREATED"
    PREPARED = "PREPARED"
    ACTIVE = "ACTIVE"


class Action(enum.StrEnum):
    """The work that brings a snapshot to another state."""

    GENERATE = "generate"
    PREPARE = "prepare"
    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    REMOVE = "remove"
    DESTROY = "destroy"


class SnapshotEvent(enum.StrEnum):
    """The events of one snapshot: the columns of the table."""

    TO_DESTROYED = "towards DESTROYED"
    TO_CREATED = "towards CREATED"
    TO_PREPARED = "towards PREPARED"
    TO_ACTIVE = "towards ACTIVE"
    AGAIN = "requested again"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REPLACED = "ACTIVE is requested for another one"
    RELEASED = "another one became ACTIVE"
    STOPPED = "stop"
    PROMOTED = "a step is promoted"
    ABORTED = "aborted by people"


ACTIONS: Final[Mapping[Current, Action]] = {
    Current.GENERATING: Action.GENERATE,
    Current.PREPARING: Action.PREPARE,
    Current.ACTIVATING: Action.ACTIVATE,
    Current.DEACTIVATING: Action.DEACTIVATE,
    Current.REMOVING: Action.REMOVE,
    Current.DESTROYING: Action.DESTROY,
}
"""In these states an action runs (or waits while the service is paused); in all others nothing does."""

TOWARDS: Final[Mapping[Target, SnapshotEvent]] = {
    Target.DESTROYED: SnapshotEvent.TO_DESTROYED,
    Target.CREATED: SnapshotEvent.TO_CREATED,
    Target.PREPARED: SnapshotEvent.TO_PREPARED,
    Target.ACTIVE: SnapshotEvent.TO_ACTIVE,
}

LIVE: Final = frozenset(
    {Current.ACTIVATING, Current.ACTIVE, Current.BROKEN, Current.DEACTIVATING, Current.DEACTIVATE_PENDING}
)
"""Instances of these snapshots may be running."""

NEVER_STORED: Final = frozenset({Current.DESTROYED, Current.ACTIVATION_MUST_BE_CANCELLED})
"""States that begin and end within one step."""

MEANINGS: Final[Mapping[Current, str]] = {
    Current.GENERATING: "its revisions are made and checked, and with `--fill` written to HQ",
    Current.PARTIALLY_CREATED: "it may be in HQ in part: making or destroying it was interrupted",
    Current.CREATED: "it is made; the nodes hold nothing of it",
    Current.PREPARING: "its revisions are in HQ as INSTALLED; agents fetch what they need",
    Current.PARTIALLY_PREPARED: "some nodes may hold it: preparing or removing it was interrupted",
    Current.PREPARED: "it is installed wherever there is an agent; nothing of it runs",
    Current.ACTIVATING: "a roll-out makes it the running one, batch by batch; one snapshot at most",
    Current.ACTIVE: "it runs; one snapshot at most",
    Current.BROKEN: "it may run on some instances: a roll-out was interrupted or failed",
    Current.DEACTIVATING: "its instances are switched off",
    Current.REMOVING: "agents remove what they hold of it",
    Current.DESTROYING: "its revisions are removed from HQ",
    Current.DEACTIVATE_PENDING: "another snapshot has the target ACTIVE; nothing is done until that one is ACTIVE",
    Current.DESTROYED: "internal: nothing of it is left, and its entry is removed",
    Current.ACTIVATION_MUST_BE_CANCELLED: "internal: its roll-out is cancelled for another one",
}
