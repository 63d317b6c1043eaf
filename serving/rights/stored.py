"""A caller's access, as text beside an order that takes effect later: compared again there.

    {"name": "ops/ada", "proof": ["token", "5d41402abc4b2a76"], "grants": {"operator": [{"nodes": ["lab-*"]}]}}

The text lasts as long as the order. Unknown limits are refused. `proof` is the kind and id of the caller's proof, which
may be revoked meanwhile; it is missing if the proof has no id, or in orders of older versions.
"""

from __future__ import annotations

import json
from typing import Final

from serving.rights.access import Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import Role, Rule

_LIMITS: Final = ("services", "nodes", "clusters", "checks")


def encode_access(access: Access) -> str:
    """The access as text; empty: nothing was compared, since callers are not authenticated."""
    if not access.is_checked or access.identity is None:
        return ""
    grants = {role.value: [_limits(scope) for scope in scopes] for role, scopes in access.grants.items()}
    identity = access.identity
    proof = {"proof": [identity.kind.value, identity.id]} if identity.id else {}
    return json.dumps({"name": identity.name, "grants": grants, **proof}, sort_keys=True)


def decode_access(text: str, rule: Rule) -> Access:
    """The access again, under the rule of the order. Raises ValueError, TypeError: it is of another version."""
    known = json.loads(text)
    kind, proof_id = known.get("proof", (ProofKind.TOKEN, ""))
    identity = Identity(known["name"], ProofKind(kind), 0.0, id=proof_id)
    grants = {Role(role): tuple(_scope(limits) for limits in scopes) for role, scopes in known["grants"].items()}
    return Access(identity, rule, grants)


def _limits(scope: Scope) -> dict[str, list[str]]:
    found = {name: getattr(scope, name) for name in _LIMITS}
    return {name: list(patterns.words) for name, patterns in found.items() if patterns is not None}


def _scope(limits: dict[str, list[str]]) -> Scope:
    return Scope(**{name: Patterns(words) for name, words in limits.items()})
