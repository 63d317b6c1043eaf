"""A simulated fleet in virtual time: hosts break, the real healer repairs them, an auditor of its own looks on.

Nothing waits: every coroutine of the healer runs to its end at once, one minute of the fleet after the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.walle.auditor import Auditor
from tests.support.walle.book import DictBook
from tests.support.walle.truth import FAULTS, LASTS, Truth
from walle.approval.protocol import CmsAnswer, CmsFailure, CmsPort, Request
from walle.executors.port import Executor, ExecutorFailure, PollResult, WorkProgress
from walle.fuses.fuse import Automation, Moment, counters_of, switch_of, switch_on
from walle.fuses.limits import DNS_FIXES, parse_limit
from walle.healing.decision import decide
from walle.process.healer import Healer
from walle.process.ports import MayBegin
from walle.work import default_cms as default
from walle.work.book import DEFAULT_TASKS, FUSE, HOST, PROJECT, Notice, WalleTransaction, World
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATUS_DEAD,
    HOST_STATUS_READY,
    Check,
    Host,
    Location,
    OperationKind,
)
from wallepb.v1.project_pb2 import Cms as CmsSetting
from wallepb.v1.project_pb2 import Credit, DefaultCmsTasks, Fuse, Project

T = TypeVar("T")
MINUTE, HOUR, DAY = 1, 60, 1440  # the fleet counts minutes


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run what never really waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("it waited for something real")


class Fleet:
    """All of it. Only hosts that need something are looked at.

    Attributes:
        minute: now.
        notices: all that people were told.
    """

    def __init__(self, racks: int, per_rack: int, projects: int, seed: int, max_busy: int = 10) -> None:
        self.rng = random.Random(seed)
        self.minute, self.truth, self.book = 1, Truth(), DictBook()
        self.notices: list[Notice] = []
        self.cms_down: set[str] = set()
        self._ids = 0
        self.global_limits = {"max_rebooted_hosts": parse_limit(["1d:300"]), "max_dead_hosts": parse_limit(["1d:60"])}
        self.global_limits |= {
            name: parse_limit(["1d:300"]) for name in ("max_redeployed_hosts", "max_disk_changes", "max_dns_fixes")
        }
        self.world = World("sim", self.global_limits, self._new_id)
        self.projects = [f"p{i}" for i in range(projects)]
        for name in self.projects:
            cms = CmsSetting(url="default", version="v1.0", max_busy_hosts=max_busy)
            self.book.put(PROJECT, name, Project(id=name, cms=[cms]))
        self.racks = {f"r{r}": [f"h{r}-{i}" for i in range(per_rack)] for r in range(racks)}
        for rack, names in self.racks.items():
            for name in names:
                self._add(name, rack)
        self.auditor = Auditor(self.book, max_busy)
        self.healers = [Healer(_Store(self), _Parts(self), self.world, self.now, self.rng, lane) for lane in Automation]
        self.active: set[str] = set()

    def _add(self, name: str, rack: str) -> None:
        project = self.projects[int(rack[1:]) % len(self.projects)]
        host = Host(name=name, project=project, listed=True, state=HOST_STATE_ASSIGNED, status=HOST_STATUS_READY)
        host.location.CopyFrom(Location(rack=rack))
        self.book.put(HOST, name, host)

    @property
    def hosts(self) -> list[str]:
        return [name for names in self.racks.values() for name in names]

    def host(self, name: str) -> Host:
        found = self.book.records[HOST.name, name]
        assert isinstance(found, Host)
        return found

    def now(self) -> Moment:
        return Moment(self.minute * 60_000, Timestamp(seconds=self.minute * 60))

    def _new_id(self) -> str:
        self._ids += 1
        return f"op{self._ids}"

    # --- what happens to it -----------------------------------------------------------------------------------------

    def break_host(self, name: str, fault: str) -> None:
        if name not in self.truth.fault and self.host(name).status == HOST_STATUS_READY:
            self.truth.fault[name] = fault
            self.active.add(name)

    def darken(self, rack: str) -> None:
        self.truth.dark |= set(self.racks[rack])
        self.active |= set(self.racks[rack])

    def lighten(self, rack: str) -> None:
        self.truth.dark -= set(self.racks[rack])

    def turn_red(self, names: Sequence[str]) -> None:
        self.truth.red |= set(names)
        self.active |= set(names)

    def turn_green(self) -> None:
        self.truth.red.clear()

    # --- a minute ---------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """A minute: checks are reported, racks are looked at, hosts in need are reconciled, the auditor looks on."""
        self.minute += MINUTE
        for name in sorted(self.active):
            self._report(name)
        racks = {self.host(name).location.rack for name in self.active} | {p.name for p in self.world.incidents.open}
        self.world.incidents.observe((self.host(n) for rack in racks for n in self.racks[rack]), self.now().ms)
        for name in sorted(self.active):
            for healer in self.healers:
                at_once(healer.reconcile(name))
            self.auditor.look(self.host(name), self.now().ms, self.world)
        self.auditor.check_budgets(self.host(name) for name in self.active)
        self.active = {name for name in self.active if self._is_in_need(name)}

    def _is_in_need(self, name: str) -> bool:
        host = self.host(name)
        waits = host.status == HOST_STATUS_READY and bool(self.truth.failing(name))
        return (
            waits
            or host.HasField("operation")
            or host.HasField("dns_operation")
            or any(c.failing for c in host.check) != bool(self.truth.failing(name))
        )

    def _report(self, name: str) -> None:
        host, failing = self.host(name), self.truth.failing(name)
        for check in failing - {c.name for c in host.check}:
            host.check.append(Check(name=check))
        for check_ in host.check:
            if check_.failing != (check_.name in failing):
                check_.failing, check_.since_ms = check_.name in failing, self.now().ms

    # --- people -----------------------------------------------------------------------------------------------------

    def switch_on(self, fuse_id: str, automation: Automation, credits_: int = 0) -> None:
        """A person has looked, and switches on."""
        fuse = self.book.get(FUSE, fuse_id) or Fuse(id=fuse_id)
        until = self.now().ms + HOUR * 60_000
        given = [Credit(counter=c, left=credits_, until_ms=until) for c in ("UNREACHABLE", "ssh") if credits_]
        mine = counters_of(fuse, automation, DNS_FIXES)
        self.book.put(FUSE, fuse_id, switch_on(fuse, automation, mine, "op", "looked", self.now(), given))
        self.auditor.switched_on(fuse_id, automation, {c.counter: c.left for c in given}, until)

    def off(self) -> list[tuple[str, Automation]]:
        fuses = [fuse for (kind, _), fuse in self.book.records.items() if kind == FUSE.name]
        return [(f.id, a) for f in fuses if isinstance(f, Fuse) for a in Automation if switch_of(f, a).off]

    # --- how it went ------------------------------------------------------------------------------------------------

    def unresolved(self) -> list[str]:
        """Hosts that are broken, not dead, and about which nothing is being done."""
        broken = [n for n in self.truth.fault if self.host(n).status != HOST_STATUS_DEAD]
        return [n for n in broken if not self.host(n).HasField("operation")]

    def why(self, name: str) -> str:
        project = self.book.get(PROJECT, self.host(name).project)
        assert project is not None
        return str(decide(self.host(name), project, self.world.incidents, self.now().ms))


class _Store:
    """The healer's transactions, over the dictionary."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def host(self, name: str) -> Host | None:
        return self._fleet.book.get(HOST, name)

    def why_nothing_begins(self) -> str:
        return ""

    async def transact(self, decide: Callable[[WalleTransaction], T]) -> T:
        return decide(self._fleet.book)

    async def decide(self, decide: Callable[[WalleTransaction], Sequence[Notice]]) -> None:
        self._fleet.notices.extend(decide(self._fleet.book))

    async def intend(self, decide: Callable[[WalleTransaction], bool]) -> MayBegin | None:
        return _Now() if decide(self._fleet.book) else None


class _Now:
    def check(self) -> None:
        """It may."""


class _Parts:
    """The default CMS of each project, and machines that take their time."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._executor = fleet, _Machines(fleet)

    def cms(self, project: str, url: str) -> CmsPort:
        if project in self._fleet.cms_down:
            raise CmsFailure("no answer within 10 s")
        return _Default(self._fleet, project)

    def executor(self, kind: OperationKind) -> Executor:
        return self._executor


class _Default:
    """The default CMS, as the process keeps it."""

    name, version = "default", "v1.0"

    def __init__(self, fleet: Fleet, project: str) -> None:
        self._book, self._project = fleet.book, project

    async def dry_run(self, request: Request) -> CmsAnswer:
        return default.dry_run()

    async def create(self, request: Request) -> CmsAnswer:
        return self._change(lambda held: default.create(held, request, self._max_busy()))

    async def poll(self, task_id: str) -> CmsAnswer:
        return self._change(lambda held: default.poll(held, task_id, self._max_busy()))

    async def confirm(self, task_id: str) -> CmsAnswer:
        return await self.poll(task_id)

    async def delete(self, task_id: str) -> None:
        self._change(lambda held: default.delete(held, task_id))

    async def tasks(self) -> dict[str, tuple[str, ...]]:
        held = self._book.get(DEFAULT_TASKS, self._project) or DefaultCmsTasks()
        return {task.id: tuple(task.host) for task in held.task}

    def _max_busy(self) -> int:
        project = self._book.get(PROJECT, self._project)
        assert project is not None
        return project.cms[0].max_busy_hosts

    def _change(self, decide: Callable[[DefaultCmsTasks], T]) -> T:
        held = self._book.get(DEFAULT_TASKS, self._project) or DefaultCmsTasks(project=self._project)
        result = decide(held)
        self._book.put(DEFAULT_TASKS, self._project, held)
        return result


class _Machines:
    """Work takes minutes; some of it fails to begin."""

    name = "machines"

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def progress_marker(self, host: Host) -> str:
        return "boot-1"

    async def begin(self, host: Host) -> str:
        self._fleet.auditor.began(host, self._fleet.now().ms)
        if self._fleet.rng.random() < 0.02:
            raise ExecutorFailure("the management controller does not answer")
        kind = host.operation.kind
        self._fleet.truth.work[host.name] = (kind, self._fleet.minute + LASTS[kind])
        return "handle"

    async def poll(self, host: Host, age_s: float) -> PollResult:
        truth = self._fleet.truth
        if host.name not in truth.work:
            return PollResult(WorkProgress.NOT_BEGUN)
        kind, until = truth.work[host.name]
        if self._fleet.minute < until:
            return PollResult(WorkProgress.RUNNING)
        del truth.work[host.name]
        if kind in FAULTS.get(truth.fault.get(host.name, ""), ("", frozenset()))[1]:
            del truth.fault[host.name]
            truth.mended += 1
        return PollResult(WorkProgress.DONE)
