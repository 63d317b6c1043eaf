"""What the transports of one process share, and what they do about security in each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from serving.auth.gate import Admit, Gate
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.calls.methods import Answer, Call, Unary
from serving.clock import Clock
from serving.encoding.parsing import WorkerThread
from serving.errors import ServiceError
from serving.limiting.admission import Admission
from serving.limiting.limits import Limits
from serving.rights.rules import Rule
from serving.telemetry import process, traffic
from serving.telemetry.metrics import Table
from serving.telemetry.process import LogCounts, LoopLag
from serving.telemetry.traffic import Traffic

if TYPE_CHECKING:
    from serving.telemetry.tracing import Tracing


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
        """The time for which a stream may go on."""
        return nullcontext() if self._gate is None else self._gate.lease(call)

    def refused(self, call: Call, error: ServiceError) -> None:
        """The call ended with this error."""
        if self._gate is not None:
            self._gate.refused(call, self._path, self._rule, error)


def _charging(admit: Admit, admission: Admission) -> Admit:
    """The same, but calls that are not let in count as their peer's: those of nobody have no identity to count by."""

    def charging(call: Call) -> None:
        try:
            admit(call)
        except ServiceError:
            admission.check_rate(call.host)
            raise

    return charging


class ServerContext:
    """Limits and what they are measured with: one object for all transports, so that limits hold for all."""

    __slots__ = (
        *("admission", "worker_thread", "clock", "ids", "limits"),
        *("log_counts", "loop_lag", "security", "tracing", "traffic"),
    )

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        ids: RequestIds,
        security: Security | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """`security` None: without TLS or authentication."""
        self.limits = limits
        self.clock = clock
        self.ids = ids
        self.security = security
        self.tracing = tracing
        self.admission = Admission(limits, clock)
        self.worker_thread = WorkerThread()
        self.traffic = Traffic(self.admission)
        self.loop_lag = LoopLag()
        self.log_counts = LogCounts()

    def beside(self, limits: Limits) -> ServerContext:
        """The same, with limits of its own: what is under way here leaves no less room there."""
        other = copy(self)
        other.limits, other.admission = limits, Admission(limits, self.clock)
        self.traffic.admissions.append(other.admission)
        return other

    def guard(self, path: str, rule: Rule) -> Guard:
        """What is to be done about security in calls of a method, or for a page."""
        return Guard(self.security.gate if self.security is not None else None, path, rule, self.admission)


def process_metrics(context: ServerContext) -> CollectorRegistry:
    """A registry with the traffic, the event loop's lag, and what is known of the process itself."""
    registry = CollectorRegistry()
    registry.register(Table(traffic.METRICS, context.traffic))
    registry.register(Table(process.LOOP_LAG_METRICS, context.loop_lag))
    registry.register(Table(process.LOG_METRICS, context.log_counts))
    process.register_process(registry)
    return registry
