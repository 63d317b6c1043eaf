"""What a caller may reach, as text beside an order that takes effect later: compared again there.

    {"name": "ops/ada", "grants": {"operator": [{"nodes": ["lab-*"]}]}}

The text lasts as long as the order. Fields that are not known are refused: they may limit.
"""

from __future__ import annotations

import json
from typing import Final

from serving.rights.access import Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import Role, Rule

_LIMITS: Final = ("services", "nodes", "clusters", "checks")


def encode_access(access: Access) -> str:
    """Empty: nothing was compared, since callers are not authenticated."""
    if not access.is_checked or access.identity is None:
        return ""
    grants = {role.value: [_limits(scope) for scope in scopes] for role, scopes in access.grants.items()}
    return json.dumps({"name": access.identity.name, "grants": grants}, sort_keys=True)


def decode_access(text: str, rule: Rule) -> Access:
    """The access again, under the rule of the order. Raises ValueError, TypeError: it is of another version."""
    known = json.loads(text)
    identity = Identity(known["name"], ProofKind.TOKEN, 0.0)
    grants = {Role(role): tuple(_scope(limits) for limits in scopes) for role, scopes in known["grants"].items()}
    return Access(identity, rule, grants)


def _limits(scope: Scope) -> dict[str, list[str]]:
    found = {name: getattr(scope, name) for name in _LIMITS}
    return {name: list(patterns.words) for name, patterns in found.items() if patterns is not None}


def _scope(limits: dict[str, list[str]]) -> Scope:
    return Scope(**{name: Patterns(words) for name, words in limits.items()})
