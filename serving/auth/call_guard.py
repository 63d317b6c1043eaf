"""Security of each call of a method, or of a page, in every transport: the gate, with the method's rule."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from serving.calls.methods import Call, Duplex, Method, UnaryMethod
from serving.errors import OutOfReach, PermissionDenied, ServiceError
from serving.limiting.admission import Admission
from serving.rights.reach import Check, Reach
from serving.rights.rules import NOBODY, Rule

if TYPE_CHECKING:
    from serving.auth.gate import Admit, Authenticator  # which imports cryptography

_NO_LEASE: Final = nullcontext()


def _charging(admit: Admit, admission: Admission) -> Admit:
    """`admit`, but calls that it does not let in count against their peer: they have no identity to count by."""

    def charging(call: Call) -> None:
        try:
            admit(call)
        except ServiceError:
            admission.check_rate(call.host)
            raise

    return charging


def _checking(
    check: Check, run: Callable[[Any, Call], Any], subject: Callable[[Any], str]
) -> Callable[[Any, Call], Any]:
    def run_checked(request: Any, call: Call) -> Any:
        try:
            check(request, call.access)
        except (PermissionDenied, OutOfReach) as error:
            error.key = error.key or subject(request)
            raise
        return run(request, call)

    return run_checked


class CallGuard:
    """The gate, for one method or page.

    Attributes:
        admit: to be called before anything of a request is read; None: everybody may call.
    """

    __slots__ = ("_check", "_gate", "_path", "_rule", "admit")

    def __init__(
        self, gate: Authenticator | None, path: str, rule: Rule, admission: Admission, reach: Reach | None
    ) -> None:
        """Raises ValueError: somebody may call this, and no reach is given."""
        if reach is None and not rule.is_open and rule is not NOBODY:
            raise ValueError(f"{path} names no reach: say in the table of methods what it reaches")
        self._gate, self._path, self._rule = gate, path, rule
        self._check = reach.check if reach is not None and gate is not None else None
        admit = gate.admitter(rule) if gate is not None else None
        self.admit = _charging(admit, admission) if admit is not None and admission.peer_rate is not None else admit

    def run_of(self, method: Method) -> Callable[[Any, Call], Any]:
        """The method's `run`, behind the check of its reach; what it writes is recorded.

        Raises ValueError: the method takes a stream of requests, which cannot be checked before it runs.
        """
        if isinstance(method, Duplex) and method.reach is not None and method.reach.check is not None:
            raise ValueError(f"{method.path}: requests of a stream come one by one, to itself: it has to compare each")
        run: Callable[[Any, Call], Any] = method.run
        if self._gate is not None and isinstance(method, UnaryMethod):
            run = self._gate.audited_run(method)
        if self._check is None:
            return run
        return _checking(self._check, run, method.subject if isinstance(method, UnaryMethod) else lambda _: "")

    def lease(self, call: Call) -> AbstractAsyncContextManager[None]:
        """How long a stream may go on."""
        return _NO_LEASE if self._gate is None else self._gate.lease(call)

    def on_call_refused(self, call: Call, error: ServiceError) -> None:
        """The call ended with this error."""
        if self._gate is not None:
            self._gate.record_refusal(call, self._path, self._rule, error)
