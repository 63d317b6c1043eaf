"""What /livez, /readyz and grpc.health.v1 say of a gateway."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gateways.picture.picture import Picture


@dataclass(slots=True)
class GatewayHealth:
    """A gateway can serve as soon as there is a list, be it of a file: an old answer is better than none."""

    picture: Picture
    leaving: bool = False

    def live(self) -> bool:
        return True

    def loaded(self) -> bool:
        return self.picture.coverage.is_known and not self.leaving

    def staleness_s(self) -> float | None:
        age_s = self.picture.condition.age_s if self.picture.coverage.is_known else math.inf
        return age_s if math.isfinite(age_s) else None

    def doubt(self) -> str:
        return self.picture.condition.doubt if self.picture.coverage.is_known else ""

    def why(self) -> str:
        if self.leaving:
            return "this gateway is shutting down"
        condition = self.picture.condition
        error = f"HQ cannot be followed: {condition.error}" if condition.error else ""
        away = f"no word of {', '.join(sorted(condition.away))}" if condition.away else ""
        nothing = "" if self.picture.coverage.is_known else "nothing is known about any service yet"
        return "; ".join(filter(None, (nothing, error, away)))
