"""The common part of all handles: a feed while they are entered, and what it says of the list's age and source."""

from __future__ import annotations

from typing import Protocol

from hqclient.discovery.feed import Feed, FeedSubject
from hqclient.discovery.roster import Origin
from hqclient.errors import HqApiError


class Feeds(Protocol):
    """Where a handle gets its feed from."""

    async def open_feed(self, subject: FeedSubject) -> Feed:
        """The shared feed of a subject, running."""
        ...

    async def release_feed(self, subject: FeedSubject) -> None:
        """One handle no longer follows the feed."""
        ...


class FeedHandle:
    """Base of the handles: follows a feed while it is entered."""

    def __init__(self, feeds: Feeds, subject: FeedSubject, stale_after_s: float) -> None:
        self._feeds, self._subject, self._stale_after_s = feeds, subject, stale_after_s
        self._feed_or_none: Feed | None = None

    @property
    def age_s(self) -> float:
        """The list was complete so many seconds ago, at the latest; infinite: unknown, or there is none."""
        return self._feed.age_s() if self._feed_or_none else float("inf")

    @property
    def source(self) -> Origin:
        """Where the list comes from."""
        return self._feed.roster.origin if self._feed_or_none else Origin.NONE

    @property
    def stale(self) -> bool:
        """Whether the list may be out of date: HQ is away or silent, or itself away from its store."""
        roster = self._feed.roster if self._feed_or_none else None
        if roster is None or roster.origin is not Origin.LIVE:
            return True
        return bool(roster.source_is_stale or roster.doubt()) or self._feed.silent_s() > self._stale_after_s

    @property
    def doubt(self) -> str:
        """Why endpoints are kept that HQ no longer shows: its store may have lost them. Empty: there are none."""
        return self._feed.roster.doubt() if self._feed_or_none else ""

    @property
    def unheard(self) -> frozenset[str]:
        """Known clusters that have shown this process nothing yet: their instances may be missing in the list."""
        return self._feed.roster.unheard if self._feed_or_none else frozenset()

    @property
    def error(self) -> HqApiError | None:
        """Why HQ cannot be followed at the moment; None: it can."""
        return self._feed.error if self._feed_or_none else None

    @property
    def resyncs(self) -> int:
        """How often continuity was lost and a fresh snapshot taken."""
        return self._feed.roster.resyncs if self._feed_or_none else 0

    async def _open(self) -> Feed:
        if self._feed_or_none is not None:
            raise RuntimeError(f"a handle can be entered only once: get another one from Discovery for {self._subject}")
        self._feed_or_none = await self._feeds.open_feed(self._subject)
        return self._feed_or_none

    async def _release(self) -> None:
        await self._feeds.release_feed(self._subject)

    @property
    def _feed(self) -> Feed:
        if self._feed_or_none is None:
            raise RuntimeError(f"enter it first: async with the handle of {self._subject}")
        return self._feed_or_none
