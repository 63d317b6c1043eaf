"""ALLOWED, ONCE, APART, DEAD, and what bounds.py adds: judged by the store's history, by a count of its own.

What wants to be allowed: an automatic operation on an assigned host, or to declare it dead. What allows it: limits of
its project and global ones, as they were then; credits; and that nobody had switched the automation off. Of the marks
in fuses only the time is read at which a host was declared dead.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import TypeVar

from google.protobuf.message import Message

from store.port import Batch
from tests.checker.bounds import EFFORT, Bounds
from tests.checker.violation import Promise, Violation
from walle.fuses.fuse import GLOBAL, Automation, switch_of
from walle.fuses.limits import DEAD, DNS_FIXES, GLOBAL_COUNTERS, MAX_DEAD_HOSTS, Limits, limit_of
from walle.healing.lanes import swap_lanes
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATUS_DEAD,
    OPERATION_KIND_DNS_FIX,
    STAGE_RUNNING,
    Host,
    Operation,
)
from wallepb.v1.project_pb2 import Fuse, LedgerTime, Project, Scenario

M = TypeVar("M", bound=Message)
_DNS = (DNS_FIXES, "max_dns_fixes")
TRIES_OF_A_TASK = 40  # of one call, in a day

ALLOWED = Promise(
    "ALLOWED",
    "never more repairs than limits and credits allow, and none while its automation is off",
    "walle/fuses, walle/work/repairs.py, and which transactions compared what",
)
ONCE = Promise(
    "ONCE",
    "a machine is reset at most once for each operation whose intent was stored",
    "walle/process/healer.py, walle/executors/over_http.py, control/effects.py",
)
APART = Promise(
    "APART",
    "a limit of DNS fixes switches no healing off, and a limit of healing no DNS fixes",
    "walle/fuses/admission.py (automation), walle/fuses/fuse.py (trip)",
)
LEFT_ALONE = Promise(
    "DEAD",
    "nothing automatic is done with a dead host until a person takes it back",
    "walle/healing/decision.py (_blocked), walle/work/repairs.py (_declare_dead)",
)


@dataclass
class _Counter:
    """One limit's uses since its fuse was switched on, and its credit."""

    used: list[tuple[int, str]] = field(default_factory=list)
    latest_ms: int = 0
    credit: int = 0
    until_ms: int = 0

    def use(self, limits: Limits, name: str, host: str, at_ms: int) -> str:
        """Count it; returns which pair does not allow it."""
        over, is_new, pairs = "", False, limit_of(limits, name).pair
        # What left the longest window stays out, though the next acting process begins some seconds earlier on the
        # ledger's clock: that clock never runs faster than time.
        self.latest_ms = max(self.latest_ms, at_ms)
        longest_ms = max((pair.period_s for pair in pairs), default=0) * 1000
        self.used = [(at, one) for at, one in self.used if self.latest_ms - longest_ms < at]
        for pair in pairs:
            window = {one for at, one in self.used if at_ms - pair.period_s * 1000 < at}
            is_new |= host not in window
            if host not in window and len(window) >= pair.count:
                over = f"{name} {pair.period_s}s:{pair.count}"
        if is_new and self.credit and at_ms < self.until_ms:
            self.credit -= 1
            return ""
        self.used.append((at_ms, host))
        return over


class History:
    """Replays the store's revisions.

    Attributes:
        broken: what was not allowed.
        intents: how many operations of each host came to their work, DNS fixes apart.
        dns_attempts: how often the work of a DNS fix was begun, by host.
        uses, trips, deaths: how many automatic operations there were, how often a fuse went out, a host was given up.
        apart: how many operations of one automation there were while the other was off.
    """

    def __init__(self, prefix: bytes, global_limits: Limits, settle_ms: int = 0) -> None:
        self._prefix, self._global_limits = prefix, global_limits
        self._bounds, self._now_ms, self._scenarios = Bounds(settle_ms), 0, dict[str, Scenario]()
        self._counters: dict[tuple[str, str], _Counter] = defaultdict(_Counter)
        self._hosts: dict[str, Host] = {}
        self._fuses: dict[str, Fuse] = {}
        self._limits: dict[str, Limits] = {}
        self._begun: dict[str, dict[str, Operation]] = defaultdict(dict)
        self._deaths: dict[tuple[str, str], int] = {}
        self._kinds: Mapping[str, Callable[[str, bytes | None], None]] = {
            "host": lambda name, value: self._host(name, _parsed(Host, value)),
            "fuse": lambda name, value: self._fuse(name, _parsed(Fuse, value)),
            "project": self._project,
            "scenario": self._scenario,
            "ledgertime": self._time,
        }
        self.broken: list[Violation] = []
        self.uses = self.trips = self.deaths = self.apart = 0

    @property
    def intents(self) -> Mapping[str, int]:
        return {host: sum(not _is_dns(one) for one in begun.values()) for host, begun in self._begun.items()}

    @property
    def dns_attempts(self) -> Mapping[str, int]:
        return {
            host: sum(one.intent.attempts for one in begun.values() if _is_dns(one))
            for host, begun in self._begun.items()
        }

    def replay(self, batch: Batch) -> None:
        """One revision, or several. A use and a switching of one fuse are never in the same revision."""
        for _, together in groupby(batch.changes, lambda change: change.revision):
            self._one([(*_kind_and_name(change.key[len(self._prefix) :]), change.value) for change in together])

    def _one(self, changes: list[tuple[str, str, bytes | None]]) -> None:
        for kind, name, value in changes:
            if kind == "fuse":
                marks = _parsed(Fuse, value).mark
                self._deaths |= {(name, one.host): one.at_ms for one in marks if one.counter in (DEAD, MAX_DEAD_HOSTS)}
        for kind, name, value in changes:
            if replay := self._kinds.get(kind):
                replay(name, value)

    def _scenario(self, name: str, value: bytes | None) -> None:
        scenario = _parsed(Scenario, value)
        self.broken += self._bounds.scenario(self._scenarios.get(name, Scenario()), scenario)
        self._scenarios[name] = scenario

    def _time(self, _: str, value: bytes | None) -> None:
        self._now_ms = max(self._now_ms, _parsed(LedgerTime, value).at_ms)

    def _project(self, name: str, value: bytes | None) -> None:
        self._limits[name] = dict(_parsed(Project, value).limits)

    def _host(self, name: str, host: Host) -> None:
        before = self._hosts.get(name, Host())
        self._hosts[name] = host
        self.broken += self._bounds.host(before, host, self._now_ms)
        self._lane(host, before)
        self._lane(swap_lanes(host), swap_lanes(before))
        if host.status == HOST_STATUS_DEAD and before.status != HOST_STATUS_DEAD:
            self._died(host)

    def _lane(self, host: Host, before: Host) -> None:
        operation = host.operation
        if operation.stage == STAGE_RUNNING:
            self._begun[host.name][operation.id] = operation
        if operation.check and host.status == HOST_STATUS_DEAD:
            what = f"{host.name} is dead and in an operation for {operation.check}"
            self.broken.append(LEFT_ALONE.broken(what, operation))
        if operation.id and operation.id != before.operation.id and operation.check:
            self._asked(host, is_next_step=before.HasField("operation"))

    def _died(self, host: Host) -> None:
        self.deaths += 1
        self._check_on(host, Automation.HEALING)
        if host.state == HOST_STATE_ASSIGNED:
            self._count(host.project, self._limits.get(host.project, {}), DEAD, host, self._died_at(host.project, host))
            self._count(GLOBAL, self._global_limits, MAX_DEAD_HOSTS, host, self._died_at(GLOBAL, host))

    def _died_at(self, owner: str, host: Host) -> int:
        """It was marked in the same transaction."""
        if (owner, host.name) not in self._deaths:
            self.broken.append(ALLOWED.broken(f"{host.name} was declared dead, and no limit of {owner} knows"))
        return self._deaths.pop((owner, host.name), 0)

    def _check_on(self, host: Host, automation: Automation) -> None:
        for owner in (host.project, GLOBAL):
            if switch_of(self._fuses.get(owner, Fuse()), automation).off:
                self.broken.append(ALLOWED.broken(f"{host.name}: {automation} was off in {owner}", host))

    def _asked(self, host: Host, *, is_next_step: bool) -> None:
        operation, self.uses = host.operation, self.uses + 1
        automation = Automation.DNS if _is_dns(operation) else Automation.HEALING
        self._check_on(host, automation)
        other = Automation.HEALING if automation is Automation.DNS else Automation.DNS
        self.apart += any(switch_of(self._fuses.get(one, Fuse()), other).off for one in (host.project, GLOBAL))
        if host.state != HOST_STATE_ASSIGNED:
            return
        counter = DNS_FIXES if automation is Automation.DNS else operation.check
        if not is_next_step:
            self._count(host.project, self._limits.get(host.project, {}), counter, host, operation.since_ms)
        if operation.kind in GLOBAL_COUNTERS:
            self._count(GLOBAL, self._global_limits, GLOBAL_COUNTERS[operation.kind], host, operation.since_ms)

    def _count(self, owner: str, limits: Limits, name: str, host: Host, at_ms: int) -> None:
        over = self._counters[owner, name].use(limits, name, host.name, at_ms)
        if over:
            self.broken.append(ALLOWED.broken(f"{host.name} is more than {over} in {owner}", host))

    def _fuse(self, owner: str, fuse: Fuse) -> None:
        before = self._fuses.get(owner, Fuse())
        self._fuses[owner] = fuse
        for automation in Automation:
            was_off, is_off = switch_of(before, automation).off, switch_of(fuse, automation).off
            if is_off and not was_off:
                self._tripped(owner, automation, switch_of(fuse, automation).tripped_by)
            if was_off and not is_off:
                self._switched_on(owner, automation)
        newest = before.switching[0] if before.switching else None
        for said in takewhile(lambda one: one != newest, fuse.switching):
            for credit in said.credit:
                counter = self._counters[owner, credit.counter]
                counter.credit, counter.until_ms = credit.left, credit.until_ms

    def _tripped(self, owner: str, automation: Automation, pair: str) -> None:
        self.trips += 1
        if pair and (pair.split()[0] in _DNS) != (automation is Automation.DNS):
            self.broken.append(APART.broken(f"{automation} went off in {owner} by {pair}"))

    def _switched_on(self, owner: str, automation: Automation) -> None:
        for (whose, name), counter in self._counters.items():
            if whose == owner and (name in _DNS) == (automation is Automation.DNS):
                counter.used.clear()


def once(resets: Mapping[str, int], intents: Mapping[str, int]) -> Iterator[Violation]:
    """`resets`: what machines saw."""
    for machine, count in sorted(resets.items()):
        if count > intents.get(machine, 0):
            yield ONCE.broken(f"{machine} was reset {count} times for {intents.get(machine, 0)} operations")


def dns_once(updates: Mapping[str, int], attempts: Mapping[str, int]) -> Iterator[Violation]:
    """`updates`: what the name server saw. An update that is sent again after its answer was lost is an attempt."""
    for host, count in sorted(updates.items()):
        if count > attempts.get(host, 0):
            yield ONCE.broken(f"records of {host} were updated {count} times in {attempts.get(host, 0)} attempts")


def seldom(calls: Iterable[tuple[str, str]], restarts: int) -> Iterator[Violation]:
    """What a CMS saw, by method and path: what fails is tried again after a pause, and by who takes over.

    Polls are no tries: who waits is polled.
    """
    for (method, path), count in Counter(calls).items():
        is_try = method == "DELETE" or path.endswith("/confirm")
        if is_try and count > TRIES_OF_A_TASK + restarts:
            yield EFFORT.broken(f"{method} {path}: {count} times")


def _kind_and_name(key: bytes) -> tuple[str, str]:
    kind, _, name = key.decode().partition("/")
    return kind, name


def _is_dns(operation: Operation) -> bool:
    return operation.kind == OPERATION_KIND_DNS_FIX


def _parsed(kind: type[M], value: bytes | None) -> M:
    message = kind()
    message.ParseFromString(value or b"")
    return message
