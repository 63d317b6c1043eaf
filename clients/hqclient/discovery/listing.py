"""The endpoints of one service at one named port, in order. Decisions only, no I/O."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

from hqclient.discovery.changes import EndpointChanges
from hqclient.discovery.endpoint import Endpoint, Key, ReadyInstance, endpoint
from hqclient.discovery.roster import Delta


class Listing:
    """Picks from the roster what its service, port and revision make of it.

    Attributes:
        generation: moves with every change of the endpoints.
    """

    def __init__(self, service: str, port: str, revision: str = "") -> None:
        self.service, self.port, self.revision = service, port, revision
        self.generation = 0
        self._by_key: dict[Key, Endpoint] = {}
        self._order: list[Key] = []
        self._endpoints: tuple[Endpoint, ...] | None = ()
        self._without_port: set[Key] = set()

    def __repr__(self) -> str:
        return f"Listing({self.service}:{self.port}, {len(self._by_key)} endpoints)"

    def __len__(self) -> int:
        return len(self._by_key)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """In order of their keys."""
        if self._endpoints is None:
            self._endpoints = tuple(self._by_key[key] for key in self._order)
        return self._endpoints

    @property
    def without_port(self) -> int:
        """Ready instances that are left out because no port of that name was allocated to them, or no host."""
        return len(self._without_port)

    def begin(self, instances: Mapping[Key, ReadyInstance]) -> None:
        """Show a roster as it stands."""
        self.show(Delta({key: (None, instance) for key, instance in instances.items()}))

    def show(self, delta: Delta) -> EndpointChanges:
        """Follow a step of the roster. False if it changed nothing here."""
        added, removed, changed = [], [], []
        for key in sorted(delta.changes):
            before, after = self._by_key.get(key), self._made_of(key, delta.changes[key][1])
            if before == after:
                continue
            self._place(key, after)
            if before is None and after is not None:
                added.append(after)
            elif after is None and before is not None:
                removed.append(before)
            elif before is not None and after is not None:
                changed.append((before, after))
        collapsed = delta.collapsed or bool(delta.resync)
        return EndpointChanges(
            self.service, tuple(added), tuple(removed), tuple(changed), delta.resync, collapsed=collapsed
        )

    def _made_of(self, key: Key, instance: ReadyInstance | None) -> Endpoint | None:
        """The endpoint, if the instance is of this service and has one; counts those without the port."""
        self._without_port.discard(key)
        if instance is None or instance.service != self.service:
            return None
        if self.revision and self.revision not in instance.revisions:
            return None
        made = endpoint(instance, self.port, self.revision)
        if made is None:
            self._without_port.add(key)
        return made

    def _place(self, key: Key, after: Endpoint | None) -> None:
        self.generation += 1
        self._endpoints = None
        if after is None:
            del self._by_key[key]
            del self._order[bisect_left(self._order, key)]
            return
        if key not in self._by_key:
            insort(self._order, key)
        self._by_key[key] = after


def difference(service: str, before: Mapping[Key, Endpoint], after: tuple[Endpoint, ...]) -> EndpointChanges:
    """One step from one list to another, whatever lay between."""
    now = {e.key: e for e in after}
    return EndpointChanges(
        service,
        tuple(e for e in after if e.key not in before),
        tuple(e for key, e in before.items() if key not in now),
        tuple((before[key], e) for key, e in now.items() if key in before and before[key] != e),
    )
