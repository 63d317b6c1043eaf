"""Limits as people write them: `2h:5` is five within two hours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from wallepb.v1.host_pb2 import (
    OPERATION_KIND_CHANGE_DISK,
    OPERATION_KIND_CHANGE_MEMORY,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_PROFILE,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OPERATION_KIND_REPAIR_LINK,
    OperationKind,
)
from wallepb.v1.project_pb2 import Limit, PeriodCount, Project

DNS_FIXES: Final = "dns-fixes"
DEAD: Final = "dead"
MAX_DEAD_HOSTS: Final = "max_dead_hosts"
GLOBAL_DNS: Final = "max_dns_fixes"
MAX_COUNT: Final = 1000  # marks are kept in the fuse's record, which must stay small
MAX_PERIOD_S: Final = 90 * 86400

# Counters over all projects, by kind of operation; other kinds have no global limit.
GLOBAL_COUNTERS: Final[Mapping[OperationKind, str]] = {
    OPERATION_KIND_REBOOT: "max_rebooted_hosts",
    OPERATION_KIND_PROFILE: "max_profiled_hosts",
    OPERATION_KIND_REDEPLOY: "max_redeployed_hosts",
    OPERATION_KIND_CHANGE_MEMORY: "max_memory_changes",
    OPERATION_KIND_CHANGE_DISK: "max_disk_changes",
    OPERATION_KIND_REPAIR_LINK: "max_link_repairs",
    OPERATION_KIND_DNS_FIX: GLOBAL_DNS,
}
GLOBAL_NAMES: Final = (*GLOBAL_COUNTERS.values(), MAX_DEAD_HOSTS)

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PERIOD: Final = re.compile(r"([0-9]{1,9})([smhd])")

Limits = Mapping[str, Limit]  # by counter


class BadLimit(ValueError):
    """A limit, period or counter is not valid; the message says which and what is expected."""


def parse_period(text: str) -> int:
    """Seconds of `30s`, `5m`, `2h` or `1d`. Raises BadLimit."""
    found = _PERIOD.fullmatch(text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < seconds <= MAX_PERIOD_S:
        raise BadLimit(f"{text!r} is not a valid period: write a number and s, m, h or d, at most 90d (for example 2h)")
    return seconds


def parse_pair(text: str) -> PeriodCount:
    """`1d:10`. A count of 0 admits nothing: the first use trips. Raises BadLimit."""
    period, colon, count = text.partition(":")
    if not colon or not count.isascii() or not count.isdigit() or int(count) > MAX_COUNT:
        raise BadLimit(f"{text!r} is not a valid limit: write PERIOD:COUNT with a count of 0 to {MAX_COUNT} (1d:10)")
    return PeriodCount(period_s=parse_period(period), count=int(count))


def parse_limit(texts: Iterable[str]) -> Limit:
    """All pairs of one counter. Raises BadLimit: none, or the same period twice."""
    limit = Limit(pair=[parse_pair(text) for text in texts])
    check_limit(limit)
    return limit


def check_limit(limit: Limit) -> None:
    """Raises BadLimit: a limit from a request is invalid."""
    periods = [pair.period_s for pair in limit.pair]
    if not periods:
        raise BadLimit("a limit without a period: write at least one PERIOD:COUNT (1d:10)")
    if len(set(periods)) < len(periods):
        raise BadLimit(f"a limit with the same period twice: {format_limit(limit)}")
    for pair in limit.pair:
        if not 0 < pair.period_s <= MAX_PERIOD_S or pair.count > MAX_COUNT:
            raise BadLimit(f"{format_limit(limit)}: periods are 1s to 90d, counts 0 to {MAX_COUNT}")


def format_period(seconds: int) -> str:
    """The period in the largest unit that expresses it exactly."""
    unit = next(u for u in "dhms" if seconds % _UNITS[u] == 0)
    return f"{seconds // _UNITS[unit]}{unit}"


def format_limit(limit: Limit) -> str:
    """`2h:5, 1d:10`."""
    return ", ".join(f"{format_period(pair.period_s)}:{pair.count}" for pair in limit.pair)


DEFAULT: Final = parse_limit(["1d:10"])


def limit_of(limits: Limits, counter: str) -> Limit:
    """The limit of a counter; 1d:10 if none was set."""
    return limits.get(counter, DEFAULT)


def project_counter(kind: OperationKind, check: str) -> str:
    """An operation's counter in its project: DNS fixes share one, repairs are counted by the check that asked."""
    return DNS_FIXES if kind == OPERATION_KIND_DNS_FIX else check


def check_limits(project: Project) -> None:
    """Raises BadLimit, naming the counter."""
    limits = {f"limits.{counter}": limit for counter, limit in project.limits.items()}
    if project.HasField("max_repairs_per_host"):
        limits["max_repairs_per_host"] = project.max_repairs_per_host
    for field, limit in limits.items():
        try:
            check_limit(limit)
        except BadLimit as error:
            raise BadLimit(f"{field}: {error}") from error
