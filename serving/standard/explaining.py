"""access.v1, Explain: which calls of this server an identity may make, by which grant, and why not.

Request: `{identity, method, service, node}`, all optional: oneself, all calls, whatever service and node.
Answer: `{name, calls: [{method, rule, reach, roles, let_in, why, grants: [{role, scope, covers}]}]}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import struct_pb2

from serving.calls.methods import Answer, Call, Method, UnaryMethod
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.rights.access import Access, Scope
from serving.rights.reach import Of, checked_reach
from serving.rights.rules import READ, Role
from serving.standard.whoami import words_of

if TYPE_CHECKING:
    from serving.auth.gate import Authenticator

PATH: Final = "access.v1.AccessService/Explain"
_STRUCT: Final = struct_pb2.Struct
_STAFF: Final = (Role.OPERATOR, Role.ADMIN)
_LIMITS: Final = ("services", "nodes", "clusters", "checks")


def method(table: Sequence[Method], gate: Authenticator | None) -> UnaryMethod:
    """The call, about the methods of this table."""

    def answer(request: Any, call: Call) -> Answer:
        asked = words_of(request)
        name = asked.get("identity") or call.access.name
        scopes = gate.scopes_of(name) if gate is not None else {}
        wanted = asked.get("method", "").lower()
        calls = [one for one in table if not one.rule.is_open and wanted in one.path.lower()]
        told = _STRUCT()
        told.update({"name": name, "calls": [_explain_method(one, scopes, asked, gate is not None) for one in calls]})
        return MessageAnswer(told)

    return UnaryMethod(PATH, parse_proto(_STRUCT), parse_json(_STRUCT), answer, READ, checked_reach(Of.ONESELF, _check))


def _check(request: Any, access: Access) -> None:
    """Raises PermissionDenied: others' rights are for operators and admins without a scope."""
    asked = words_of(request).get("identity") or access.name
    if asked != access.name and not access.reaches_all(_STAFF):
        access.deny(f"the rights of {asked}", _STAFF, asked)


def _explain_method(one: Method, scopes: Any, asked: dict[str, str], is_checked: bool) -> dict[str, Any]:
    roles = sorted(one.rule.roles)
    granted = [(role, scope) for role in roles for scope in scopes.get(role, ())]
    grants = [{"role": r, "scope": _words(s), "covers": not _lacking(s, asked)} for r, s in granted]
    is_let_in = not is_checked or any(grant["covers"] for grant in grants)
    why = ""
    if not is_let_in and not granted:
        why = f"requires the role {' or '.join(roles)}"
    elif not is_let_in:
        why = "; ".join(f"{role}: {_lacking(scope, asked)}" for role, scope in granted)
    told: dict[str, Any] = {"method": one.path, "rule": one.rule.name, "reach": str(one.reach or ""), "roles": roles}
    return {**told, "let_in": is_let_in, "why": why, "grants": grants}


def _lacking(scope: Scope, asked: dict[str, str]) -> str:
    """Why the scope does not cover what was asked about; empty: it does."""
    for field, patterns in (("service", scope.services), ("node", scope.nodes)):
        if asked.get(field) and patterns is not None and asked[field] not in patterns:
            return f"its {field}s are {', '.join(patterns.words)}"
    return ""


def _words(scope: Scope) -> str:
    limits = ((name, getattr(scope, name)) for name in _LIMITS)
    return "; ".join(f"{name}: {', '.join(patterns.words)}" for name, patterns in limits if patterns is not None)
