"""Wall-E on the kit: its records, orders and reconcilers. Only the acting process decides; all answer reads."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from google.protobuf.message import Message

from control import Change, Controller, Events, Refused, UnreadableEvent
from control.order_rights import OrderRights
from hqclient.backoff import backoff_limit_s
from serving.rights.access import Access
from serving.rights.patterns import Patterns
from walle.approval.protocol import DEFAULT, CmsFailure
from walle.approval.tasks import Collector, is_ahead, new_id
from walle.fuses.fuse import Automation, Moment
from walle.fuses.limits import Limits
from walle.healing.backoff import Backoff
from walle.healing.decision import hosts_ahead
from walle.healing.incidents import Incidents
from walle.healing.scheme import checks_in, scheme_of
from walle.maintenance import tasks
from walle.notices import Way
from walle.process.healer import Healer
from walle.process.outbox import Outbox
from walle.process.parts import CmsEvents, ConfiguredProviders
from walle.process.planner import Planner, SuspensionPort
from walle.process.storing import LedgerClock, Storing
from walle.reach import ORDER, WalleAccessChecks
from walle.tables import IN_USE
from walle.texts import describe_absence
from walle.work import inventory, orders, projects, restored, scenarios
from walle.work.book import (
    DEFAULT_TASKS,
    FUSE,
    HOST,
    MACHINE,
    NOTICE,
    PROJECT,
    RESTORED,
    SCENARIO,
    SCENARIO_HOSTS,
    Notice,
    WalleTransaction,
    World,
)
from walle.work.notice_records import acknowledge_notice
from walle.work.orders import says_news
from walle.work.restored import is_looked_at, notice, take_listing, why_unclear
from walle.work.scenario_records import Scenarios, read_scenario
from wallepb.v1.host_pb2 import Host, Machine
from wallepb.v1.project_pb2 import SEVERITY_WARNING, Project, Recipient, UnknownTask
from wallepb.v1.service_pb2 import HostChecks, Order, ReportChecksRequest

log = logging.getLogger(__name__)

GLOBAL: Final = "global"
HOSTS_IN_EVENT: Final = 7
_REPORT_SUBJECTS: Final = 128
INVENTORY: Final = "inventory"  # its orders are handled one after the other


class Handling:
    """`handle` is called by the kit at the acting process, again if its transaction failed."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        machines: Mapping[str, Machine],
        world: World,
        now: Callable[[], Moment],
        unclear: Callable[[Iterable[str]], str],
        within_reach: Callable[[Iterable[str], str], list[str]],
    ) -> None:
        """`within_reach`: returns which of some hosts an author's stored access reaches, by what is in memory."""
        self._hosts, self._machines, self._world, self._now, self._unclear = hosts, machines, world, now, unclear
        self._within_reach = within_reach

    def handle(self, change: Change, subject: str, order: Order) -> None:
        what, by, world, now = order.WhichOneof("what"), order.by, self._world, self._now()
        known = self._machines.values()
        handlers: dict[str | None, Callable[[], object]] = {
            "create_project": lambda: projects.create_project(change, order.create_project, by),
            "update_project": lambda: projects.update_project(change, order.update_project, by),
            "delete_project": lambda: projects.delete_project(
                change, order.delete_project, self._hosts_of(order.delete_project.project)
            ),
            "switch_automation": lambda: projects.switch_automation(change, order.switch_automation, by, now),
            "import_machines": lambda: orders.import_hosts(change, order, world, now, known),
            "remove_machine": lambda: inventory.remove_machine(change, order.remove_machine.machine),
            "add_host": lambda: orders.add_host(change, order, world, now, known),
            "change_host": lambda: orders.change_host(change, order, world, now),
            "set_host_state": lambda: orders.set_host_state(change, order.set_host_state, by),
            "start_operation": lambda: orders.start_operation(change, order.start_operation, by, world, now),
            "cancel_operation": lambda: orders.cancel_operation(change, order.cancel_operation, by, now),
            "add_scenario": lambda: self._add_scenario(change, order),
            "agree_scenario": lambda: scenarios.agree_scenario(change, order.agree_scenario, by, now),
            "steer_scenario": lambda: scenarios.steer_scenario(change, order.steer_scenario, by, now),
            "end_scenario": lambda: scenarios.end_scenario(change, order.end_scenario, by, now),
            "release_tasks": lambda: restored.release_tasks(change, order.release_tasks, by),
            "acknowledge_notice": lambda: acknowledge_notice(change, order.acknowledge_notice, by, now),
            "checks": lambda: orders.take_checks(change, order.checks, now),
            "reports": lambda: orders.take_reports(change, order.reports.hosts, now),
        }
        if what is None or what not in handlers:
            raise UnreadableEvent(f"order {what} is of a kind that this version does not know: upgrade it")
        if what != "add_scenario" or order.add_scenario.switch:  # for waves only hosts within reach are selected
            self._world.check_reach(change, what, getattr(order, what), order.access)
        if order.may_import:
            self._world.check_reach(change, "import_host", getattr(order, what), order.access)
        handlers[what]()

    def _add_scenario(self, change: Change, order: Order) -> None:
        if why := scenarios.why_no_room(change.records(SCENARIO).values(), order.by):
            raise Refused(why, "RESOURCE_EXHAUSTED")
        names = self._selected_hosts(order)
        if why := self._unclear(names):
            raise Refused(f"scenario {order.add_scenario.scenario}: {why}")
        scenarios.add_scenario(change, order, names, self._world, self._now(), self._hosts.get)

    def _hosts_of(self, project: str) -> Iterator[str]:
        return (host.name for host in self._hosts.values() if host.project == project)

    def _selected_hosts(self, order: Order) -> list[str]:
        """The hosts of a scenario: all behind its switch, or those named and those in use that a pattern means."""
        wanted = order.add_scenario
        if wanted.switch:
            behind = (host for host in self._hosts.values() if host.location.switch == wanted.switch)
            return [host.name for host in behind if wanted.dc in ("", host.location.dc)]
        named = [name for name in dict.fromkeys(wanted.hosts) if "*" not in name]
        if lost := set(named).difference(self._within_reach(named, order.access)):
            raise Refused(describe_absence("host", min(lost)), "NOT_FOUND")
        patterns = [name for name in wanted.hosts if "*" in name]
        if not patterns and wanted.hosts:
            return named
        matching, chosen = Patterns(patterns or ["*"]), set(named)
        selected = (
            host.name
            for host in self._hosts.values()
            if host.name in matching
            and host.name not in chosen
            and host.state in IN_USE
            and wanted.project in ("", host.project)
        )
        return [*named, *sorted(self._within_reach(selected, order.access))]


_OF_SCENARIOS: Final = ("agree_scenario", "end_scenario", "steer_scenario")


def _make_reach_check(
    rights: OrderRights, hosts: Mapping[str, Host]
) -> Callable[[WalleTransaction, str, Message, str], None]:
    """The check of `World.check_reach`, by the records of a transaction.

    A scenario may have more hosts than a transaction can read: they are looked up in memory, and each again before its
    work.
    """

    def check_reach(book: WalleTransaction, what: str, order: Message, access: str) -> None:
        def check(now: Access) -> None:
            reaches = WalleAccessChecks(
                hosts.get if what in _OF_SCENARIOS else partial(book.get, HOST),
                partial(book.get, PROJECT),
                partial(read_scenario, book),
                notice=partial(book.get, NOTICE),
            )
            reaches.order_check(what)(order, now)

        rights.check(access, ORDER, check)

    return check_reach


LOOK_EVERY_S: Final = 5.0
COLLECT_EVERY_S: Final = 300.0
LOOK_AGAIN_S: Final = 10.0  # for a task seen once; and, doubled with each look, until a person has reviewed tasks
_WORKERS: Final = 32


def _collected_at(project: str, url: str) -> str:
    """The name of a project's CMS for the collector."""
    return f"{project} {url}"


def reports_subject(host: str) -> str:
    """All reports of a host have the same subject, which keeps their order; a call's reports share a few."""
    return f"reports/{zlib.crc32(host.encode()) % _REPORT_SUBJECTS}"


class WalleSupervisor:
    """All parts of Wall-E. `run` ends with the error of a part that dies.

    Attributes:
        orders: subjects are `host/NAME`, `inventory`, `project/ID`, `scenario/ID`, `global`, and `scenarios/HASH` of an
            author for new ones, which are counted one after the other.
        world: what decisions know in addition to the records.
    """

    def __init__(
        self,
        controller: Controller,
        installation: str,
        global_limits: Limits,
        ways: Sequence[Way],
        recipients: Callable[[str], Sequence[Recipient]],
        make_parts: Callable[[Storing, Mapping[str, Project], CmsEvents], ConfiguredProviders],
        silence: SuspensionPort,
        rng: random.Random,
        settle_ms: int,
    ) -> None:
        self.controller = controller
        self.hosts, self.projects = controller.records(HOST), controller.records(PROJECT)
        self.fuses, heads = controller.records(FUSE), controller.records(SCENARIO)
        self.scenarios = Scenarios(heads, controller.records(SCENARIO_HOSTS))
        self.machines = controller.records(MACHINE)
        controller.records(DEFAULT_TASKS)
        self.restored = controller.records(RESTORED)
        self.notices = controller.records(NOTICE)
        self.reaches = WalleAccessChecks(
            self.hosts.get, self.projects.get, self.scenarios.get, self.machine_named, self.notices.get
        )
        self._name = installation
        self.ledger = LedgerClock(controller, self._take_word)
        self.storing = Storing(controller, self.ledger.now, recipients)
        self.outbox = Outbox(controller, self.storing, ways, self.ledger.now, rng)
        self.cms_events = CmsEvents(controller.clock.now, self.outbox.send)
        self.world = World(installation, global_limits, lambda: new_id(self.ledger.now().ms), Incidents(), settle_ms)
        self.world.incidents.project = self.projects.get
        self.world.epoch = lambda: controller.restored_epoch
        self.world.check_reach = _make_reach_check(controller.rights, self.hosts)
        self.world.is_reached = lambda access, name: bool(self._within_reach([name], access))
        self.world.look_near = self._look_at_places
        self.world.hosts_ahead = self._hosts_ahead
        self.world.why_stopped = self.stop_order
        self.parts = parts = make_parts(self.storing, self.projects, self.cms_events)
        self._collector = Collector(lambda: self.world.installation)
        self._collecting = Backoff(rng)
        self._holders: dict[str, str] = {}  # by host, the scenario that holds it
        self._held: dict[str, set[str]] = {}  # the reverse
        self._dns_checks: dict[str, frozenset[str]] = {}  # by project, those that ask for DNS fixes
        self._looks: Counter[str] = Counter()  # by project, since the store was restored
        healer = Healer(self.storing, parts, self.world, self.ledger.now, rng)
        planner = Planner(
            self.storing,
            self.scenarios,
            parts,
            silence,
            self.world,
            self.ledger.now,
            self._unclear,
            self._held_hosts,
            rng,
        )
        handling = Handling(self.hosts, self.machines, self.world, self.ledger.now, self._unclear, self._within_reach)
        self.orders: Events[Order] = controller.events("order", Order, handling.handle)
        dns = Healer(self.storing, parts, self.world, self.ledger.now, rng, Automation.DNS)
        healing = controller.reconcile("host", healer.reconcile, lambda: list(self.hosts), workers=_WORKERS)
        self._dns = controller.reconcile("dns", dns.reconcile, lambda: filter(self._may_need_dns, list(self.hosts)))
        planning = controller.reconcile("scenario", planner.reconcile, lambda: list(self.scenarios))
        looking = controller.reconcile("garbage", self._look_at_tasks, lambda: list(self.projects), while_closed=True)
        # Existing projects are checked when this process begins to act; new ones have nothing to collect yet.
        self.projects.listen(lambda name: looking.trigger(name, 0.0 if self.world.epoch() else COLLECT_EVERY_S))
        self.hosts.listen(self._note_holder)
        self.hosts.listen(healing.trigger)
        self.hosts.listen(self._trigger_dns)
        self.projects.listen(self._trigger_dns_of)
        heads.listen(planning.trigger)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(), name="controller")
            group.create_task(self._look_at_racks(), name="racks")

    async def close(self) -> None:
        """Close the parts, after `run` has ended."""
        await self.parts.close()

    def stop_order(self) -> str:
        """Who stopped everything (`walle kill`), and why; empty: nobody did."""
        frozen = self.controller.frozen
        return f"Wall-E was stopped by {frozen.by}: {frozen.reason} (`walle unkill`)" if frozen is not None else ""

    def _take_word(self, word: str) -> None:
        self.world.installation = f"{self._name}.{word}"

    def _hosts_ahead(self, host: Host) -> list[str]:
        project, fuse = self.projects.get(host.project), self.fuses.get(host.project)
        is_off = any(one is not None and one.healing.off for one in (fuse, self.fuses.get(GLOBAL)))
        if project is None or is_off or not any(check.failing for check in host.check):
            return []
        now_ms, world = self.ledger.now().ms, self.world
        return hosts_ahead(host, self.hosts.values(), project, world.incidents, now_ms, world.settle_ms)

    def _may_need_dns(self, name: str) -> bool:
        host = self.hosts.get(name)
        if host is None or host.HasField("dns_operation"):
            return host is not None
        return any(check.failing and check.name in self._dns_checks_of(host.project) for check in host.check)

    def _dns_checks_of(self, project: str) -> frozenset[str]:
        if (known := self._dns_checks.get(project)) is None:
            found = self.projects.get(project) or Project(id=project)
            known = self._dns_checks[project] = frozenset(checks_in(scheme_of(found), Automation.DNS))
        return known

    def _note_holder(self, name: str) -> None:
        if before := self._holders.pop(name, ""):
            self._held[before].discard(name)
            if not self._held[before]:
                del self._held[before]
        if scenario := self._scenario_of(name):
            self._holders[name] = scenario
            self._held.setdefault(scenario, set()).add(name)

    def _scenario_of(self, host: str) -> str:
        found = None if host in self.hosts.unreadable else self.hosts.get(host)
        return found.scenario if found is not None else ""

    def _held_hosts(self, scenario: str) -> list[str]:
        """Names of the hosts that a scenario holds. Nobody tells of hosts that are gone after a reload."""
        return sorted(name for name in self._held.get(scenario, ()) if self._scenario_of(name) == scenario)

    def _within_reach(self, names: Iterable[str], access: str) -> list[str]:
        """Return the names that the author was allowed to reach when it gave the order, and still is."""
        reached = list(names)

        def narrow(now: Access) -> None:
            reached[:] = [name for name in reached if self.reaches.covers_host(name, now)]

        self.controller.rights.check(access, ORDER, narrow)
        return reached

    def _trigger_dns(self, name: str) -> None:
        if self._may_need_dns(name):
            self._dns.trigger(name)

    def _trigger_dns_of(self, project: str) -> None:
        """Look at the hosts of a project whose scheme may have changed."""
        self._dns_checks.pop(project, None)
        for host in self.hosts.values():
            if host.project == project:
                self._trigger_dns(host.name)

    def machine_named(self, text: str) -> str:
        """The name of a machine by its inventory number; anything else is a name."""
        wanted = inventory.inventory_number(text) if text not in self.machines else 0
        return next((one.name for one in self.machines.values() if wanted and one.inventory == wanted), text)

    async def tell(
        self, reports: Iterable[HostChecks], by: str, note: Callable[[str], object] = lambda host: None
    ) -> list[str]:
        """Store reports that change something; returns the unknown hosts. `note`: called for each that is stored."""
        unknown: list[str] = []
        news: dict[str, list[HostChecks]] = {}
        now = self.ledger.now()
        for report in reports:
            host, subject = self.hosts.get(report.host), reports_subject(report.host)
            if host is None:
                unknown.append(report.host)
            elif subject in news or says_news(host, report, now) or self.orders.pending(subject):
                note(report.host)
                said = (f"{one.name} {'fails' if one.failing else 'is fine'}" for one in report.check)
                log.info("host %s: %s says: %s", report.host, by, ", ".join(said) or "it has started")
                news.setdefault(subject, []).append(report)
        await asyncio.gather(*(self._store_reports(subject, mine, by) for subject, mine in news.items()))
        return unknown

    async def _store_reports(self, subject: str, reports: Sequence[HostChecks], by: str) -> None:
        """A few hosts in an event, in their order: events are handled sixteen in a transaction of 128 writes."""
        for first in range(0, len(reports), HOSTS_IN_EVENT):
            order = Order(reports=ReportChecksRequest(hosts=reports[first : first + HOSTS_IN_EVENT]), by=by)
            await self.orders.store(subject, order, request_id=secrets.token_hex(16), by=by)

    async def _look_at_racks(self) -> None:
        """Look at racks in every process, so that each can show incidents; only the acting one acts on them."""
        await self.controller.loaded.wait()
        self.world.incidents.watched_since_ms = self.ledger.now().ms
        while True:
            self._look_at_places()
            await asyncio.sleep(LOOK_EVERY_S)

    def _look_at_places(self, near: Host | None = None) -> None:
        began = self.world.incidents.observe(self.hosts.values(), self.ledger.now().ms, near)
        if self.controller.is_acting:
            self.outbox.send(
                Notice(SEVERITY_WARNING, "", f"incident: {one}", cause=f"incident: {one.place}") for one in began
            )

    async def _look_at_tasks(self, project: str) -> float | None:
        """Delete our tasks that belong to nothing; in a restored store, only after people have reviewed them."""
        setting, epoch = self.projects.get(project), self.world.epoch()
        if setting is None:
            return None
        if epoch:
            await self._notice(project, "")
        for one in setting.cms:
            try:
                # The default CMS's tasks are deleted with their operations, in the same store.
                if self._collecting.may_try(project, one.url, self.ledger.now().ms):
                    listed = {} if one.url == DEFAULT else await self.parts.cms(project, one.url).tasks()
                    await self._compare(project, one.url, listed)
                    self._collecting.note(project, one.url, self.ledger.now().ms, failed=False)
            except CmsFailure:
                self._collecting.note(project, one.url, self.ledger.now().ms, failed=True)
        if is_looked_at(self.restored.get(project), epoch):
            self._looks.pop(project, None)
            is_suspicious = any(_collected_at(project, one.url) in self._collector.seen_once for one in setting.cms)
            return LOOK_AGAIN_S if is_suspicious else COLLECT_EVERY_S
        self._looks[project] += 1
        return backoff_limit_s(self._looks[project], LOOK_AGAIN_S, COLLECT_EVERY_S)

    async def _compare(self, project: str, url: str, listed: Mapping[str, tuple[str, ...]]) -> None:
        """Compare the tasks of a CMS with what is known here."""
        epoch, wanted = self.world.epoch(), set(self._wanted_task_ids())
        strays, now_ms = sorted(self._collector.unknown(listed, wanted)), self.ledger.now().ms
        restored = self.restored.get(project)
        if is_looked_at(restored, epoch):
            seen = {task.id for task in restored.task} if restored is not None else set()
            new = (one for one in strays if one not in seen)
            if ahead := next((one for one in new if is_ahead(self.world.installation, one, now_ms)), ""):
                newer = f"CMS {url} has task {ahead}, which is newer than anything in this store"
                await self._notice(
                    project,
                    f"{newer}: the store was probably restored from a backup; see docs/walle.md#the-store-was-restored",
                )
        if not is_looked_at(self.restored.get(project), epoch):
            unknown = [UnknownTask(cms=url, id=one, host=listed[one]) for one in strays]
            await self.storing.transact(lambda book: take_listing(book, project, epoch, url, unknown))
        elif self.controller.is_open:
            for task_id in self._collector.look(_collected_at(project, url), listed, wanted):
                await self.parts.cms(project, url).delete(task_id)

    async def _notice(self, project: str, evidence: str) -> None:
        epoch, now = self.world.epoch(), self.ledger.now()
        await self.storing.decide(lambda book: notice(book, project, epoch, now, evidence))

    def _unclear(self, names: Iterable[str]) -> str:
        return why_unclear(names, self.hosts, self.projects, self.restored, self.world)

    def _wanted_task_ids(self) -> Iterator[str]:
        """Ids of all tasks that belong to something."""
        for host in self.hosts.values():
            yield from (task.id for task in (*host.operation.task, *host.operation.old_task))
        for scenario in self.scenarios.values():
            yield from (task.id for _, task in tasks(scenario))
