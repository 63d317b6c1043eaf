"""Who calls, and what the caller of one call may touch: compared with the services and nodes of instances."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, NoReturn

from serving.errors import PermissionDenied
from serving.rights.patterns import Patterns
from serving.rights.rules import NOBODY, Role, Rule

READERS: Final = tuple(Role)
WRITERS: Final = (Role.UPLOADER, Role.ADMIN)
OUTSIDE: Final = "is outside the granted scope"


class SecretName(NamedTuple):
    """Which secret an instance is to have. Messages say its `name` only."""

    name: str
    provider: str
    path: str  # id, or id/key

    def is_plain(self) -> bool:
        """Whether the path has no detours: `web/../mail` could be somebody else's."""
        return bool(self.provider) and not {"", ".", ".."}.intersection(self.path.split("/"))


@dataclass(frozen=True, slots=True)
class Scope:
    """How far a role reaches. None: everywhere.

    `clusters` is None, too, in a scope that `within` has compared; before that it covers only what names its cluster.

    Attributes:
        checks: those that a monitor reports.
        secrets: that services may name as PROVIDER:ID/KEY, besides their own, whose ID is or begins with the service.
    """

    services: Patterns | None = None
    nodes: Patterns | None = None
    clusters: Patterns | None = None
    checks: Patterns | None = None
    secrets: Patterns | None = None

    @property
    def is_all(self) -> bool:
        """Whether it leaves nothing out."""
        return self.services is None and self.nodes is None and self.clusters is None and self.checks is None

    def within(self, cluster: str) -> Scope | None:
        """The scope in this cluster; None: it does not reach the cluster."""
        if self.clusters is None:
            return self
        return Scope(self.services, self.nodes, None, self.checks, self.secrets) if cluster in self.clusters else None

    def allows_secret(self, service: str, secret: SecretName) -> bool:
        """Whether an instance of this service may be given the secret."""
        if not service or not secret.is_plain():
            return False
        is_own = secret.path == service or secret.path.startswith(f"{service}/")
        return is_own or (self.secrets is not None and f"{secret.provider}:{secret.path}" in self.secrets)

    def includes(self, other: Scope) -> bool:
        """Whether this scope covers all that the other one covers."""
        return (
            _includes(self.services, other.services)
            and _includes(self.nodes, other.nodes)
            and _includes(self.clusters, other.clusters)
            and _includes(self.checks, other.checks)
        )

    def covers(self, service: str, node: str, cluster: str = "") -> bool:
        """Whether an instance of this service on this node is within it; `cluster` empty: it is not known."""
        return (
            (self.services is None or service in self.services)
            and (self.nodes is None or node in self.nodes)
            and (self.clusters is None or cluster in self.clusters)
        )

    def covers_filter(self, services: Collection[str], nodes: Collection[str]) -> bool:
        """Whether everything that matches a filter with these is within it; a filter without any leaves nothing out."""
        return self.clusters is None and _proven(self.services, services) and _proven(self.nodes, nodes)


Grants = Mapping[Role, tuple[Scope, ...]]


class Access:
    """The reach of one identity in calls under one rule.

    Attributes:
        identity: None: without authentication.
        grants: how far it reaches in each of its roles that the rule is for.
        is_checked: False: security is off, and everything is allowed.
        is_unlimited: some role reaches all services and nodes.
    """

    __slots__ = ("grants", "identity", "is_checked", "is_unlimited", "rule")

    def __init__(self, identity: Identity | None, rule: Rule, grants: Grants, *, is_checked: bool = True) -> None:
        self.identity, self.rule, self.grants, self.is_checked = identity, rule, grants, is_checked
        self.is_unlimited = not is_checked or any(scope.is_all for scopes in grants.values() for scope in scopes)

    def __repr__(self) -> str:
        return f"Access({self.identity.name if self.identity else 'anybody'}, {self.rule.name})"

    @property
    def name(self) -> str:
        """Who calls; empty: there is no authentication."""
        return self.identity.name if self.identity is not None else ""

    def within(self, cluster: str) -> Access:
        """The same, in this cluster only."""
        kept = {
            role: tuple(there for scope in scopes if (there := scope.within(cluster)) is not None)
            for role, scopes in self.grants.items()
        }
        return Access(self.identity, self.rule, {r: s for r, s in kept.items() if s}, is_checked=self.is_checked)

    def covers(self, service: str, node: str, roles: Iterable[Role] = READERS, cluster: str = "") -> bool:
        """Whether an instance of this service on this node is within reach in one of these roles."""
        return not self.is_checked or any(scope.covers(service, node, cluster) for scope in self._scopes(roles))

    def check(
        self,
        instance_id: str,
        service: str,
        node: str,
        roles: Iterable[Role] = READERS,
        cluster: str = "",
        *,
        secrets: Iterable[SecretName] = (),
    ) -> None:
        """Raises PermissionDenied unless the instance is within reach, and may be given these secrets."""
        if not self.covers(service, node, roles, cluster):
            self.deny(f"instance {instance_id}", roles, instance_id, f"{OUTSIDE} (its service or node)")
        for secret in secrets:
            if not self._allows_secret(service, node, secret):
                why = (
                    f"is not one that service {service} may name: let its id be {service} or begin with {service}/, "
                    "or list it in `secrets` of the grant, as PROVIDER:ID/KEY"
                )
                self.deny(f"secret {secret.name!r} of instance {instance_id}", WRITERS, instance_id, why)

    def _allows_secret(self, service: str, node: str, secret: SecretName) -> bool:
        scopes = [scope for scope in self._scopes(WRITERS) if scope.covers(service, node)]
        return not self.is_checked or any(scope.allows_secret(service, secret) for scope in scopes)

    def proves(self, services: Collection[str], nodes: Collection[str]) -> bool:
        """Whether everything that matches a filter with these services and nodes is within reach."""
        return self.is_unlimited or any(scope.covers_filter(services, nodes) for scope in self._scopes(READERS))

    def check_filter(self, services: Collection[str], nodes: Collection[str]) -> None:
        """Raises PermissionDenied unless whatever matches a filter with these is within reach."""
        if not self.proves(services, nodes):
            limits = "covers more than the granted scope; name your services in service_id, or your node in node_name"
            self.deny("this filter", scope=limits)

    def covers_node(self, node: str, roles: Iterable[Role] = READERS, check: str = "") -> bool:
        """Whether all of the node is within reach in one of these roles; `check`: for reports of this check."""
        return not self.is_checked or any(
            s.services is None and s.covers("", node) and (s.checks is None or not check or check in s.checks)
            for s in self._scopes(roles)
        )

    def covers_service(self, service: str, roles: Iterable[Role] = READERS) -> bool:
        """Whether all of the service is within reach in one of these roles, wherever its instances are."""
        return not self.is_checked or any(s.nodes is None and s.covers(service, "") for s in self._scopes(roles))

    def may_touch_service(self, service: str) -> bool:
        """Whether anything of the service may be within reach: a quick look before one at each of its instances."""
        return self.is_unlimited or any(s.services is None or service in s.services for s in self._scopes(READERS))

    def check_service(self, service: str, roles: Iterable[Role] = READERS) -> None:
        """Raises PermissionDenied unless all of the service is within reach."""
        if not self.covers_service(service, roles):
            self.deny(f"service {service or '(none)'}", roles, service)

    def named_nodes(self, roles: Iterable[Role]) -> list[str]:
        """The nodes within reach that are granted by their full names."""
        return [node for s in self._scopes(roles) if s.services is None and s.nodes for node in s.nodes.exact]

    def reaches_all(self, roles: Iterable[Role] = READERS) -> bool:
        """Whether one of these roles reaches all services and nodes."""
        return not self.is_checked or any(scope.is_all for scope in self._scopes(roles))

    def check_all(self) -> None:
        """Raises PermissionDenied unless everything is within reach, as the call concerns everything."""
        if not self.reaches_all():
            self.deny("this", scope="concerns all services and nodes, and the role is granted only for some")

    def check_node(self, node: str, roles: Iterable[Role], field: str = "node") -> None:
        """Raises PermissionDenied unless all of the node is within reach."""
        if not self.covers_node(node, roles):
            self.deny(f"node {node or '(none)'} ({field})", roles, node)

    def deny(self, what: str, roles: Iterable[Role] = (), key: str = "", scope: str = OUTSIDE) -> NoReturn:
        """Raises PermissionDenied: this is out of reach. `scope`: why, for a caller with one of the roles."""
        name = self.identity.name if self.identity else "nobody"
        wanted = [role for role in roles if role in self.rule.roles] or sorted(self.rule.roles)
        why = scope if any(role in self.grants for role in wanted) else f"requires the role {' or '.join(wanted)}"
        raise PermissionDenied(
            f"{name} is not authorized to {self.rule.name}: {what} {why}", key=key, needs=",".join(wanted)
        )

    def _scopes(self, roles: Iterable[Role]) -> Iterable[Scope]:
        for role in roles:
            yield from self.grants.get(role, ())


def _includes(wide: Patterns | None, narrow: Patterns | None) -> bool:
    # A `*` in the narrow one can only be met by a `*` in the wide one, which takes whatever the narrow one takes there.
    return wide is None or (narrow is not None and all(word in wide for word in narrow.words))


def _proven(allowed: Patterns | None, named: Collection[str]) -> bool:
    return allowed is None or (bool(named) and all(one in allowed for one in named))


UNCHECKED: Final = Access(None, NOBODY, {}, is_checked=False)
"""Security is off."""


class ProofKind(StrEnum):
    """How a caller proved who it is."""

    CERTIFICATE = "certificate"
    TOKEN = "token"


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller whose proof was verified. What it may do is looked up in the policy, never stored here.

    Attributes:
        name: the SPIFFE id of the certificate, or the subject of the token.
        expires_at: Unix time in seconds at which the proof ends; any allowance for skew is included.
        key: which key signed the token, or which CA verified the certificate, by its contents; empty: not known.
        id: of the token (jti), or the serial number of the certificate; empty: it has none.
    """

    name: str
    kind: ProofKind
    expires_at: float
    key: str = ""
    id: str = ""
