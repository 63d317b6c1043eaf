"""The rights of a caller, stored beside its order, are read back unchanged."""

from __future__ import annotations

import pytest

from serving.rights.access import UNCHECKED, Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import OPERATE, Role
from serving.rights.stored import decode_access, encode_access

ADA = Identity("ops/ada", ProofKind.CERTIFICATE, 12.0, id="3ac5c")
SCOPES = (
    Scope(),
    Scope(nodes=Patterns(["lab-*"])),
    Scope(Patterns(["web"]), Patterns(["n1", "n2"]), Patterns(["ams"]), Patterns(["ssh"])),
)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_stored_access_is_read_back_as_it_was(scope: Scope) -> None:
    access = Access(ADA, OPERATE, {Role.OPERATOR: (scope,), Role.ADMIN: ()})
    again = decode_access(encode_access(access), OPERATE)
    assert (again.grants, again.is_checked, again.is_unlimited) == (access.grants, True, access.is_unlimited)
    assert again.identity is not None
    assert (again.identity.name, again.identity.kind, again.identity.id) == (ADA.name, ADA.kind, ADA.id)


def test_an_order_stored_without_its_proof_by_an_older_version_is_read() -> None:
    identity = decode_access('{"name": "ann", "grants": {"operator": [{}]}}', OPERATE).identity
    assert identity is not None
    assert (identity.name, identity.id) == ("ann", "")


def test_without_authentication_an_empty_text_is_stored() -> None:
    assert encode_access(UNCHECKED) == ""


def test_an_unknown_limit_in_a_grant_is_an_error() -> None:
    with pytest.raises(TypeError):
        decode_access('{"name": "a", "grants": {"operator": [{"racks": ["r1"]}]}}', OPERATE)
