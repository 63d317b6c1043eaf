"""A simulated fleet in virtual time: hosts break, the real healer repairs them, an auditor of its own looks on.

Nothing waits: every coroutine of the healer runs to its end at once, one minute of the fleet after the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from control.records import Kind
from tests.support.walle.auditor import Auditor
from tests.support.walle.book import DictBook
from tests.support.walle.fleet_parts import FleetCms, FleetParts
from tests.support.walle.truth import Truth
from walle.approval.protocol import CmsFailure
from walle.approval.tasks import Collector
from walle.fuses.fuse import Automation, Moment, counters_of, switch_of, switch_on
from walle.fuses.limits import DNS_FIXES, parse_limit
from walle.healing.decision import decide
from walle.maintenance import OVER
from walle.process.healer import Healer
from walle.process.ports import MayBegin
from walle.work.book import FUSE, HOST, PROJECT, SCENARIO, Notice, WalleTransaction, World
from walle.work.orders import says_news, take_checks
from walle.work.scenario_records import read_scenario
from walle.work.scenarios import add_scenario, end_scenario
from walle.work.waves import wave_decisions
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, HOST_STATUS_DEAD, HOST_STATUS_READY, Host, Location, Task
from wallepb.v1.project_pb2 import SCENARIO_KIND_REBOOT, Credit, Fuse, Project, Scenario, ScenarioKind
from wallepb.v1.project_pb2 import Cms as CmsSetting
from wallepb.v1.service_pb2 import AddScenarioRequest, CheckReport, EndScenarioRequest, HostChecks, Order

M = TypeVar("M", bound=Message)
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
        self.minute, self.truth, self.book = 1, Truth(), WatchedBook()
        self.notices: list[Notice] = []
        self.cms_faults: dict[str, str] = {}
        self.contradicted: set[str] = set()
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
        self.book.watch(lambda before, after: self.auditor.look_at_record(before, after, self.now().ms))
        self._collector = Collector(lambda: "sim")
        parts = FleetParts(self)
        self.healers = [Healer(_Store(self), parts, self.world, self.now, self.rng, lane) for lane in Automation]
        self.active: set[str] = set()
        self._failing_since: dict[str, dict[str, int]] = {}  # by host and check, as it is in truth
        self._cms_well_since: dict[str, int] = {}  # by project, in ms

    def _add(self, name: str, rack: str) -> None:
        project = self.projects[int(rack[1:]) % len(self.projects)]
        host = Host(name=name, project=project, listed=True, state=HOST_STATE_ASSIGNED, status=HOST_STATUS_READY)
        host.location.CopyFrom(Location(rack=rack, switch=f"{rack}-{len(self.book.records) % 2}"))
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

    def behind(self, place: str) -> list[str]:
        """The hosts of a rack, or those behind one of its two switches: `r3-1`."""
        rack, _, switch = place.partition("-")
        names = self.racks[rack]
        return [name for name in names if not switch or self.host(name).location.switch == place]

    def darken(self, place: str) -> None:
        self.truth.dark |= set(self.behind(place))
        self.active |= set(self.behind(place))

    def lighten(self, place: str) -> None:
        self.truth.dark -= set(self.behind(place))

    def blip(self, name: str, minutes: int) -> None:
        """It is out of reach, and comes back by itself."""
        self.truth.blips[name] = self.minute + minutes
        self.active.add(name)

    def plan(
        self, scenario: str, names: Sequence[str], wave_size: str, kind: ScenarioKind = SCENARIO_KIND_REBOOT
    ) -> None:
        order = AddScenarioRequest(scenario=scenario, kind=kind, wave_size=wave_size)
        add_scenario(self.book, Order(by="alice", add_scenario=order), names, self.world, self.now(), self.host)

    def end_scenario(self, scenario: str) -> None:
        end_scenario(self.book, EndScenarioRequest(scenario=scenario), "alice", self.now())

    def scenarios(self) -> list[Scenario]:
        """Scenarios that are not over."""
        found = [one for (kind, _), one in self.book.records.items() if kind == SCENARIO.name]
        return [one for one in found if isinstance(one, Scenario) and one.stage not in OVER]

    def turn_red(self, names: Sequence[str]) -> None:
        self.truth.red |= set(names)
        self.active |= set(names)

    def turn_green(self) -> None:
        self.truth.red.clear()

    # --- a minute ---------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """A minute: checks are reported, racks are looked at, hosts in need are reconciled, the auditor looks on."""
        self.minute += MINUTE
        self.truth.blips = {name: until for name, until in self.truth.blips.items() if self.minute < until}
        self._cms_well_since |= dict.fromkeys(self.cms_faults, self.now().ms)
        scenarios = self.scenarios()
        self.active |= {host.name for scenario in scenarios for host in scenario.host if not host.outcome}
        for name in sorted(self.active):
            self._report(name)
        racks = {self.host(name).location.rack for name in self.active}
        racks |= {place.name.partition("-")[0] for place, _ in self.world.incidents.open}
        self.world.incidents.observe((self.host(n) for rack in racks for n in self.racks[rack]), self.now().ms)
        for scenario in scenarios:
            for decision in wave_decisions(
                partial(read_scenario, self.book, scenario.id),
                partial(self._hosts_held, scenario),
                self.world,
                self.now(),
            ):
                self.say(decision(self.book))
        for name in sorted(self.active):
            for healer in self.healers:
                at_once(healer.reconcile(name))
            host, since = self.host(name), self._failing_since.get(name, {})
            self.auditor.look(host, self.now().ms, self.world, since, self._cms_well_since.get(host.project, 0))
        self.auditor.check_budgets(self.host(name) for name in self.active)
        self.active = {name for name in self.active if self._is_in_need(name)}
        if self.minute % HOUR == 0:
            self._collect()
        if self.minute % DAY == 0:
            self.auditor.end_day()

    def _hosts_held(self, scenario: Scenario) -> list[str]:
        return [one.name for one in scenario.host if self.host(one.name).scenario == scenario.id]

    def say(self, notices: Sequence[Notice]) -> None:
        self.notices.extend(notices)
        for notice in notices:
            self.auditor.count_notice(notice)

    def _collect(self) -> None:
        """What no operation knows is deleted, as the process does; what is left for long is held by nobody."""
        hosts = [one for (kind, _), one in self.book.records.items() if kind == HOST.name]
        wanted = {task.id for host in hosts if isinstance(host, Host) for task in _tasks(host)}
        for project in self.projects:
            cms = FleetCms(self, project)
            try:
                listed = at_once(cms.tasks())
                for task_id in self._collector.look(project, listed, wanted):
                    at_once(cms.delete(task_id))
            except CmsFailure:
                continue
            self.auditor.look_at_tasks(project, set(at_once(cms.tasks())) - wanted, is_cms_well=not self.cms_faults)

    def _is_in_need(self, name: str) -> bool:
        host = self.host(name)
        waits = host.status == HOST_STATUS_READY and bool(self.truth.failing(name))
        return (
            waits
            or name in self.contradicted
            or host.HasField("operation")
            or host.HasField("dns_operation")
            or any(c.failing for c in host.check) != bool(self.truth.failing(name))
        )

    def _report(self, name: str) -> None:
        """Monitoring says what is true. Beside it one source is always fine, and one cries wolf every other while."""
        host, failing = self.host(name), self.truth.failing(name)
        since = self._failing_since.setdefault(name, {})
        self._failing_since[name] = {check: since.get(check, self.now().ms) for check in failing}
        known = sorted(failing | {check.name for check in host.check})
        said = [CheckReport(name=check, failing=check in failing, source="monitor") for check in known]
        if name in self.contradicted:
            said += [CheckReport(name=check, source="optimist") for check in known]
            said.append(CheckReport(name="memory", failing=self.minute % 8 < 4, source="crying-wolf"))
        report = HostChecks(host=name, check=said)
        if says_news(host, report, self.now()):
            take_checks(self.book, report, self.now())

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


def _tasks(host: Host) -> list[Task]:
    return [*host.operation.task, *host.operation.old_task]


class WatchedBook(DictBook):
    """Whoever watches sees each record that changes, before and after."""

    def __init__(self) -> None:
        super().__init__()
        self._watchers: list[Callable[[Message | None, Message], None]] = []

    def watch(self, watcher: Callable[[Message | None, Message], None]) -> None:
        self._watchers.append(watcher)

    def put(self, kind: Kind[M], record_id: str, message: M, /) -> None:
        before = self.records.get((kind.name, record_id))
        super().put(kind, record_id, message)
        if before != message:
            for watcher in self._watchers:
                watcher(before, self.records[kind.name, record_id])


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
        self._fleet.say(decide(self._fleet.book))

    async def intend(self, decide: Callable[[WalleTransaction], bool]) -> MayBegin | None:
        return _Now() if decide(self._fleet.book) else None


class _Now:
    def check(self) -> None:
        """It may."""
