"""access.v1: a caller's roles, for a service and node, and anywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2

from serving.calls.methods import Call
from serving.rights.access import UNCHECKED, Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import READ, Role
from serving.standard import explaining, whoami

GRANTS = {
    Role.READER: (Scope(),),
    Role.UPLOADER: (Scope(services=Patterns(["web"])),),
    Role.OPERATOR: (Scope(nodes=Patterns(["rack1-*"])),),
}


def asked(access: Access, **about: str) -> dict[str, Any]:
    request = struct_pb2.Struct()
    request.update(about)
    (method,) = whoami.methods()
    told = struct_pb2.Struct.FromString(method.run(request, Call(access=access)).proto())  # type: ignore[union-attr,arg-type]
    found: dict[str, Any] = json_format.MessageToDict(told)
    return found


@pytest.mark.parametrize(
    ("about", "roles"),
    [
        ({}, {"reader"}),
        ({"service": "web"}, {"reader", "uploader"}),
        ({"service": "mail"}, {"reader"}),
        ({"node": "rack1-7"}, {"reader", "operator"}),
        ({"node": "rack2-7", "service": "web"}, {"reader", "uploader"}),
    ],
)
def test_roles_are_those_that_reach_what_is_asked_about(about: dict[str, str], roles: set[str]) -> None:
    told = asked(Access(Identity("ann", next(iter(ProofKind)), 0.0), READ, GRANTS), **about)
    assert (told["checked"], told["name"], set(told["roles"])) == (True, "ann", roles)
    assert set(told["roles_somewhere"]) == {"reader", "uploader", "operator"}


async def test_the_answer_in_json_has_plain_fields_and_not_those_of_a_struct() -> None:
    (method,) = whoami.methods()
    answer = json.loads(await method.run(struct_pb2.Struct(), Call(access=UNCHECKED)).json())  # type: ignore[union-attr,arg-type,misc]
    assert answer["checked"] is False


def test_without_security_every_caller_has_all_roles() -> None:
    told = asked(UNCHECKED)
    assert told["checked"] is False
    assert set(told["roles"]) == {role.value for role in Role}


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), None, ["web"], {"a": "web"}])
def test_odd_values_in_a_request_are_ignored(odd: Any) -> None:
    request = struct_pb2.Struct()
    request.update({"service": odd, "identity": odd, "method": odd})
    access = Access(Identity("ann", next(iter(ProofKind)), 0.0), READ, GRANTS)
    for method in (*whoami.methods(), explaining.method([], None)):
        if method.reach is not None and method.reach.check is not None:
            method.reach.check(request, access)
        told = struct_pb2.Struct.FromString(method.run(request, Call(access=access)).proto())  # type: ignore[union-attr,arg-type]
        assert told["name"] == "ann"
