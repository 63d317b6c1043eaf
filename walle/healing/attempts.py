"""How many repairs of one host may begin, over all its checks: limits count hosts, so one host costs them once. Pure.

A repair counts when its work begins. Credits do not lift this limit, and switching on does not set it back; a person
who takes the host back does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from walle.fuses.limits import format_period, parse_limit
from wallepb.v1.host_pb2 import Host, RepairAttempt
from wallepb.v1.project_pb2 import Limit, Project

MAX_REPAIRS: Final = parse_limit(["1d:3"])
_MOST: Final = 100  # kept


def repairs_limit(project: Project) -> Limit:
    return project.max_repairs_per_host if project.max_repairs_per_host.pair else MAX_REPAIRS


def too_many_repairs(host: Host, project: Project, now_ms: int) -> str:
    """Why no further repair may begin; empty: it may."""
    for pair in repairs_limit(project).pair:
        count = sum(one.at_ms > now_ms - pair.period_s * 1000 for one in host.attempt)
        if count >= pair.count:
            return f"{count} repairs began within {format_period(pair.period_s)}, and it fails again"
    return ""


def recent_attempts(host: Host, project: Project, now_ms: int) -> list[RepairAttempt]:
    """Attempts that still count."""
    longest_ms = 1000 * max(pair.period_s for pair in repairs_limit(project).pair)
    return [one for one in host.attempt if one.at_ms > now_ms - longest_ms][-_MOST:]


def set_attempts(host: Host, attempts: Iterable[RepairAttempt]) -> None:
    kept = list(attempts)
    del host.attempt[:]
    host.attempt.extend(kept)
