"""What the transports of one process share."""

from __future__ import annotations

from hq.api.admission import Admission
from hq.api.calls import RequestIds
from hq.api.limits import Limits
from hq.api.traffic import Traffic
from hq.clock import Clock


class Surroundings:
    """Limits and what they are measured with: one object for all transports, so that limits hold for all."""

    __slots__ = ("admission", "clock", "ids", "limits", "traffic")

    def __init__(self, limits: Limits, clock: Clock, ids: RequestIds) -> None:
        self.limits = limits
        self.clock = clock
        self.ids = ids
        self.admission = Admission(limits, clock)
        self.traffic = Traffic(self.admission)
