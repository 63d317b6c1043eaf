"""The ledger as entries of `cms.v1.LedgerService`, and back. Pure.

An entry has what a decision looks at and nothing else: no comment of a task, no reason of an instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Final

from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.calendar import Calendar, CalendarRule, Freeze, Window
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.limits import DomainLimit, DomainLimits, Site
from cms.ledger.states import State
from cms.ledger.tasks import Need, Task, UnitKey
from cms.records import budget_of
from cmspb.v1 import cms_pb2, record_pb2
from control.amounts import Amount

_NEVER: Final = float("inf")


def state_entries(book: TaskLedger) -> Iterator[record_pb2.LedgerEntry]:
    """All that a ledger knows."""
    start = record_pb2.LedgerStart(rule=asdict(book.rules), location=sorted(book.locations))
    start.wall_offset_s = book.wall_offset_s
    for unit, since in book.stuck_since.items():
        start.stuck.add(owner=unit.owner, group_id=unit.group, task_id=unit.task_id, since_s=since)
    yield record_pb2.LedgerEntry(start=start)
    yield budgets_entry(book.picture.budgets)
    yield limits_entry(book.limits)
    yield calendar_entry(book.calendar)
    yield certain_entry(book.picture.certain)
    for instance in book.picture.instances.values():
        yield instance_entry(instance, is_doubted=bool(book.picture.hearing.doubt(instance)))
    for task in book.tasks.values():
        yield task_entry(task)


def rules_of(start: record_pb2.LedgerStart) -> Rules:
    """The timing rules of a record; those that it lacks are as by default."""
    known = asdict(Rules())
    return replace(Rules(), **{name: value for name, value in start.rule.items() if name in known})


def stuck_of(start: record_pb2.LedgerStart) -> dict[UnitKey, float]:
    """Units that waited for something broken, and since when."""
    return {UnitKey(one.owner, one.group_id, one.task_id): one.since_s for one in start.stuck}


# --- instances and tasks ----------------------------------------------------------------------------------------------


def instance_entry(instance: Instance, *, is_doubted: bool) -> record_pb2.LedgerEntry:
    """An instance; doubted: it cannot be counted on though it is ready."""
    made = record_pb2.LedgerInstance(
        ref=_ref(instance.key),
        service=instance.service,
        host=instance.host,
        is_wanted=instance.is_wanted,
        is_ready=instance.is_ready,
        was_ready=instance.was_ready,
        cluster=instance.cluster,
        labels=instance.labels,
        is_doubted=is_doubted,
        is_silent=instance.is_silent,
    )
    return record_pb2.LedgerEntry(instance=made)


def instance_of(one: record_pb2.LedgerInstance) -> Instance:
    """The ledger's instance."""
    return Instance(
        key_of(one.ref),
        one.service,
        one.host,
        one.is_wanted,
        one.is_ready if one.HasField("is_ready") else None,
        one.was_ready,
        one.cluster,
        dict(one.labels),
        is_silent=one.is_silent,
    )


def instance_gone_entry(key: InstanceKey) -> record_pb2.LedgerEntry:
    """The entry for an instance that is gone."""
    return record_pb2.LedgerEntry(instance_gone=_ref(key))


def task_entry(task: Task) -> record_pb2.LedgerEntry:
    """A task as it stands."""
    made = record_pb2.LedgerTask(
        id=task.id,
        order=task.order,
        action=task.action,
        host=task.hosts,
        instance=[_ref(key) for key in task.instances],
        owner=task.owner,
        issuer=task.issuer,
        group_id=task.group,
        confirm=task.confirm,
        state=task.state,
        need=task.need.name.lower(),
        added_s=task.added_at,
        polled_s=task.polled_at,
        since_s=task.since,
        asked_s=task.asked_at,
        overdue_s=task.overdue_at if task.overdue_at != _NEVER else None,
        max_failures=task.max_failures,
        order_begin_s=task.order_began_at,
        leave_out=sorted(task.leave_out),
    )
    return record_pb2.LedgerEntry(task=made)


def task_of(one: record_pb2.LedgerTask) -> Task:
    """The ledger's task. Raises ValueError, KeyError: a newer version wrote it."""
    return Task(
        one.id,
        one.order,
        one.action,
        tuple(one.host),
        tuple(key_of(ref) for ref in one.instance),
        one.owner,
        one.issuer,
        one.group_id,
        one.confirm,
        State(one.state),
        one.added_s,
        one.polled_s,
        one.since_s,
        one.overdue_s if one.HasField("overdue_s") else _NEVER,
        Need[one.need.upper()],
        one.asked_s,
        max_failures=one.max_failures,
        leave_out=frozenset(one.leave_out),
        order_began_at=one.order_begin_s if one.HasField("order_begin_s") else None,
    )


def key_of(ref: cms_pb2.InstanceRef) -> InstanceKey:
    """The ledger's name of an instance."""
    return InstanceKey(ref.location, ref.id)


def _ref(key: InstanceKey) -> cms_pb2.InstanceRef:
    return cms_pb2.InstanceRef(location=key.location, id=key.id)


def certain_entry(certain: Iterable[str]) -> record_pb2.LedgerEntry:
    """The locations that are up to date."""
    return record_pb2.LedgerEntry(certain=record_pb2.LedgerLocations(location=sorted(certain)))


# --- rules ------------------------------------------------------------------------------------------------------------


def budgets_entry(budgets: Budgets) -> record_pb2.LedgerEntry:
    """All budgets."""
    made = record_pb2.LedgerBudgets(default_max_unavailable=str(budgets.default))
    for _, budget in sorted(budgets.by_name.items()):
        made.budget.append(_budget_message(budget))
    return record_pb2.LedgerEntry(budgets=made)


def budgets_of(made: record_pb2.LedgerBudgets) -> Budgets:
    """The ledger's budgets. Raises ValueError, InvalidRequest."""
    return Budgets(map(budget_of, made.budget), Amount.parse(made.default_max_unavailable))


def _budget_message(budget: Budget) -> cms_pb2.Budget:
    made = cms_pb2.Budget(
        name=budget.name,
        service=budget.service,
        labels=budget.labels,
        cluster=sorted(budget.clusters),
        min_ready=str(budget.min_ready or ""),
        max_unavailable=str(budget.max_unavailable or ""),
        reject_impossible=budget.rejects,
    )
    if budget.brief is not None:
        made.brief.max_unavailable, made.brief.within = str(budget.brief), f"{budget.within_s:.6f}s"
    return made


def limits_entry(limits: DomainLimits) -> record_pb2.LedgerEntry:
    """All domain limits, and where hosts stand."""
    made = record_pb2.LedgerLimits()
    for name, limit in limits.by_name.items():
        made.limit.add(name=name, kind=limit.kind, most=limit.most, within=limit.within)
    for host, site in limits.sites.items():
        made.site[host].CopyFrom(record_pb2.HostSite(**asdict(site)))
    return record_pb2.LedgerEntry(limits=made)


def limits_of(made: record_pb2.LedgerLimits) -> DomainLimits:
    """The ledger's limits, held by nobody yet."""
    limits = [DomainLimit(one.name, one.kind, one.most, dict(one.within)) for one in made.limit]
    sites = {host: Site(one.dc, one.rack, one.switch, one.project) for host, one in made.site.items()}
    return DomainLimits(limits, sites)


def calendar_entry(calendar: Calendar) -> record_pb2.LedgerEntry:
    """All windows and freezes."""
    made = record_pb2.LedgerCalendar()
    for rule in calendar.rules:
        one = made.rule.add(
            name=rule.name,
            service=rule.service,
            project=rule.project,
            zone=rule.zone,
            margin_s=rule.margin_s,
            overrun_s=rule.overrun_s,
        )
        for window in rule.windows:
            one.window.add(day=sorted(window.days), begin_minute=window.begin, end_minute=window.end)
        for freeze in rule.freezes:
            one.freeze.add(begin_s=freeze.begin, end_s=freeze.end, reason=freeze.reason, repairs=freeze.repairs)
    return record_pb2.LedgerEntry(calendar=made)


def calendar_of(made: record_pb2.LedgerCalendar) -> Calendar:
    """The ledger's calendar."""
    return Calendar(
        tuple(
            CalendarRule(
                one.name,
                one.service,
                one.project,
                one.zone,
                tuple(Window(frozenset(w.day), w.begin_minute, w.end_minute) for w in one.window),
                one.margin_s,
                tuple(Freeze(f.begin_s, f.end_s, f.reason, f.repairs) for f in one.freeze),
                one.overrun_s,
            )
            for one in made.rule
        )
    )
