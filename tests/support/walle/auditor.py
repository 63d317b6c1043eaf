"""Looks at a simulated fleet from outside, and counts for itself: limits, credits and budgets are never exceeded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tests.support.walle.book import DictBook
from walle.fuses.fuse import Automation
from walle.fuses.limits import DEAD, DNS_FIXES, GLOBAL_COUNTERS, MAX_DEAD_HOSTS, limit_of
from walle.healing.lanes import swap_lanes
from walle.work.book import World
from wallepb.v1.host_pb2 import (
    HOST_STATUS_DEAD,
    OPERATION_KIND_DNS_FIX,
    STAGE_REQUESTED,
    STAGE_RUNNING,
    STAGE_VERIFYING,
    Host,
)

STUCK_MS = 12 * 3_600_000


class Auditor:
    """Counts what began, by what was seen of hosts only; it does not read fuses.

    Attributes:
        actions: operations that were begun.
        declared_dead: hosts.
        longest_ms: the longest that any operation stayed in one stage.
    """

    def __init__(self, book: DictBook, max_busy: int) -> None:
        self._book, self._max_busy = book, max_busy
        self._seen: set[str] = set()
        self._dead: set[str] = set()
        self._used: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        self._credits: dict[tuple[str, str], tuple[int, int]] = {}
        self.actions, self.begun, self.longest_ms, self.in_incident = 0, 0, 0, 0

    @property
    def declared_dead(self) -> int:
        return len(self._dead)

    def look(self, host: Host, now_ms: int, world: World) -> None:
        """After each reconcile of a host."""
        for lane in (host, swap_lanes(host)):
            if lane.HasField("operation"):
                self.longest_ms = max(self.longest_ms, now_ms - lane.operation.since_ms)
                if lane.operation.id not in self._seen:
                    self._seen.add(lane.operation.id)
                    self._asked(lane, now_ms, world)
        if host.status == HOST_STATUS_DEAD and host.name not in self._dead:
            self._dead.add(host.name)
            self._use(host.project, DEAD, host.name, now_ms, {})
            self._use("global", MAX_DEAD_HOSTS, host.name, now_ms, world.global_limits)

    def _asked(self, host: Host, now_ms: int, world: World) -> None:
        operation = host.operation
        self.actions += 1
        self.in_incident += world.incidents.incident_of(host) is not None and operation.stage == STAGE_REQUESTED
        if not operation.old_task:  # the first step of this firing, not the next one
            counter = DNS_FIXES if operation.kind == OPERATION_KIND_DNS_FIX else operation.check
            self._use(host.project, counter, host.name, now_ms, {})
        if operation.kind in GLOBAL_COUNTERS:
            self._use("global", GLOBAL_COUNTERS[operation.kind], host.name, now_ms, world.global_limits)

    def began(self, host: Host, now_ms: int) -> None:
        """An effect on a machine; a DNS fix takes none away, and needs no leave."""
        assert host.operation.stage == STAGE_RUNNING, host
        self.begun += bool(host.operation.task)

    def check_budgets(self, hosts: Iterable[Host]) -> None:
        """Never more hosts in work than the default CMS of their project allows."""
        busy: dict[str, int] = defaultdict(int)
        for host in hosts:
            if host.operation.stage in (STAGE_RUNNING, STAGE_VERIFYING) and host.operation.task:
                busy[host.project] += 1
        assert all(count <= self._max_busy for count in busy.values()), busy

    def switched_on(self, fuse: str, automation: Automation, credits_: Mapping[str, int], until_ms: int) -> None:
        """The counters begin anew."""
        for owner, counter in list(self._used):
            is_dns = counter in (DNS_FIXES, "max_dns_fixes")
            if owner == fuse and is_dns == (automation is Automation.DNS):
                del self._used[owner, counter]
        for counter, left in credits_.items():
            self._credits[fuse, counter] = (left, until_ms)

    def _use(self, owner: str, counter: str, host: str, now_ms: int, limits: Mapping[str, object]) -> None:
        used = self._used[owner, counter]
        left, until_ms = self._credits.get((owner, counter), (0, 0))
        for pair in limit_of(limits, counter).pair:  # type: ignore[arg-type]
            window = {name for at, name in used if now_ms - pair.period_s * 1000 < at}
            is_within = host in window or len(window) < pair.count
            if not is_within or (left and now_ms < until_ms):
                assert left, f"{owner} {counter}: {host} is one more than {pair.count}"
                assert now_ms < until_ms, f"{owner} {counter}: {host} is one more than {pair.count}, credits are over"
                self._credits[owner, counter] = (left - 1, until_ms)
                return
        used.append((now_ms, host))
