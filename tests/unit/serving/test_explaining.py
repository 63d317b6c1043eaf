"""access.v1, Explain: which rule, which grant, why not."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2

from serving.auth.audit import Audit, LogSink
from serving.auth.gate import Authenticator
from serving.auth.policy import parse
from serving.calls.methods import Call, UnaryMethod
from serving.clock import SystemClock
from serving.errors import PermissionDenied
from serving.rights.access import Identity, ProofKind
from serving.rights.reach import EVERYTHING
from serving.rights.rules import INSPECT, OPEN, OPERATE, READ
from serving.standard import explaining

POLICY = b"""
roles:
  reader: [{identities: [ann]}]
  operator: [{identities: [bob], nodes: ["lab-*"]}]
  admin: [{identities: [ada]}]
"""


def _run(_request: Any, _call: Call) -> Any:
    raise AssertionError


TABLE = [UnaryMethod(f"S/{rule.name}", bytes, bytes, _run, rule, EVERYTHING) for rule in (OPERATE, INSPECT, OPEN)]


@pytest.fixture
def gate() -> Authenticator:
    return Authenticator(parse(POLICY), None, None, Audit(LogSink(), SystemClock()), SystemClock())


def explain(gate: Authenticator, who: str, **about: str) -> list[dict[str, Any]]:
    method, request = explaining.method(TABLE, gate), struct_pb2.Struct()
    request.update(about)
    call = Call(access=gate.access(Identity(who, ProofKind.TOKEN, 0.0), READ))
    assert method.reach is not None
    assert method.reach.check is not None
    method.reach.check(request, call.access)
    told = struct_pb2.Struct.FromString(method.run(request, call).proto())  # type: ignore[union-attr]
    found: list[dict[str, Any]] = json_format.MessageToDict(told)["calls"]
    return found


def test_an_explanation_names_the_grant_or_why_it_does_not_cover_the_call(gate: Authenticator) -> None:
    inside, outside = (explain(gate, "bob", method="operator", node=node)[0] for node in ("lab-1", "prod-1"))
    assert (inside["let_in"], inside["grants"]) == (
        True,
        [{"role": "operator", "scope": "nodes: lab-*", "covers": True}],
    )
    assert (outside["let_in"], outside["why"]) == (False, "operator: its nodes are lab-*")
    assert explain(gate, "ann", method="operator")[0]["why"] == "requires the role operator"


def test_an_admin_gets_all_rules_for_the_identity_it_names(gate: Authenticator) -> None:
    assert [(one["rule"], one["let_in"]) for one in explain(gate, "ada", identity="ann")] == [
        ("use operator commands", False),
        ("inspect", False),
    ]


@pytest.mark.parametrize("who", ["ann", "bob"])
def test_only_unlimited_operators_and_admins_see_the_rights_of_others(gate: Authenticator, who: str) -> None:
    with pytest.raises(PermissionDenied):
        explain(gate, who, identity="ada")
