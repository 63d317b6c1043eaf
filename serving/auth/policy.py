"""The policy: which identities have which roles, and how far they reach. Pure; `watched_files.py` reads the file.

    roles:
      reader:
        - identities: ["team/*"]
          services: [web, "web-*"]
      agent:
        - identities: ["spiffe://hq.example/agent/{node}"]
      uploader:
        - identities: [ci-web]
          services: [web]
          secrets: ["vault:shared/*"]  # besides those whose id is the service or begins with `web/`

A grant without services, nodes or clusters, or with `["*"]`, reaches all of them, but an uploader's names its services.
An agent's node is what `{node}` stands for in its identity. A monitor's grant may name checks, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from serving import yamltext
from serving.auth.watched_files import BadSecurity
from serving.rights.access import WRITERS, Scope
from serving.rights.patterns import IdentityPattern, Patterns
from serving.rights.rules import Role

_REACHES: Final = ("services", "nodes", "clusters", "checks", "secrets")
_SECRET: Final = re.compile(r"[^:/]+:(?!\.{1,2}(?:/|$))[^/]+(?:/(?!\.{1,2}(?:/|$))[^/]+)*")
_MAX_FAULTS: Final = 10


@dataclass(frozen=True, slots=True)
class Grant:
    """A role for some identities. An agent's scope lacks the node, which the agent's identity names."""

    role: Role
    identities: tuple[IdentityPattern, ...]
    scope: Scope

    def scope_for(self, name: str) -> Scope | None:
        """The scope that this grant gives the identity of this name; None: the grant is not for that identity."""
        for pattern in self.identities:
            found = pattern.match(name)
            if found is not None:
                node = found.get("node")
                nodes = self.scope.nodes if node is None else Patterns([node])
                return replace(self.scope, nodes=nodes)
        return None


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """All grants. An identity that is in none has no rights at all."""

    grants: tuple[Grant, ...] = ()

    def scopes(self, name: str, cluster: str | None) -> dict[Role, tuple[Scope, ...]]:
        """How far an identity reaches in each of its roles, in this cluster; None: wherever it may be."""
        found: dict[Role, tuple[Scope, ...]] = {}
        for grant in self.grants:
            scope = grant.scope_for(name)
            if scope is not None and cluster is not None:
                scope = scope.within(cluster)
            if scope is None:
                continue
            found[grant.role] = (*found.get(grant.role, ()), scope)
        return found


def parse(text: bytes) -> AccessPolicy:
    """Read the YAML of a policy.

    Raises:
        BadSecurity: with the faults that were found, each with its path.
    """
    try:
        loaded = yamltext.load(text)
    except yamltext.BadYaml as error:
        raise BadSecurity(f"is not valid YAML: {error}") from None
    faults: list[str] = []
    grants = tuple(_grants(loaded, faults))
    if faults:
        raise BadSecurity("; ".join(faults[:_MAX_FAULTS]))
    return AccessPolicy(grants)


def _grants(loaded: Any, faults: list[str]) -> Iterator[Grant]:
    top = _mapping(loaded, "the file", ("roles",), faults)
    roles = _mapping(top.get("roles"), "roles", tuple(Role), faults)
    for name, entries in roles.items():
        if name not in tuple(Role):
            continue
        if not isinstance(entries, list):
            faults.append(f"roles.{name}: expected a list of grants, each with identities")
            continue
        for number, entry in enumerate(entries):
            if grant := _grant(Role(name), entry, f"roles.{name}[{number}]", faults):
                yield grant


def _grant(role: Role, entry: Any, where: str, faults: list[str]) -> Grant | None:
    before = len(faults)
    fields = _mapping(entry, where, ("identities", *_REACHES), faults)
    identities = tuple(_identities(fields.get("identities"), f"{where}.identities", faults))
    reaches = {name: _patterns(fields[name], f"{where}.{name}", faults) for name in _REACHES if name in fields}
    faults += [f"{where}: {fault}" for fault in _contradictions(role, identities, reaches)]
    limits = {
        name: patterns for name, patterns in reaches.items() if "*" not in patterns.words
    }  # all of them: no limit
    return Grant(role, identities, Scope(**limits)) if len(faults) == before else None


def _contradictions(
    role: Role, identities: tuple[IdentityPattern, ...], reaches: Mapping[str, Patterns]
) -> Iterator[str]:
    if role is Role.AGENT:
        if not all(pattern.names_node for pattern in identities):
            yield "an agent's identity must contain its node: write {node} in its place"
        if "services" in reaches or "nodes" in reaches:
            yield "an agent may only access its own node: remove services and nodes"
    elif any(pattern.names_node for pattern in identities):
        yield "only agents may have {node} in their identity"
    for roles, is_wrong, fault in (
        ({Role.UPLOADER}, "services" not in reaches, 'an uploader needs services (["*"] for all)'),
        ({Role.OPERATOR}, {"services", "nodes"} <= reaches.keys(), "write two grants, one by service and one by node"),
        ({Role.MONITOR, Role.HEALER}, "services" in reaches, f"a {role}'s grant is by node: remove services"),
        (set(Role) - {Role.MONITOR}, "checks" in reaches, "only a monitor's grant names checks"),
        (set(Role) - set(WRITERS), "secrets" in reaches, "only uploaders and admins name secrets: remove secrets"),
    ):
        if role in roles and is_wrong:
            yield fault
    if "secrets" in reaches and not all(map(_SECRET.fullmatch, reaches["secrets"].words)):
        yield 'secrets are written PROVIDER:ID/KEY, for example "vault:shared/*"; without empty parts, . and ..'


def _identities(value: Any, where: str, faults: list[str]) -> Iterator[IdentityPattern]:
    for word in _words(value, where, faults):
        try:
            yield IdentityPattern(word)
        except ValueError as error:
            faults.append(f"{where}: {error}")


def _patterns(value: Any, where: str, faults: list[str]) -> Patterns:
    return Patterns(_words(value, where, faults))


def _words(value: Any, where: str, faults: list[str]) -> list[str]:
    if isinstance(value, list) and value and all(isinstance(word, str) and word for word in value):
        return value
    faults.append(f"{where}: expected a non-empty list of strings")
    return []


def _mapping(value: Any, where: str, known: tuple[str, ...], faults: list[str]) -> dict[Any, Any]:
    if not isinstance(value, dict):
        faults.append(f"{where}: expected a mapping with {', '.join(known)}")
        return {}
    faults += [
        f"{where}.{key}: unknown setting; known settings: {', '.join(known)}" for key in value if key not in known
    ]
    return value
