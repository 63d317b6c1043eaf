"""The handle of all instances of some services, ready or not: for whoever shows them to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from hqclient.discovery.endpoint import Key, KnownInstance
from hqclient.discovery.feed import Subject
from hqclient.discovery.followed import Feeds, Followed
from hqclient.discovery.roster import Delta, Origin

Follow = Callable[[Delta], None]


class Instances(Followed):
    """The instances by cluster and id. A context manager; in the block it follows HQ by itself.

    Args:
        follow: called with each step, in order, from inside the event loop; first with all that a file held.
    """

    def __init__(self, feeds: Feeds, subject: Subject, stale_after_s: float, follow: Follow) -> None:
        super().__init__(feeds, subject, stale_after_s)
        self._follow = follow

    def __repr__(self) -> str:
        return f"Instances({self._subject}, {self.source.name})"

    async def __aenter__(self) -> Self:
        feed = await self._open()
        if feed.roster.instances:
            self._follow(Delta({key: (None, instance) for key, instance in feed.roster.instances.items()}))
        feed.attach(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.detach(self)
        await self._release()

    @property
    def known(self) -> Mapping[Key, KnownInstance]:
        """All of them as they are now; replaced or changed by the next step."""
        return self._feed.roster.instances

    @property
    def is_known(self) -> bool:
        """There is a list, be it empty: a saved one, or all that the locations which answer have shown."""
        return self.source is not Origin.NONE

    @property
    def heard(self) -> frozenset[str]:
        """Clusters that have shown all that they have, to this process: what they lack here they do not have."""
        return self._feed.roster.heard

    @property
    def unheard(self) -> frozenset[str]:
        """Clusters that are known to exist and have not: of them the list may lack anything."""
        return self._feed.roster.unheard

    @property
    def away(self) -> frozenset[str]:
        """Clusters of which a federation gateway has no word at present: their instances are kept as they were."""
        return self._feed.roster.away

    async def moved(self) -> None:
        """Return after the next step, or when the watch began, ended or was refused."""
        await self._feed.moved()

    def step(self, delta: Delta) -> None:
        """The feed's word; not for callers."""
        self._follow(delta)
