"""Parts that the transports of one process share: limits, the clock, security and metrics."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from serving.auth.call_guard import CallGuard
from serving.calls.incoming import RequestIds
from serving.clock import Clock
from serving.limiting.admission import Admission
from serving.limiting.caller_threads import CallerThreads
from serving.limiting.limits import Limits
from serving.rights.reach import Reach
from serving.rights.rules import Rule
from serving.telemetry import process, traffic
from serving.telemetry.metrics import Table
from serving.telemetry.process import LogCounts, LoopLag
from serving.telemetry.traffic import Traffic

if TYPE_CHECKING:
    from serving.auth.security import Security  # it takes 9 MB, which an agent of a node need not have
    from serving.telemetry.tracing import Tracing


class ServerContext:
    """Limits and what they are measured with: one object for all transports, so that limits hold for all."""

    __slots__ = (
        *("admission", "json_thread", "clock", "ids", "limits"),
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
        self.json_thread = CallerThreads(most=1)  # several at once would take the interpreter from the loop
        self.traffic = Traffic(self.admission)
        self.loop_lag = LoopLag()
        self.log_counts = LogCounts()

    def beside(self, limits: Limits) -> ServerContext:
        """The same context with limits of its own: what is under way here does not count there."""
        other = copy(self)
        other.limits, other.admission = limits, Admission(limits, self.clock)
        self.traffic.admissions.append(other.admission)
        return other

    def why_unrecorded(self) -> str:
        """Why calls that begin now cannot be recorded; empty: the audit log can be written, or there is none."""
        fault = self.security.audit.fault if self.security is not None else ""
        return f"the audit log cannot be written: {fault}" if fault else ""

    def guard(self, path: str, rule: Rule, reach: Reach | None) -> CallGuard:
        """Return the guard of calls of a method, or of a page."""
        return CallGuard(self.security.gate if self.security is not None else None, path, rule, self.admission, reach)


def process_metrics(context: ServerContext) -> CollectorRegistry:
    """A registry with the traffic, the event loop's lag, and what is known of the process itself."""
    registry = CollectorRegistry()
    registry.register(Table(traffic.METRICS, context.traffic))
    registry.register(Table(process.LOOP_LAG_METRICS, context.loop_lag))
    registry.register(Table(process.LOG_METRICS, context.log_counts))
    process.register_process(registry)
    return registry
