"""Who may order what: projects belong to their owners, hosts to who reaches their names, everything to no scope at all.

Hosts belong to no service here, so a role that is granted for some services reaches a host only by owning its project.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

from serving.calls.methods import Call
from serving.errors import PermissionDenied
from serving.rights.rules import Record, Role, Rule
from wallepb.v1.host_pb2 import Location
from wallepb.v1.project_pb2 import Project

ORDER: Final = Rule("change projects and hosts", frozenset({Role.UPLOADER, Role.OPERATOR, Role.ADMIN}), Record.ORDERS)
REPORT: Final = Rule("report checks", frozenset({Role.AGENT, Role.OPERATOR, Role.ADMIN}), Record.DENIALS)
_STAFF: Final = (Role.OPERATOR, Role.ADMIN)
_ADMIN: Final = (Role.ADMIN,)
_PRIVILEGED: Final = ("ignore_cms", "inventory", "bmc", "address", "location")


def who(call: Call) -> str:
    """The caller's name as stored with orders; without authentication: its address."""
    identity = call.access.identity
    return identity.name if identity is not None else call.host or "anybody"


def check_everything(call: Call, what: str, *, only_stops: bool = False) -> None:
    """Raises PermissionDenied unless the caller is an administrator without a scope.

    `only_stops`: nothing begins by it, so an operator without a scope may order it, too.
    """
    roles = _STAFF if only_stops else _ADMIN
    if not call.access.reaches_all(roles):
        needed = " or ".join(roles)
        raise PermissionDenied(
            f"{who(call)} is not authorized to {what}: requires the role {needed} without a scope",
            needs=",".join(roles),
        )


def check_project(call: Call, project: Project | None, project_id: str) -> None:
    """Raises PermissionDenied unless the caller owns the project, or is an operator or admin without a scope."""
    if not (call.access.reaches_all(_STAFF) or is_owner(call, project)):
        raise PermissionDenied(
            f"{who(call)} is not authorized to change project {project_id}: only its owners are, and operators and "
            "administrators without a scope",
            key=project_id,
        )


def check_host(call: Call, host: str, project: Project | None) -> None:
    """Raises PermissionDenied unless the caller owns the host's project, or reaches the host as operator or admin.

    `project`: the host's; None: no project holds it.
    """
    if not (is_owner(call, project) or call.access.covers_node(host, _STAFF)):
        raise PermissionDenied(
            f"{who(call)} is not authorized to change host {host}: only owners of its project are, and operators and "
            "administrators whose scope covers it",
            key=host,
        )


def check_privileged(call: Call, host: str, request: Message) -> None:
    """Raises PermissionDenied: an owner asks for what takes an operator or admin whose scope covers the host.

    That is to pass over the CMS, and to say what names the machine: the inventory does.
    """
    for field, value in request.ListFields():
        if field.name in _PRIVILEGED and value != Location():
            call.access.check_node(host, _STAFF, field.name)


def may_import(call: Call, machine: str) -> bool:
    """Whether the caller may say what names this machine: as an operator or admin whose scope covers it."""
    return call.access.covers_node(machine, _STAFF)


def check_import(call: Call, machine: str) -> None:
    """Raises PermissionDenied."""
    call.access.check_node(machine, _STAFF, "machine")


def may_report(call: Call, host: str) -> bool:
    """Whether the caller's reports on this host count; an agent speaks of its own node only."""
    return call.access.covers_node(host)


def is_owner(call: Call, project: Project | None) -> bool:
    return project is not None and who(call) in project.owners
