"""Who may order what: a project is its owners', what concerns all takes an administrator."""

from __future__ import annotations

from typing import Final

from serving.calls.methods import Call
from serving.errors import PermissionDenied
from serving.rights.rules import Record, Role, Rule
from wallepb.v1.project_pb2 import Project

ORDER: Final = Rule("order", frozenset({Role.UPLOADER, Role.OPERATOR, Role.ADMIN}), Record.WRITES)
TELL: Final = Rule("report checks", frozenset({Role.AGENT, Role.OPERATOR, Role.ADMIN}), Record.DENIALS)


def who(call: Call) -> str:
    """As it is stored with orders; without authentication: the caller's address."""
    identity = call.access.identity
    return identity.name if identity is not None else call.host or "anybody"


def check_owner(call: Call, project: Project | None, project_id: str) -> None:
    """Raises PermissionDenied unless the caller owns the project, or is an operator or administrator."""
    if not call.access.is_checked or _has(call, Role.OPERATOR, Role.ADMIN):
        return
    if project is None or who(call) not in project.owners:
        raise PermissionDenied(f"{who(call)} is not authorized to change project {project_id}: its owners are")


def check_admin(call: Call, what: str) -> None:
    """Raises PermissionDenied unless the caller is an administrator."""
    if call.access.is_checked and not _has(call, Role.ADMIN):
        raise PermissionDenied(f"{who(call)} is not authorized to {what}: it takes the role admin", needs="admin")


def _has(call: Call, *roles: Role) -> bool:
    return any(role in call.access.grants for role in roles)
