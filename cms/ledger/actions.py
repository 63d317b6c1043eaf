"""The actions that tasks may ask for, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR
REBOOT: Final = "reboot"


@dataclass(frozen=True, slots=True)
class TaskAction:
    """A kind of work.

    Attributes:
        since: the first minor version of the wire API that has it; None: that API does not have it.
        disrupts: it takes instances down; False: it is allowed at once and holds nothing.
        proves_itself: it ends only after its instances have reported: nothing has to be heard again.
        away_s: a host is gone for at most this long when all goes well; for reboots a setting goes before it.
        bound_s: work of this kind is overdue after this time; an operator may extend it.
    """

    name: str
    since: int | None
    disrupts: bool
    bound_s: float
    proves_itself: bool = False
    away_s: float = float("inf")


ACTIONS: Final = {
    action.name: action
    for action in (
        TaskAction("prepare", 1, disrupts=False, bound_s=_DAY),
        TaskAction("deactivate", 1, disrupts=True, bound_s=_DAY),
        TaskAction("power-off", 0, disrupts=True, bound_s=_DAY),
        TaskAction(REBOOT, 0, disrupts=True, bound_s=_HOUR, away_s=600),
        TaskAction("profile", 0, disrupts=True, bound_s=6 * _HOUR),
        TaskAction("redeploy", 0, disrupts=True, bound_s=6 * _HOUR),
        TaskAction("repair-link", 0, disrupts=True, bound_s=7 * _DAY),
        TaskAction("change-disk", 0, disrupts=True, bound_s=7 * _DAY),
        TaskAction("change-memory", 0, disrupts=True, bound_s=7 * _DAY),
        TaskAction("repair-bmc", 0, disrupts=True, bound_s=7 * _DAY),
        TaskAction("repair-overheat", 0, disrupts=True, bound_s=7 * _DAY),
        TaskAction("repair-capping", 0, disrupts=True, bound_s=7 * _DAY),
        TaskAction("temporary-unreachable", 4, disrupts=True, bound_s=_HOUR, away_s=900),
        # HQ shows the new revision as ready only after a report that was sent after the switch.
        TaskAction("roll-out", None, disrupts=True, bound_s=_HOUR, proves_itself=True),
    )
}


def actions_since(minor: int) -> frozenset[str]:
    """The actions of wire API v1.`minor`."""
    return frozenset(action.name for action in ACTIONS.values() if action.since is not None and action.since <= minor)
