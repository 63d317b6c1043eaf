"""Pictures of gateways without HQ: what is known is said by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from gateways.picture.hosts import HostResolver
from gateways.picture.picture import EndpointView
from hqclient.discovery import Delta, KnownInstance, Origin
from hqclient.errors import HqApiError


def known(
    id_: str,
    service: str = "web",
    *,
    cluster: str = "east",
    host: str = "10.0.0.1",
    port: int = 80,
    is_ready: bool = True,
    revision: str = "r1",
    labels: Mapping[str, str] | None = None,
    weight: int = 100,
) -> KnownInstance:
    """An instance as the discovery library keeps it, with a port `http`."""
    return KnownInstance(
        cluster, id_, 1, service, f"node-{id_}", host, {"http": port}, labels or {}, (revision,), is_ready, weight
    )


class FakeCondition:
    """How good the list is, as a test says. `move` after it said so."""

    def __init__(self) -> None:
        self.is_known, self.stale, self.age_s, self.resyncs = True, False, 0.5, 0
        self.heard, self.unheard, self.away = frozenset({"east"}), frozenset[str](), frozenset[str]()
        self.source, self.doubt = Origin.LIVE, ""
        self.error: HqApiError | None = None
        self._moved = asyncio.Event()

    async def wait_for_change(self) -> None:
        await self._moved.wait()
        self._moved.clear()

    def move(self) -> None:
        self._moved.set()


class PictureBuilder:
    """A picture, and the hand that draws it.

    Attributes:
        told: what its listeners were told, in order.
    """

    def __init__(self, hosts: HostResolver | None = None) -> None:
        self.picture, self.condition = EndpointView(hosts), FakeCondition()
        self.picture.condition = self.condition
        self.told: list[list[str]] = []
        self.picture.listen(lambda services: self.told.append(sorted(services)))

    def put(self, *instances: KnownInstance) -> None:
        """These are there, or changed."""
        now = self._now()
        self.picture.step(Delta({one.key: (now.get(one.key), one) for one in instances}))

    def drop(self, *keys: tuple[str, str]) -> None:
        """These are gone."""
        now = self._now()
        self.picture.step(Delta({key: (now[key], None) for key in keys}))

    def look(self) -> None:
        """The condition changed, and no instance did."""
        self.picture.step(Delta({}))

    def _now(self) -> dict[tuple[str, str], KnownInstance]:
        return {key: one for name in self.picture.services for key, one in self.picture.instances(name).items()}


def picture_of(
    *instances: KnownInstance, heard: Collection[str] = ("east",), unheard: Collection[str] = ()
) -> PictureBuilder:
    """A picture with these, of locations that have or have not shown all they have."""
    made = PictureBuilder()
    made.condition.heard, made.condition.unheard = frozenset(heard), frozenset(unheard)
    made.put(*instances)
    return made
