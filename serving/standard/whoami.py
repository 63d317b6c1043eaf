"""access.v1: who a caller is here, and which roles it has for a service and node; a method like any other.

Pages and commands ask it so that they offer no order that would be refused. The order itself is checked again.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import struct_pb2

from serving.calls.methods import Answer, Call, Method, UnaryMethod
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.rights.access import Scope
from serving.rights.reach import ONESELF
from serving.rights.rules import READ, Role

PATH: Final = "access.v1.AccessService/WhoAmI"
_STRUCT: Final = struct_pb2.Struct


def methods() -> list[Method]:
    """The one call. Request: `{service, node}`, both optional; answer: `{checked, name, roles, roles_somewhere}`."""
    return [UnaryMethod(PATH, parse_proto(_STRUCT), parse_json(_STRUCT), _answer, READ, ONESELF)]


def _answer(request: Any, call: Call) -> Answer:
    asked = words_of(request)
    service, node = asked.get("service", ""), asked.get("node", "")
    access = call.access
    roles = [
        role.value
        for role in Role
        if not access.is_checked or any(_reaches(scope, service, node) for scope in access.grants.get(role, ()))
    ]
    somewhere = [role.value for role in Role if not access.is_checked or access.grants.get(role)]
    told = _STRUCT()
    told.update({"checked": access.is_checked, "name": access.name, "roles": roles, "roles_somewhere": somewhere})
    return MessageAnswer(told)


def words_of(request: Any) -> dict[str, str]:
    """The fields of a Struct that are words; others mean nothing, and some (NaN) could not even be repeated."""
    return {name: value.string_value for name, value in request.fields.items() if value.string_value}


def _reaches(scope: Scope, service: str, node: str) -> bool:
    """Whether a scope covers this service and node; one that is not named means all of them."""
    covers_service = scope.services is None or (bool(service) and service in scope.services)
    return covers_service and (scope.nodes is None or (bool(node) and node in scope.nodes))
