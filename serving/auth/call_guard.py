"""What a transport does about security in each call of a method, or of a page: the gate, with the method's rule."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

from serving.auth.gate import Admit, Gate
from serving.calls.methods import Answer, Call, Unary
from serving.errors import ServiceError
from serving.limiting.admission import Admission
from serving.rights.rules import Rule

_NO_LEASE: Final = nullcontext()


def _charging(admit: Admit, admission: Admission) -> Admit:
    """The same, but calls that are not let in count against their peer: they have no identity to count by."""

    def charging(call: Call) -> None:
        try:
            admit(call)
        except ServiceError:
            admission.check_rate(call.host)
            raise

    return charging


class Guard:
    """The gate, for one method or page.

    Attributes:
        admit: to be called before anything of a request is read; None: everybody may call.
    """

    __slots__ = ("_gate", "_path", "_rule", "admit")

    def __init__(self, gate: Gate | None, path: str, rule: Rule, admission: Admission) -> None:
        self._gate, self._path, self._rule = gate, path, rule
        admit = gate.admitter(rule) if gate is not None else None
        self.admit = _charging(admit, admission) if admit is not None and admission.peer_rate is not None else admit

    def recorded(self, method: Unary) -> Callable[[Any, Call], Answer | Awaitable[Answer]]:
        """The method's `run`; what it writes is recorded."""
        return method.run if self._gate is None else self._gate.recorded(method)

    def lease(self, call: Call) -> AbstractAsyncContextManager[None]:
        """How long a stream may go on."""
        return _NO_LEASE if self._gate is None else self._gate.lease(call)

    def refused(self, call: Call, error: ServiceError) -> None:
        """The call ended with this error."""
        if self._gate is not None:
            self._gate.refused(call, self._path, self._rule, error)
