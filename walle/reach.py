"""The reach of each call: projects for their owners, hosts for who reaches their names, all for who has no scope.

Hosts belong to no service here, so a role that is granted for some services reaches a host only by owning its project.
The checks are made before a call, from memory, and again where an order takes effect, from its transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message

from serving.calls.methods import Call
from serving.errors import OutOfReach, PermissionDenied
from serving.rights.access import Access
from serving.rights.reach import Check
from serving.rights.rules import AuditLevel, Role, Rule
from walle.texts import describe_absence
from wallepb.v1.host_pb2 import Host, Location
from wallepb.v1.project_pb2 import SCENARIO_KIND_SWITCH_MAINTENANCE, NoticeRecord, Project, Scenario
from wallepb.v1.service_pb2 import STEERING_PAUSE

ORDER: Final = Rule(
    "change projects and hosts", frozenset({Role.UPLOADER, Role.OPERATOR, Role.ADMIN}), AuditLevel.ORDERS
)
REPORT: Final = Rule(
    "report checks", frozenset({Role.AGENT, Role.MONITOR, Role.OPERATOR, Role.ADMIN}), AuditLevel.DENIALS
)
_STAFF: Final = (Role.OPERATOR, Role.ADMIN)
_ADMIN: Final = (Role.ADMIN,)
_PRIVILEGED: Final = ("ignore_cms", "inventory", "bmc", "address", "location")
_REPORTERS: Final = (Role.AGENT, Role.MONITOR, *_STAFF)


def who(call: Call) -> str:
    """The caller's name as stored with orders; without authentication: its address."""
    identity = call.access.identity
    return identity.name if identity is not None else call.host or "anybody"


class WalleAccessChecks:
    """Each method takes a request and the caller's access, and raises PermissionDenied or OutOfReach."""

    def __init__(
        self,
        host: Callable[[str], Host | None],
        project: Callable[[str], Project | None],
        scenario: Callable[[str], Scenario | None],
        machine_named: Callable[[str], str] = str,
        notice: Callable[[str], NoticeRecord | None] = lambda _: None,
    ) -> None:
        """The arguments look records up: in memory, or in the transaction of an order.

        `machine_named`: the name of a machine that is given by name or number.
        """
        self._host, self._project, self._scenario, self._machine_named = host, project, scenario, machine_named
        self._notice = notice

    # --- orders -------------------------------------------------------------------------------------------------------

    def create_project(self, _request: Any, access: Access) -> None:
        _check_everything(access, "create projects")

    def project(self, request: Any, access: Access) -> None:
        if not (access.reaches_all(_STAFF) or self.owns(request.project, access)):
            raise OutOfReach(describe_absence("project", request.project), key=request.project)

    def automation(self, request: Any, access: Access) -> None:
        if request.project:
            self.project(request, access)
        else:
            _check_everything(access, "switch the automation of all projects", only_stops=not request.on)

    def check_host_addition(self, request: Any, access: Access) -> None:
        name = self._machine_named(request.host)
        if not (self.owns(request.project, access) or access.covers_node(name, _STAFF)):
            access.deny(f"host {request.host} in project {request.project}", _STAFF, name)
        _check_privileged(name, request, access)

    def check_host_change(self, request: Any, access: Access) -> None:
        self.host(request, access)
        name = self._machine_named(request.host)
        if request.project and not (self.owns(request.project, access) or access.covers_node(name, _STAFF)):
            raise OutOfReach(describe_absence("project", request.project), key=request.project)
        _check_privileged(name, request, access)

    def check_machine_import(self, request: Any, access: Access) -> None:
        for machine in request.machines:
            access.check_node(machine.name, _STAFF, "machines.name")
        for host in request.hosts:
            access.check_node(host.host, _STAFF, "hosts.host")

    def check_host_import(self, request: Any, access: Access) -> None:
        """Check an order that says more of a machine than that it is added or moved: an owner may say only that."""
        access.check_node(request.host, _STAFF, "host")

    def check_machine_removal(self, request: Any, access: Access) -> None:
        access.check_node(request.machine, _STAFF, "machine")

    def check_operation_start(self, request: Any, access: Access) -> None:
        self.host(request, access)
        _check_privileged(self._machine_named(request.host), request, access)

    def host(self, request: Any, access: Access) -> None:
        name = self._machine_named(request.host)
        if not self.covers_host(name, access):  # in the words of the request: it may be a number
            raise OutOfReach(describe_absence("host", request.host), key=name)

    def check_new_scenario(self, request: Any, access: Access) -> None:
        if request.kind == SCENARIO_KIND_SWITCH_MAINTENANCE:
            _check_everything(access, "plan the maintenance of a switch")
        for name in request.hosts:
            if "*" not in name:  # a pattern stands only for hosts within reach
                self._check_host(name, access)

    def check_agreement(self, request: Any, access: Access) -> None:
        self.project(request, access)
        scenario = self._scenario(request.scenario)
        if scenario is None or access.reaches_all(_STAFF):
            return
        hosts = (self._host(one.name) for one in scenario.host)
        if not any(host is not None and host.project == request.project for host in hosts):
            raise _no_scenario(request.scenario)

    def check_scenario_end(self, request: Any, access: Access) -> None:
        scenario = self._scenario(request.scenario)
        if scenario is not None and scenario.by != access.name:
            if not self.may_see_scenario(scenario, access):
                raise _no_scenario(request.scenario)
            what = f"end scenario {request.scenario} of somebody else"
            _check_everything(access, what, only_stops=not request.done)

    def check_notice(self, request: Any, access: Access) -> None:
        notice = self._notice(request.notice)
        if notice is None or not self.may_see_notice(notice, access):
            raise OutOfReach(describe_absence("notice", request.notice), key=request.notice)

    def check_steering(self, request: Any, access: Access) -> None:
        scenario = self._scenario(request.scenario)
        if scenario is not None and scenario.by != access.name:
            if not self.may_see_scenario(scenario, access):
                raise _no_scenario(request.scenario)
            what = f"steer scenario {request.scenario} of somebody else"
            _check_everything(access, what, only_stops=request.steering == STEERING_PAUSE)

    def everything(self, request: Any, access: Access) -> None:
        stops = isinstance(request, Message) and bool(getattr(request, "frozen", False))
        _check_everything(access, "stop all of Wall-E" if stops else "start all of Wall-E", only_stops=stops)

    def check_report(self, request: Any, access: Access) -> None:
        for report in request.hosts:
            for check in dict.fromkeys(one.name for one in report.check):
                if not may_report(access, report.host, check):
                    access.deny(f"check {check} of host {report.host}", _REPORTERS, report.host)
            if not access.covers_node(report.host, _REPORTERS):
                access.deny(f"host {report.host}", _REPORTERS, report.host)

    def order_check(self, what: str) -> Check:
        """The check of an order by its field in `Order`, which is made again when it takes effect."""
        return {
            "create_project": self.create_project,
            "update_project": self.project,
            "delete_project": self.project,
            "switch_automation": self.automation,
            "add_host": self.check_host_addition,
            "change_host": self.check_host_change,
            "set_host_state": self.host,
            "start_operation": self.check_operation_start,
            "cancel_operation": self.host,
            "add_scenario": self.check_new_scenario,
            "agree_scenario": self.check_agreement,
            "end_scenario": self.check_scenario_end,
            "steer_scenario": self.check_steering,
            "release_tasks": self.project,
            "import_machines": self.check_machine_import,
            "import_host": self.check_host_import,
            "remove_machine": self.check_machine_removal,
            "acknowledge_notice": self.check_notice,
        }[what]

    # --- reads --------------------------------------------------------------------------------------------------------

    def may_see_host(self, name: str, access: Access) -> bool:
        """Whether the caller may see this host: its name is within reach, or its project is the caller's."""
        if access.covers_node(name):
            return True
        host = self._host(name)
        return host is not None and self.owns(host.project, access)

    def may_see_scenario(self, scenario: Scenario, access: Access) -> bool:
        """Whether the caller may see this scenario: it is the caller's, or all of its hosts are within reach."""
        return scenario.by == access.name or all(self.may_see_host(one.name, access) for one in scenario.host)

    def may_see_notice(self, notice: NoticeRecord, access: Access) -> bool:
        """Whether the caller may see this notice: it says what executors and CMSs answered."""
        return self.may_address(notice.project, notice.host, access)

    def may_see_project(self, name: str, access: Access) -> bool:
        """Whether the caller may see this project: it owns it, or sees everything."""
        return access.reaches_all() or self.owns(name, access)

    def may_address(self, project: str, host: str, access: Access) -> bool:
        """Whether the caller is shown addresses of BMCs and CMSs: operators and admins of the host, and owners."""
        if not access.is_checked or self.owns(project, access):
            return True
        return access.covers_node(host, _STAFF) if host else access.reaches_all(_STAFF)

    # --- of both ------------------------------------------------------------------------------------------------------

    def owns(self, project: str, access: Access) -> bool:
        """Whether the caller is one of the project's owners."""
        found = self._project(project)
        return found is not None and access.name in found.owners

    def covers_host(self, name: str, access: Access) -> bool:
        """Whether the caller may order work on this host."""
        if access.covers_node(name, _STAFF):
            return True
        host = self._host(name)
        return host is not None and self.owns(host.project, access)

    def _check_host(self, name: str, access: Access) -> None:
        if not self.covers_host(name, access):
            raise OutOfReach(describe_absence("host", name), key=name)


def may_import(machine: str, access: Access) -> bool:
    """Whether the caller may say what names this machine: as an operator or admin whose scope covers it."""
    return access.covers_node(machine, _STAFF)


def is_agent(access: Access, host: str) -> bool:
    """Whether the caller reaches the host only as its agent."""
    return not access.covers_node(host, [role for role in Role if role is not Role.AGENT])


def source_of(access: Access, host: str, named: str) -> str:
    """Who says what a report says: the caller, unless it is trusted to speak for the source that the report names.

    That is an operator or admin whose scope covers the host: somebody has to clear what a source that is gone left.
    """
    return named if named and access.covers_node(host, _STAFF) else access.name or "report"


def may_report(access: Access, host: str, check: str) -> bool:
    """Whether the caller's reports of this check count; an agent speaks of its own node only."""
    return access.covers_node(host, _REPORTERS, check)


def _no_scenario(name: str) -> OutOfReach:
    return OutOfReach(describe_absence("scenario", name), key=name)


def _check_everything(access: Access, what: str, *, only_stops: bool = False) -> None:
    """Raises PermissionDenied unless the caller is an administrator without a scope.

    `only_stops`: nothing begins by it, so an operator without a scope may order it, too.
    """
    roles = _STAFF if only_stops else _ADMIN
    if not access.reaches_all(roles):
        needed = " or ".join(roles)
        raise PermissionDenied(
            f"{access.name} is not authorized to {what}: requires the role {needed} without a scope",
            needs=",".join(roles),
        )


def _check_privileged(host: str, request: Message, access: Access) -> None:
    """Raises PermissionDenied: an owner asks for what takes an operator or admin whose scope covers the host.

    That is: to pass over the CMS, or to say what names the machine, which the inventory does.
    """
    for field, value in request.ListFields():
        if field.name in _PRIVILEGED and value != Location():
            access.check_node(host, _STAFF, field.name)
