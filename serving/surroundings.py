"""What the transports of one process share."""

from __future__ import annotations

from serving.admission import Admission
from serving.calls import RequestIds
from serving.clock import Clock
from serving.limits import Limits
from serving.loop_lag import LoopLag
from serving.traffic import Traffic


class Surroundings:
    """Limits and what they are measured with: one object for all transports, so that limits hold for all."""

    __slots__ = ("admission", "clock", "ids", "limits", "loop_lag", "traffic")

    def __init__(self, limits: Limits, clock: Clock, ids: RequestIds) -> None:
        self.limits = limits
        self.clock = clock
        self.ids = ids
        self.admission = Admission(limits, clock)
        self.traffic = Traffic(self.admission)
        self.loop_lag = LoopLag()
