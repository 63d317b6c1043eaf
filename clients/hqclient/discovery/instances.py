"""The handle of all instances of some services, ready or not: for programs that show them to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from hqclient.discovery.endpoint import Key, KnownInstance
from hqclient.discovery.feed import FeedSubject
from hqclient.discovery.followed import FeedHandle, Feeds
from hqclient.discovery.roster import Delta, Origin

Follow = Callable[[Delta], None]


class FollowedInstances(FeedHandle):
    """The instances by cluster and id. A context manager; inside the block it follows HQ.

    Args:
        follow: called with each step, in order, from inside the event loop; first with everything that the file held.
    """

    def __init__(self, feeds: Feeds, subject: FeedSubject, stale_after_s: float, follow: Follow) -> None:
        super().__init__(feeds, subject, stale_after_s)
        self._follow = follow

    def __repr__(self) -> str:
        return f"FollowedInstances({self._subject}, {self.source.name})"

    async def __aenter__(self) -> Self:
        known = (await self._open()).attach(self)
        if known.changes:
            self._follow(known)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.detach(self)
        await self._release()

    @property
    def known(self) -> Mapping[Key, KnownInstance]:
        """All known instances. The next step replaces or changes this mapping."""
        return self._feed.roster.instances

    @property
    def is_known(self) -> bool:
        """Whether there is a list, possibly empty: a saved one, or complete snapshots of all locations that answer."""
        return self.source is not Origin.NONE

    @property
    def heard(self) -> frozenset[str]:
        """Clusters that have shown this process a complete snapshot: what is missing here does not exist there."""
        return self._feed.roster.heard

    @property
    def away(self) -> frozenset[str]:
        """Clusters that a federation gateway currently cannot reach: their instances are kept as they were."""
        return self._feed.roster.away

    async def wait_for_change(self) -> None:
        """Return after the next step, or when the watch began, ended or was refused."""
        await self._feed.wait_for_change()

    def step(self, delta: Delta) -> None:
        """Called by the feed; not for callers."""
        self._follow(delta)
