"""What the transports of one process share."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from serving.auth.guard import Guard
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.clock import Clock
from serving.encoding.aside import Aside
from serving.limiting.admission import Admission
from serving.limiting.limits import Limits
from serving.rights.rules import Rule
from serving.telemetry.log_counts import LogCounts
from serving.telemetry.loop_lag import LoopLag
from serving.telemetry.traffic import Traffic

if TYPE_CHECKING:
    from serving.telemetry.tracing import Tracing


class Surroundings:
    """Limits and what they are measured with: one object for all transports, so that limits hold for all."""

    __slots__ = (
        *("admission", "aside", "clock", "ids", "limits"),
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
        """`security` None: plain text, and nobody is asked who they are."""
        self.limits = limits
        self.clock = clock
        self.ids = ids
        self.security = security
        self.tracing = tracing
        self.admission = Admission(limits, clock)
        self.aside = Aside()
        self.traffic = Traffic(self.admission)
        self.loop_lag = LoopLag()
        self.log_counts = LogCounts()

    def beside(self, limits: Limits) -> Surroundings:
        """The same, with limits of its own: what is under way here leaves no less room there."""
        other = copy(self)
        other.limits, other.admission = limits, Admission(limits, self.clock)
        self.traffic.admissions.append(other.admission)
        return other

    def guard(self, path: str, rule: Rule) -> Guard:
        """What is to be done about security in calls of a method, or for a page."""
        return Guard(self.security.gate if self.security is not None else None, path, rule, self.admission)
