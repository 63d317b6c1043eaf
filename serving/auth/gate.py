"""The gate that every call passes: who calls, what is the rule, is it met? One for both transports and the gateway."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

from serving.auth.audit import Audit, AuditLine, Denials
from serving.auth.bearer_tokens import Keys, Tokens
from serving.auth.certificates import Certificates
from serving.auth.policy import AccessPolicy
from serving.auth.revocations import Revocations
from serving.calls.methods import CHANGED, Answer, Call, Touch, UnaryMethod, maybe_await
from serving.clock import Clock
from serving.errors import FailedPrecondition, OutOfReach, PermissionDenied, ServiceError, Unauthenticated
from serving.rights.access import Access, Grants, Identity, ProofKind, Scope
from serving.rights.rules import AuditLevel, Role, Rule

_REMEMBERED: Final = 65_536
_SPREAD_S: Final = 60.0
_LEAST_ENDS_PER_S: Final = 100.0  # a handshake takes a millisecond
DENIALS: Final = ("UNAUTHENTICATED", "PERMISSION_DENIED")
_UNSURE: Final = ("OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "SHUTTING_DOWN", "UNKNOWN")  # it may have been stored
_SCHEME: Final = "bearer "
_BRING: Final = "send a token as `authorization: Bearer <token>`"

Admit = Callable[[Call], None]
Run = Callable[[Any, Call], Answer | Awaitable[Answer]]


class Authenticator:
    """Lets calls in, or raises Unauthenticated or PermissionDenied.

    Attributes:
        denied: how many calls were denied, by reason.
        tokens, certificates: None: this kind of proof is not accepted.
        revision: grows with each change of what is in force.
        denials: lines about what was denied or refused, on their way to the audit log.
    """

    def __init__(
        self,
        policy: AccessPolicy,
        tokens: Tokens | None,
        certificates: Certificates | None,
        audit: Audit,
        clock: Clock,
        cluster: str | None = None,
        denied_by_state: Collection[str] = (),
    ) -> None:
        """`cluster`: grants for other clusters are ignored; None: all count (in a federation gateway).

        `denied_by_state`: reasons of errors that deny a call by what is stored, not by the policy; recorded as denials.
        """
        self._denied_by_state = frozenset(denied_by_state)
        self.tokens, self.certificates = tokens, certificates
        self._policy, self._audit, self._clock, self._cluster = policy, audit, clock, cluster
        self._decided: dict[Rule, dict[str, Access]] = {}
        self._leases: dict[_Lease, None] = {}
        self._revoked: Revocations | None = None
        self._ends_per_s = _LEAST_ENDS_PER_S
        self.revision = 0
        self.denied: Counter[str] = Counter()
        self.denials = Denials(audit.record, clock)

    # --- calls --------------------------------------------------------------------------------------------------------

    def admitter(self, rule: Rule) -> Admit | None:
        """Return the check of a call before its request is read; None: the method is open to everybody."""
        if rule.is_open:
            return None

        def admit(call: Call) -> None:
            call.set_access(self.access(self.identify(call), rule))

        return admit

    def identify(self, call: Call) -> Identity:
        """Who calls, by the token or, without one, by the certificate. Raises Unauthenticated."""
        return self._unless_revoked(self._proven(call))

    def identify_token(self, token: str) -> Identity:
        """Identity of a token's owner, whichever header carried it. Raises Unauthenticated."""
        if self.tokens is None:
            raise Unauthenticated("tokens are not accepted here: connect with a client certificate")
        known = f"Bearer {token}"
        return self._unless_revoked(
            self.tokens.cached_identity(known) or self.tokens.identity(token, remember_as=known)
        )

    def _unless_revoked(self, identity: Identity) -> Identity:
        if self._revoked is not None:
            self._revoked.check(identity)
        return identity

    def _proven(self, call: Call) -> Identity:
        sent = call.all_headers("authorization")
        pem = call.certificate() if self.certificates is not None else b""
        if sent:
            if pem and self.certificates is not None:
                self.certificates.check_clear(pem)
            known = self.tokens.cached_identity(sent[0]) if self.tokens is not None and len(sent) == 1 else None
            return known or self._by_token(sent)
        if pem and self.certificates is not None:
            return self.certificates.identity(pem)
        if self.tokens is None:
            raise Unauthenticated("not authenticated: connect with a client certificate")
        raise Unauthenticated(f"not authenticated: {_BRING}")

    def access(self, identity: Identity, rule: Rule) -> Access:
        """Return a caller's access under a rule. Raises PermissionDenied if it has none of the rule's roles."""
        decided = self._decided.get(rule)
        if decided is None:
            decided = self._decided[rule] = {}
        access = decided.get(identity.name)
        if access is None or access.identity is not identity:
            if access is None and len(decided) >= _REMEMBERED:
                decided.clear()
            grants = self._matching_grants(identity, rule) if access is None else access.grants
            access = decided[identity.name] = Access(identity, rule, grants)
        return access

    def current_access(self, identity: Identity, rule: Rule) -> Access:
        """Return how far an identity may reach under a rule now, to carry out an order that it gave before.

        The proof may have run out, and the key that signed it may have been replaced: orders outlast both.

        Raises PermissionDenied: it has none of the rule's roles any more; Unauthenticated: it or its proof was revoked.
        """
        self._unless_revoked(identity)
        return Access(identity, rule, self._matching_grants(identity, rule))

    def scopes_of(self, name: str) -> dict[Role, tuple[Scope, ...]]:
        """All that the policy grants to an identity of this name here."""
        return self._policy.scopes(name, self._cluster)

    def _by_token(self, sent: tuple[str, ...]) -> Identity:
        if len(sent) > 1:
            raise Unauthenticated("several authorization headers: send one")
        if self.tokens is None:
            raise Unauthenticated("tokens are not accepted here: connect with a client certificate")
        if sent[0][: len(_SCHEME)].lower() != _SCHEME:
            raise Unauthenticated(f"the authorization header holds no token: {_BRING}")
        return self.tokens.identity(sent[0][len(_SCHEME) :], remember_as=sent[0])

    def _matching_grants(self, identity: Identity, rule: Rule) -> Grants:
        scopes = self._policy.scopes(identity.name, self._cluster)
        granted = {role: found for role, found in scopes.items() if role in rule.roles}
        if not granted:
            here = f" in cluster {self._cluster}" if self._cluster else ""
            roles = sorted(rule.roles)
            wanted = " or ".join(roles) or "(no role allows it)"
            words = f"{identity.name} is not authorized to {rule.name}{here}: requires the role {wanted}"
            raise PermissionDenied(words, needs=",".join(roles))
        return granted

    # --- streams ------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def lease(self, call: Call) -> AsyncIterator[None]:
        """The time for which a stream may go on. Raises Unauthenticated or PermissionDenied when it ends."""
        if not call.access.is_checked:
            yield
            return
        lease = _Lease(call.access)
        self._leases[lease] = None
        try:
            async with lease.limit:
                yield
        except TimeoutError:
            if lease.error is None:
                raise
            raise lease.error from None
        finally:
            del self._leases[lease]

    def end_leases(self) -> None:
        """End the streams whose caller's credentials have expired or were withdrawn, or who is no longer authorized.

        Call it once a second. Many streams are ended over a minute, since each comes back with a handshake.
        """
        due: list[tuple[_Lease, ServiceError]] = []
        for lease in [lease for lease in self._leases if lease.error is None]:
            try:
                self._still(lease.access)
            except ServiceError as error:
                due.append((lease, error))
        self._ends_per_s = max(self._ends_per_s, len(due) / _SPREAD_S) if due else _LEAST_ENDS_PER_S
        for lease, why in due[: math.ceil(self._ends_per_s)]:
            lease.end(why)

    def _still(self, access: Access) -> None:
        identity = access.identity
        if identity is None:
            return
        proof = identity.kind.value
        if identity.expires_at * 1000 < self._clock.wall_ms():
            raise Unauthenticated(f"the {proof} of {identity.name} has expired: retry with a new one")
        proofs = self.tokens if identity.kind is ProofKind.TOKEN else self.certificates
        if proofs is not None and not proofs.accepts(identity):
            signer = "key that signed the token" if identity.kind is ProofKind.TOKEN else "CA of the certificate"
            raise Unauthenticated(f"the {signer} of {identity.name} was withdrawn: get a new {proof}")
        if self._revoked is not None:
            self._revoked.check(identity)
        granted = self.access(identity, access.rule).grants
        for role, scopes in access.grants.items():
            if not all(any(now.includes(scope) for now in granted.get(role, ())) for scope in scopes):
                raise PermissionDenied(f"the permissions of {identity.name} have changed: call again")

    def has_withdrawn(self, pem: bytes) -> bool:
        """Whether a certificate that a connection was opened with is not to be accepted any more."""
        certificates = self.certificates
        if certificates is None or certificates.is_withdrawn(pem):
            return certificates is not None
        try:
            if self._revoked is not None:
                self._revoked.check(certificates.identity(pem))
        except Unauthenticated:
            return True
        return False

    # --- what is in force ---------------------------------------------------------------------------------------------

    def use(self, policy: AccessPolicy) -> None:
        """Put another policy in force."""
        self._policy = policy
        self._on_rights_changed()

    def use_keys(self, keys: Keys) -> None:
        """Put other keys of tokens in force."""
        if self.tokens is not None:
            self.tokens.use(keys)
        self._on_rights_changed()

    def use_authorities(self, bundle: bytes) -> None:
        """Put other CAs of clients' certificates in force."""
        if self.certificates is not None:
            self.certificates.use(bundle)
        self._on_rights_changed()

    def use_revoked(self, revoked: Revocations) -> None:
        """Accept the listed proofs and identities no longer."""
        self._revoked = revoked
        self._on_rights_changed()

    def _on_rights_changed(self) -> None:
        self._decided.clear()
        self.revision += 1

    # --- the record ---------------------------------------------------------------------------------------------------

    def audited_run(self, method: UnaryMethod) -> Run:
        """The method's `run`, with a line in the audit log for each write."""
        if method.rule.record is AuditLevel.NOTHING:
            return method.run
        if method.rule.record is AuditLevel.DENIALS:
            return self._only_denied(method)

        async def run(request: Any, call: Call) -> Answer:
            key, only_stops = method.subject(request), method.only_stops(request)
            await self._begin(call, method, key, only_stops=only_stops)
            try:
                answer = await maybe_await(method.run(request, call))
            except BaseException as error:
                if isinstance(error, ServiceError) and self._is_denial(error):
                    # The transport records it, as it does for calls that came no further than the gate.
                    if isinstance(error, PermissionDenied | OutOfReach):
                        error.key = error.key or key
                    raise
                self._wrote(call, method, key, error.reason if isinstance(error, ServiceError) else "UNKNOWN")
                raise
            await self._record_success(call, method, key, only_stops=only_stops)
            return answer

        return run

    async def _begin(self, call: Call, method: UnaryMethod, key: str, *, only_stops: bool) -> None:
        """Record an order before it runs. Raises AuditUnavailable: a call that changes something cannot be recorded."""
        line = self._line(call, method.path, method.rule, "allow", "begun")._replace(key=key)
        if method.rule.record is AuditLevel.ORDERS and only_stops:
            await self._audit.record_safely(line)  # before the order: if it takes effect, there is a line
        elif method.rule.record is AuditLevel.ORDERS or (method.rule.record is AuditLevel.WRITES and self._audit.fault):
            self._audit.require(line)

    def _only_denied(self, method: UnaryMethod) -> Run:
        """The method's `run`, with a line for each item of a batch that was denied."""

        async def run(request: Any, call: Call) -> Answer:
            answer = await maybe_await(method.run(request, call))
            for touch in call.touches:
                if touch.outcome == CHANGED:
                    line = self._line(call, method.path, method.rule, "allow", CHANGED)._replace(key=touch.key)
                    self.denials.record(line.identity or call.host, line, about=touch.key)
                if touch.outcome in DENIALS or touch.outcome in self._denied_by_state:
                    line = self._line(call, method.path, method.rule, "deny", touch.outcome)
                    self.denials.record(line.identity or call.host, line._replace(key=touch.key))
            return answer

        return run

    def record_refusal(self, call: Call, path: str, rule: Rule, error: ServiceError) -> None:
        """Record a call that ended with this error, if that is a denial; count it if the policy denied it."""
        if not self._is_denial(error):
            return
        is_hidden = isinstance(error, OutOfReach)  # the caller is told that it is not there
        outcome = PermissionDenied.reason if is_hidden else error.reason
        if error.code in DENIALS or is_hidden:
            self.denied[PermissionDenied.code if is_hidden else error.code] += 1
        key = error.key if isinstance(error, PermissionDenied | OutOfReach) else ""
        if isinstance(error, FailedPrecondition):
            key = error.subject.partition("/")[0]  # the instance, if the subject is a part of one
        line = self._line(call, path, rule, "deny", outcome)
        if error.code == "PERMISSION_DENIED" and not line.identity:  # the caller is known, but the gate denied the call
            line = line._replace(identity=self._claimed_identity(call))
        self.denials.record(line.identity or call.host, line._replace(key=key))

    async def _record_success(self, call: Call, method: UnaryMethod, key: str, *, only_stops: bool) -> None:
        if not only_stops:
            self._wrote(call, method, key, "OK")
            return
        for line in self._audit_lines(call, method, key, "OK"):
            await self._audit.record_safely(line)

    def _wrote(self, call: Call, method: UnaryMethod, key: str, outcome: str) -> None:
        for line in self._audit_lines(call, method, key, outcome):
            if line.outcome == "OK" and method.rule.record is AuditLevel.READS:
                self.denials.record(line.identity or call.host, line, about=line.key)
            elif line.outcome == "OK" or line.outcome in _UNSURE:
                self._audit.record(line)
            else:
                self.denials.record(line.identity or call.host, line)

    def _audit_lines(self, call: Call, method: UnaryMethod, key: str, outcome: str) -> Iterator[AuditLine]:
        """A line for each thing that the call was about."""
        line = self._line(call, method.path, method.rule, "allow", outcome)
        for touch in call.touches or (Touch(key),):
            came_to = touch.outcome or outcome
            is_denied = came_to in DENIALS or came_to in self._denied_by_state  # an item of a batch, alone
            yield line._replace(
                key=touch.key, version=touch.version, decision="deny" if is_denied else "allow", outcome=came_to
            )

    def _line(self, call: Call, path: str, rule: Rule, decision: str, outcome: str) -> AuditLine:
        return AuditLine(call.access.name, call.peer, path, "", decision, rule.name, outcome, 0, call.request_id)

    def _claimed_identity(self, call: Call) -> str:
        try:
            return self.identify(call).name
        except Unauthenticated:  # the proof has expired since
            return ""

    def _is_denial(self, error: ServiceError) -> bool:
        # By code and reason: errors that a federation gateway relays have no class of ours.
        return error.code in DENIALS or error.reason in self._denied_by_state or isinstance(error, OutOfReach)

    def leases(self) -> Iterator[Access]:
        """The access of the open streams."""
        return (lease.access for lease in self._leases)


class _Lease:
    """One open stream."""

    __slots__ = ("access", "error", "limit")

    def __init__(self, access: Access) -> None:
        self.access = access
        self.limit = asyncio.timeout(None)
        self.error: ServiceError | None = None

    def end(self, error: ServiceError) -> None:
        self.error = error
        self.limit.reschedule(asyncio.get_running_loop().time())
