"""Whether the author of an order may still give it when it takes effect: orders are stored, perhaps for days.

By then a host may have moved to somebody else, or the author may have lost its rights. So both are compared: the grants
that are stored with the order, and what the policy of this process grants its author now. A policy that grew meanwhile
allows no order that was not allowed when it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from control.errors import Refused, UnreadableEvent
from serving.auth.gate import Authenticator
from serving.context import ServerContext
from serving.errors import OutOfReach, PermissionDenied, Unauthenticated
from serving.rights.access import Access
from serving.rights.rules import Rule
from serving.rights.stored import decode_access


class OrderRights:
    """`access`: the author's, as `encode_access` stored it; empty: authors were not authenticated then."""

    def __init__(self, gate: Authenticator | None = None) -> None:
        self._gate = gate

    @classmethod
    def of(cls, shared: ServerContext) -> OrderRights:
        """Made with the policy of this process, if it has one."""
        return cls(shared.security.gate if shared.security is not None else None)

    def refusal(self, access: str, rule: Rule, check: Callable[[Access], object]) -> Refused | None:
        """Why an order may not take effect; None: it may. `check` raises PermissionDenied or OutOfReach.

        Raises UnreadableEvent: the grants are of a newer version.
        """
        if not access:
            return None
        try:
            stored = decode_access(access, rule)
        except (ValueError, TypeError) as error:
            raise UnreadableEvent("the order has grants that this version does not know: upgrade it") from error
        try:
            check(stored)
        except (PermissionDenied, OutOfReach) as error:
            return Refused(str(error), error.code)
        return self._withdrawal(stored, rule, check)

    def check(self, access: str, rule: Rule, check: Callable[[Access], object]) -> None:
        """Raises Refused, UnreadableEvent."""
        if (refusal := self.refusal(access, rule, check)) is not None:
            raise refusal

    def _withdrawal(self, stored: Access, rule: Rule, check: Callable[[Access], object]) -> Refused | None:
        if self._gate is None or stored.identity is None:
            return None
        try:
            check(self._gate.current_access(stored.identity, rule))
        except (PermissionDenied, OutOfReach, Unauthenticated) as error:
            return Refused(
                f"the rights of its author were withdrawn since it was ordered: {error}", "PERMISSION_DENIED"
            )
        return None


BY_STORED_GRANTS: Final = OrderRights()
