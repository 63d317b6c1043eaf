"""The reach of the CMS's calls about tasks: their hosts and instances, an issuer's identities."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from cms.ledger.book import TaskLedger
from cms.ledger.claims import claim_of
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.states import State
from cms.ledger.tasks import Task
from cms.ledger.why import BudgetView, Why
from cmspb.storage.v1 import ledger_pb2
from serving.calls.methods import Call
from serving.errors import OutOfReach
from serving.rights.access import OUTSIDE, READERS, Access
from serving.rights.patterns import IdentityPattern
from serving.rights.reach import Of, checked_reach, stored_reach
from serving.rights.rules import Role

FLEETLOCK: Final = "fleetlock"  # the issuer of locks, and how their ids begin
_STAFF: Final = (Role.OPERATOR, Role.ADMIN)
OWN_TASK: Final = stored_reach(Of.TASK)
"""The acting process compares the owner: a task of somebody else is not there."""


def owner_of(call: Call) -> str:
    """The owner of a caller's tasks; empty without security."""
    return call.access.name


def may_see(access: Access, task: ledger_pb2.Task, book: TaskLedger) -> bool:
    """Whether a caller is shown a task: its own, or one whose hosts and instances are all within reach."""
    return access.is_unlimited or task.owner == access.name or _reaches(access, task, book)


class CmsAccessChecks:
    """Each check takes a request and the caller's access, and raises PermissionDenied or OutOfReach."""

    def __init__(
        self,
        book: TaskLedger,
        issuers: Mapping[str, Collection[IdentityPattern]],
        tasks: Mapping[str, ledger_pb2.Task],
    ) -> None:
        """`issuers`: who may speak for each of them; `tasks`: what is stored, by id."""
        self._book, self._tasks = book, tasks
        self._issuers = {**issuers, FLEETLOCK: ()}  # nobody may speak for it: locks come only by its own calls
        self._begins = {issuer: _beginning_of(issuer) for issuer in self._issuers}
        self.created = checked_reach(Of.TASK, lambda request, access: self.check_task(request.task, access))
        self.shown_task = stored_reach(Of.TASK, self._check_task_visible)
        self.planned = checked_reach(Of.NODE, self._check_plan_hosts)
        self.declared = checked_reach(Of.TASK, lambda request, access: self.check_issuer(request.issuer, access))

    def check_task(self, task: Any, access: Access, *, is_new: bool = True) -> None:
        """Raises PermissionDenied unless all that a task takes down is within reach, and its issuer the caller's.

        Args:
            task: as requested, or as stored.
            is_new: an unknown instance of a new task may be anybody's; of a stored task it is gone: nothing goes down.
        """
        if is_new:
            self._check_id(task.id, access)
            self.check_issuer(task.issuer, access)
        elif task.issuer != FLEETLOCK:
            self.check_issuer(task.issuer, access)
        if access.is_unlimited:
            return
        for host in task.host:
            access.check_node(host, READERS, "hosts")
        for one in task.instance:
            if getattr(one, "gone", False):
                continue
            instance = self._book.picture.instances.get(InstanceKey(one.location, one.id))
            is_within = instance is not None and access.covers(instance.service, instance.host, cluster=one.location)
            if not is_within and (is_new or instance is not None):
                access.deny(f"instance {one.id}", key=one.id, scope=f"{OUTSIDE}, or is not known to the CMS")

    def visible_why(self, why: Why, access: Access, task: ledger_pb2.Task) -> Why:
        """Why a task stands so, without the names of others' tasks and instances."""
        services = self._services_asked_for(task, access)
        if access.is_unlimited and services is None:
            return why
        sees_task, sees_instance = self._sight(access, services)
        shown = why.visible_part(sees_task, sees_instance)
        return shown if task.owner == access.name else self._own_part(shown, task, sees_task)

    def _own_part(self, why: Why, task: ledger_pb2.Task, sees_task: Callable[[Task], bool]) -> Why:
        """Leave out what is needed only by tasks of its group that the caller may not see."""
        known = self._book.tasks.get(task.id)
        members = self._book.members(known.unit) if known is not None and known.group else []
        seen = [one for one in members if sees_task(one)]
        if len(seen) == len(members) or known is None:
            return why
        needed = claim_of([one for one in seen if one.disrupts], self._book.picture, self._book.limits, ()).all
        waits = known.state in (State.WAITING, State.REJECTED)
        message = "it waits together with others of its group" if waits else why.message
        return replace(why, message=message, budgets=[one for one in why.budgets if one.name in needed])

    def visible_budget(self, view: BudgetView, access: Access) -> BudgetView:
        """How a budget stands, without the names of others' tasks and instances."""
        return view if access.is_unlimited else view.visible_part(*self._sight(access))

    def _services_asked_for(self, task: ledger_pb2.Task, access: Access) -> frozenset[str] | None:
        """The services of the instances that the caller's own task names; None: the caller is told of others as well.

        A caller that asks for many services (Nanny) passes what it is told on to the owners of these alone.
        """
        is_staff = not access.is_checked or access.reaches_all(_STAFF)
        if is_staff or not task.instance or task.owner != access.name:
            return None
        return self._services_of(task)

    def _services_of(self, task: ledger_pb2.Task) -> frozenset[str]:
        left = (one for one in task.instance if not one.gone)
        found = (self._book.picture.instances.get(InstanceKey(one.location, one.id)) for one in left)
        return frozenset(one.service for one in found if one is not None)

    def _sight(
        self, access: Access, services: frozenset[str] | None = None
    ) -> tuple[Callable[[Task], bool], Callable[[Instance], bool]]:
        """Which tasks and instances the caller may be told of; `services`: of these only."""

        def sees_task(task: Task) -> bool:
            stored = self._tasks.get(task.id)
            if stored is None or not may_see(access, stored, self._book):
                return False
            return services is None or (not stored.host and self._services_of(stored) <= services)

        def sees_instance(one: Instance) -> bool:
            is_asked_for = services is None or one.service in services
            return is_asked_for and access.covers(one.service, one.host, cluster=one.key.location)

        return sees_task, sees_instance

    def _check_task_visible(self, request: Any, access: Access) -> None:
        task = self._tasks.get(request.id)
        if task is not None and not may_see(access, task, self._book):
            raise OutOfReach(f"there is no task {request.id}", key=request.id)

    def _check_plan_hosts(self, request: Any, access: Access) -> None:
        if not access.is_unlimited:
            for host in request.host:
                access.check_node(host, READERS, "host")

    def _check_id(self, task_id: str, access: Access) -> None:
        """Raises PermissionDenied: an id that begins like this is another issuer's, which would find it taken.

        If it begins with the names of two issuers, it is that of the longer name.
        """
        found = ((issuer, begins.match(task_id)) for issuer, begins in self._begins.items())
        ends = {issuer: match.end() for issuer, match in found if match is not None}
        for issuer, end in ends.items():
            if end == max(ends.values()) and not self._speaks_for(issuer, access):
                access.deny(
                    f"id {task_id[:60]}", key=task_id, scope=f"begins as those of issuer {issuer} do: use another"
                )

    def _speaks_for(self, issuer: str, access: Access) -> bool:
        bound = self._issuers.get(issuer)
        return bound is None or any(pattern.match(access.name) is not None for pattern in bound)

    def check_issuer(self, issuer: str, access: Access) -> None:
        """Raises PermissionDenied: the CMS's configuration lets other identities speak for this issuer."""
        if not self._speaks_for(issuer, access):
            why = "is bound to other identities: see --task-issuer, --healer and --rollout-issuer of the CMS"
            access.deny(f"issuer {issuer}", key=issuer, scope=why)


def _beginning_of(issuer: str) -> re.Pattern[str]:
    """How ids of an issuer's tasks begin: `nanny-web-3-0-2` is `nanny`'s, `walle-prod.17` is `wall-e`'s."""
    return re.compile(f"(?:{re.escape(issuer)}|{re.escape(issuer.replace('-', ''))})[^A-Za-z0-9]")


def _reaches(access: Access, task: ledger_pb2.Task, book: TaskLedger) -> bool:
    instances = ((one.location, book.picture.instances.get(InstanceKey(one.location, one.id))) for one in task.instance)
    return all(access.covers_node(host) for host in task.host) and all(
        instance is not None and access.covers(instance.service, instance.host, cluster=location)
        for location, instance in instances
    )
