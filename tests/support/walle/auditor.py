"""Looks at a simulated fleet from outside, and counts for itself: limits, credits and budgets are never exceeded.

Beside them what tests/checker/bounds.py names: EFFORT for a virtual day, ITSELF by what is true, WAVE, HELD.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from google.protobuf.message import Message

from tests.checker.bounds import EFFORT, HELD, ITSELF, Bounds, held_too_long
from tests.checker.violation import Violation
from tests.support.walle.book import DictBook
from walle.fuses.fuse import Automation
from walle.fuses.limits import DEAD, DNS_FIXES, GLOBAL_COUNTERS, MAX_DEAD_HOSTS, limit_of
from walle.healing.lanes import swap_lanes
from walle.work.book import Notice, World
from wallepb.v1.host_pb2 import (
    HOST_STATUS_DEAD,
    OPERATION_KIND_DNS_FIX,
    STAGE_REQUESTED,
    STAGE_RUNNING,
    STAGE_VERIFYING,
    Host,
)
from wallepb.v1.project_pb2 import Scenario

STUCK_MS: Final = 12 * 3_600_000
SETTLE_MS: Final = 300_000
CALLS_A_DAY: Final = 100  # of one kind about one host or task: pauses from 1 min to 1 h, in two lanes
REVISIONS_A_DAY: Final = 600  # of one host
NOTICES_A_DAY: Final = 24  # of one cause: at most once an hour
_ORPHANED_HOURS: Final = 3


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
        self._bounds, self._today, self._orphans = Bounds(SETTLE_MS), Counter[str](), Counter[str]()

    @property
    def declared_dead(self) -> int:
        return len(self._dead)

    def look(
        self, host: Host, now_ms: int, world: World, failing_since: Mapping[str, int], cms_well_since_ms: int
    ) -> None:
        """After each reconcile of a host. `failing_since`: what is really wrong with it, by check in ms."""
        _blame(held_too_long(host, now_ms, cms_well_since_ms))
        for lane in (host, swap_lanes(host)) if host.HasField("dns_operation") else (host,):
            if lane.HasField("operation"):
                self.longest_ms = max(self.longest_ms, now_ms - max(lane.operation.since_ms, cms_well_since_ms))
                if lane.operation.id not in self._seen:
                    self._seen.add(lane.operation.id)
                    self._asked(lane, now_ms, world, failing_since)
        if host.status == HOST_STATUS_DEAD and host.name not in self._dead:
            self._dead.add(host.name)
            self._use(host.project, DEAD, host.name, now_ms, {})
            self._use("global", MAX_DEAD_HOSTS, host.name, now_ms, world.global_limits)

    def _asked(self, host: Host, now_ms: int, world: World, failing_since: Mapping[str, int]) -> None:
        operation = host.operation
        if not operation.check:
            return  # planned work asks no fuse
        self.actions += 1
        self.in_incident += world.incidents.incident_of(host) is not None and operation.stage == STAGE_REQUESTED
        if not operation.old_task:  # the first step of this firing, not the next one
            since_ms = failing_since.get(operation.check, now_ms)
            if now_ms - since_ms < SETTLE_MS:
                _blame([ITSELF.broken(f"{host.name}: {operation.check}: {(now_ms - since_ms) // 1000} s", operation)])
            counter = DNS_FIXES if operation.kind == OPERATION_KIND_DNS_FIX else operation.check
            self._use(host.project, counter, host.name, now_ms, {})
        if operation.kind in GLOBAL_COUNTERS:
            self._use("global", GLOBAL_COUNTERS[operation.kind], host.name, now_ms, world.global_limits)

    def look_at_record(self, before: Message | None, after: Message, now_ms: int) -> None:
        """A record that changed."""
        if isinstance(after, Host):
            self._today[f"revisions of {after.name}"] += 1
            _blame(self._bounds.host(before if isinstance(before, Host) else Host(), after, now_ms))
        if isinstance(after, Scenario):
            self._today[f"revisions of scenario {after.id}"] += 1
            _blame(self._bounds.scenario(before if isinstance(before, Scenario) else Scenario(), after))

    def count(self, call: str) -> None:
        self._today[f"calls: {call}"] += 1

    def count_notice(self, notice: Notice) -> None:
        cause = notice.cause or re.sub(r"\d+", "N", notice.text)
        self._today[f"notices: {notice.project} {notice.host}: {cause}"] += 1

    def end_day(self) -> None:
        """EFFORT: what of one kind was done in a virtual day."""
        most = {"calls": CALLS_A_DAY, "revisions": REVISIONS_A_DAY, "notices": NOTICES_A_DAY}
        for what, count in self._today.items():
            if count > most[what.partition(" ")[0].rstrip(":")]:
                _blame([EFFORT.broken(f"{count} in a day: {what}")])
        self._today.clear()

    def look_at_tasks(self, project: str, orphans: set[str], *, is_cms_well: bool) -> None:
        """HELD: hourly, the tasks in a CMS that no operation knows."""
        for task in orphans:
            self._orphans[task] += is_cms_well
            if self._orphans[task] > _ORPHANED_HOURS:
                _blame([HELD.broken(f"{project}: {task} is held for no operation")])

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


def _blame(violations: Iterable[Violation]) -> None:
    found = [str(one) for one in violations]
    assert not found, found[0]
