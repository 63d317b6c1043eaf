"""What /livez, /readyz and grpc.health.v1 say of a front."""

from __future__ import annotations

from dataclasses import dataclass

from federated.locations.locations import Locations
from hqpb.v1 import service_pb2


@dataclass(slots=True)
class FrontHealth:
    """A front can serve reads while it knows a location that answers."""

    locations: Locations
    leaving: bool = False

    def live(self) -> bool:
        return True

    def loaded(self) -> bool:
        return self.locations.started.is_set() and not self.leaving and len(self._silent()) < self._count()

    def staleness_s(self) -> float | None:
        """Of the location that is staleest; None while one is silent."""
        told = [location.presence.staleness_s() for location in self.locations.by_name.values()]
        known = [staleness_s for staleness_s in told if staleness_s is not None]
        return max(known) if known and len(known) == len(told) else None

    def doubt(self) -> str:
        told = {name: one.presence.source for name, one in self.locations.by_name.items()}
        doubted = (f"{name}: {s.error}" for name, s in told.items() if s and s.trust == service_pb2.EPOCH_TRUST_DOUBTED)
        return "; ".join(doubted)

    def why(self) -> str:
        if self.leaving:
            return "this gateway is shutting down"
        if not self.locations.started.is_set():
            return "this gateway has not reached its locations yet"
        silent = "; ".join(f"{name} is unreachable: {error}" for name, error in self._silent().items())
        fault = self.locations.file.fault
        return "; ".join(
            filter(None, (silent, f"the changed configuration could not be loaded: {fault}" * bool(fault)))
        )

    def _silent(self) -> dict[str, str]:
        return {one.name: one.presence.error for one in self.locations.by_name.values() if not one.presence.is_up}

    def _count(self) -> int:
        return len(self.locations.by_name)
