"""ALLOWED, ONCE: judged by the store's history, by a count of its own. Marks in fuses are not read.

What wants to be allowed: an automatic operation on an assigned host. What allows it: limits of its project and global
ones, as they were then; credits; and that nobody had switched the automation off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeVar

from google.protobuf.message import Message

from store.port import Batch
from tests.checker.violation import Promise, Violation
from walle.fuses.fuse import GLOBAL, Automation, switch_of
from walle.fuses.limits import DNS_FIXES, GLOBAL_COUNTERS, Limits, limit_of
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, OPERATION_KIND_DNS_FIX, STAGE_RUNNING, Host
from wallepb.v1.project_pb2 import Fuse, Project

M = TypeVar("M", bound=Message)
_DNS = (DNS_FIXES, "max_dns_fixes")

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


@dataclass
class _Counter:
    """One limit's uses since its fuse was switched on, and its credit."""

    used: list[tuple[int, str]] = field(default_factory=list)
    credit: int = 0
    until_ms: int = 0

    def use(self, limits: Limits, name: str, host: str, at_ms: int) -> str:
        """Count it; returns which pair does not allow it."""
        over, is_new = "", False
        for pair in limit_of(limits, name).pair:
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
        intents: how many operations of each host came to their work.
        uses, trips: how many automatic operations there were, and how often a fuse went out.
    """

    def __init__(self, prefix: bytes, global_limits: Limits) -> None:
        self._prefix, self._global_limits = prefix, global_limits
        self._counters: dict[tuple[str, str], _Counter] = defaultdict(_Counter)
        self._hosts: dict[str, Host] = {}
        self._fuses: dict[str, Fuse] = {}
        self._limits: dict[str, Limits] = {}
        self._running: dict[str, set[str]] = defaultdict(set)
        self.broken: list[Violation] = []
        self.uses = self.trips = 0

    @property
    def intents(self) -> Mapping[str, int]:
        return {host: len(ids) for host, ids in self._running.items()}

    def replay(self, batch: Batch) -> None:
        """One revision, or several. A use and a switching of one fuse are never in the same revision."""
        for change in batch.changes:
            kind, _, name = change.key[len(self._prefix) :].decode().partition("/")
            if kind == "host":
                self._host(name, _parsed(Host, change.value))
            if kind == "fuse":
                self._fuse(name, _parsed(Fuse, change.value))
            if kind == "project":
                self._limits[name] = dict(_parsed(Project, change.value).limits)

    def _host(self, name: str, host: Host) -> None:
        before = self._hosts.get(name, Host())
        self._hosts[name] = host
        operation = host.operation
        if operation.stage == STAGE_RUNNING:
            self._running[name].add(operation.id)
        if operation.id and operation.id != before.operation.id and operation.check:
            self._asked(host, is_next_step=before.HasField("operation"))

    def _asked(self, host: Host, *, is_next_step: bool) -> None:
        operation, self.uses = host.operation, self.uses + 1
        automation = Automation.DNS if operation.kind == OPERATION_KIND_DNS_FIX else Automation.HEALING
        for owner in (host.project, GLOBAL):
            if switch_of(self._fuses.get(owner, Fuse()), automation).off:
                self.broken.append(ALLOWED.broken(f"{host.name}: {automation} was off in {owner}", operation))
        if host.state != HOST_STATE_ASSIGNED:
            return
        counter = DNS_FIXES if automation is Automation.DNS else operation.check
        if not is_next_step:
            self._count(host.project, self._limits.get(host.project, {}), counter, host)
        if operation.kind in GLOBAL_COUNTERS:
            self._count(GLOBAL, self._global_limits, GLOBAL_COUNTERS[operation.kind], host)

    def _count(self, owner: str, limits: Limits, name: str, host: Host) -> None:
        over = self._counters[owner, name].use(limits, name, host.name, host.operation.since_ms)
        if over:
            self.broken.append(ALLOWED.broken(f"{host.name} is more than {over} in {owner}", host.operation))

    def _fuse(self, owner: str, fuse: Fuse) -> None:
        before = self._fuses.get(owner, Fuse())
        self._fuses[owner] = fuse
        for automation in Automation:
            was_off, is_off = switch_of(before, automation).off, switch_of(fuse, automation).off
            self.trips += is_off and not was_off
            if was_off and not is_off:
                self._switched_on(owner, automation)
        newest = before.switching[0] if before.switching else None
        for said in takewhile(lambda one: one != newest, fuse.switching):
            for credit in said.credit:
                counter = self._counters[owner, credit.counter]
                counter.credit, counter.until_ms = credit.left, credit.until_ms

    def _switched_on(self, owner: str, automation: Automation) -> None:
        for (whose, name), counter in self._counters.items():
            if whose == owner and (name in _DNS) == (automation is Automation.DNS):
                counter.used.clear()


def once(resets: Mapping[str, int], intents: Mapping[str, int]) -> Iterator[Violation]:
    """`resets`: what machines saw."""
    for machine, count in sorted(resets.items()):
        if count > intents.get(machine, 0):
            yield ONCE.broken(f"{machine} was reset {count} times for {intents.get(machine, 0)} operations")


def check(batches: Iterable[Batch], prefix: bytes, global_limits: Limits) -> History:
    """The whole history, replayed."""
    history = History(prefix, global_limits)
    for batch in batches:
        history.replay(batch)
    return history


def _parsed(kind: type[M], value: bytes | None) -> M:
    message = kind()
    message.ParseFromString(value or b"")
    return message
