"""Reads: get, find, count. Answered from memory, without decoding."""

from __future__ import annotations

import asyncio
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from operator import attrgetter
from typing import Final, NamedTuple

from hq.errors import EpochChanged
from hq.loading import Loading
from hq.memory.cache import Cache
from hq.memory.entry import NOT_WANTED, Entry, frames_of
from hq.memory.joined_lists import JoinedList
from hq.memory.query import Query
from hq.memory.record import Traits
from hq.registry.continuation import PageToken, encode, page_token
from hq.registry.reporter_checks import of_epoch
from hq.registry.source import NO_DEMANDS, Freshness, Source
from hqpb.v1 import service_pb2
from serving.errors import NotFound, OutOfReach, StoreUnavailable, invalid
from serving.limiting.turns import Turns
from store.fence import Fence

# Instances joined between two checks of the size: the whole result may be much larger than a page.
_PIECE = 100


class PageBuilder:
    """A page being filled.

    Attributes:
        entries: what it holds so far, in order of ids.
        frames: their frames, joined into pieces of any number of frames.
    """

    __slots__ = ("_room", "_room_bytes", "entries", "frames")

    def __init__(self, limit: int, size_bytes: int) -> None:
        """At most `limit` instances (0: any number) and `size_bytes` of frames, but at least one instance."""
        self.entries: list[Entry] = []
        self.frames: list[bytes] = []
        self._room = limit or sys.maxsize
        self._room_bytes = size_bytes

    def add(self, portion: Sequence[Entry]) -> bool:
        """Take what fits of the next instances; return whether some did not."""
        return any(self._add(portion[at : at + _PIECE]) for at in range(0, len(portion), _PIECE))

    def _add(self, portion: Sequence[Entry]) -> bool:
        fitting = portion if len(portion) <= self._room else portion[: self._room]
        frames = frames_of(fitting)
        body = b"".join(frames)  # costs less than to add up their sizes
        if len(body) > self._room_bytes:
            count = self._count_of(frames)
            fitting, body = fitting[:count], b"".join(frames[:count])
        self._room -= len(fitting)
        self._room_bytes -= len(body)
        self.entries += fitting
        self.frames.append(body)
        return len(fitting) < len(portion)

    def _count_of(self, frames: list[bytes]) -> int:
        """How many of these fit."""
        count = bisect_right(list(accumulate(map(len, frames))), self._room_bytes)
        return count or int(not self.entries)


Sees = Callable[[Traits], bool]
"""Whether a caller may be shown an instance."""


def sees_all(_: Traits) -> bool:
    return True


_MISS_S = 1.0
_PORTIONS = 2  # per turn: about 1 ms, or 5 ms with a cold CPU cache


class Found(NamedTuple):
    """A page of instances, in order of ids.

    Attributes:
        frames: their frames, joined into pieces of any number of frames; none where `listing` has them.
        next_page_token: empty on the last page.
        listing: the kept list that holds all of this, if there is one.
    """

    entries: Sequence[Entry]
    frames: Sequence[bytes]
    next_page_token: str
    source: Source
    listing: JoinedList | None = None


class GroupCount(NamedTuple):
    """The numbers of instances in one group; those neither ready nor unknown are not ready.

    `unknown`: nobody has reported them yet. `not_wanted`: they are not ready, or unknown, and need not be ready.
    """

    key: str
    total: int = 0
    ready: int = 0
    unknown: int = 0
    not_wanted: int = 0


class Reads:
    """The reading calls."""

    def __init__(self, cache: Cache, fence: Fence, loading: Loading, freshness: Freshness, page_bytes: int) -> None:
        self._cache, self._fence, self._loading = cache, fence, loading
        self._freshness, self._page_bytes = freshness, page_bytes
        self._turns = Turns()

    def get_now(self, instance_id: str) -> tuple[Entry, Source] | None:
        """Return the instance from memory, for a reader who demands nothing; None: `get` has to look further."""
        entry = self._cache.get(instance_id) if self._loading.loaded.is_set() else None
        return (entry, self._freshness.source()) if entry is not None else None

    def find_now(self, query: Query, page_size: int, token: str, read: service_pb2.ReadOptions) -> Found | None:
        """A list that is kept, or a few instances by id, if memory is fresh enough; None: `find` has to look."""
        if not self._freshness.is_fresh_for(read):
            return None
        if not token and 0 < len(query.ids) <= _PIECE:
            page, (named,) = PageBuilder(page_size, self._page_bytes), self._cache.matching(query)
            return None if page.add(named) else Found(page.entries, page.frames, "", self._freshness.source())
        if not query.listing:
            return None
        listing = None if token else self._cache.listing(query)
        if listing is None or listing.size_bytes > self._page_bytes or (page_size and len(listing.entries) > page_size):
            listing = self._cache.page(query, (page_size, token))
        if listing is None:
            return None
        return Found(listing.entries, (), listing.next_page_token, self._freshness.source(), listing)

    async def get(
        self, instance_id: str, read: service_pb2.ReadOptions, deadline: float | None, sees: Sees = sees_all
    ) -> tuple[Entry, Source]:
        """An instance that the caller may not see is answered, in words and in time, like one that does not exist.

        Raises:
            NotFound, OutOfReach: final, after a fence.
            ServiceError: what `Freshness.wait_until_fresh` and `_look_again` raise.
        """
        if not self._freshness.is_fresh_for(read):
            await self._freshness.wait_until_fresh(read, deadline)
        entry = self._cache.get(instance_id)
        if entry is None or not sees(entry.traits):
            # Another replica may have stored it already: an agent or uploader must not act on stale memory.
            await self._look_again(instance_id)
            await self._freshness.wait_for_version(read, deadline)
            entry = self._cache.get(instance_id)
        words = f"there is no instance {instance_id}"
        if entry is None:
            raise of_epoch(NotFound(words), self._cache.epoch)
        if not sees(entry.traits):
            raise of_epoch(OutOfReach(words, key=instance_id), self._cache.epoch)
        return entry, self._freshness.source()

    async def _look_again(self, instance_id: str) -> None:
        """Return when memory has everything that was acknowledged before this call.

        A fence passes within milliseconds or not at all, so a mere lookup does not wait until it has failed.

        Raises:
            StoreUnavailable: the store does not answer now; the message says what memory has, and how old that is.
        """
        fence = self._fence
        try:
            async with asyncio.timeout(0 if fence.error else _MISS_S):
                await fence.wait_for_fence()
        except (TimeoutError, StoreUnavailable):
            age_s = fence.staleness_s()
            words = f"this replica has no instance {instance_id} in memory" + (
                "" if age_s is None else f" as of {age_s:.1f} s ago"
            )
            raise StoreUnavailable(
                f"{words}, and the store, which has to confirm that, does not respond: retry, or use another "
                "replica; FindInstances with this instance_id answers from memory"
            ) from None

    async def find(
        self,
        query: Query,
        page_size: int,
        token: str,
        read: service_pb2.ReadOptions,
        deadline: float | None,
        sees: Sees | None = None,
    ) -> Found:
        """A page. Raises InvalidRequest (a token of another filter), EpochChanged, and what `wait_until_fresh` raises.

        `sees`: what the caller may be shown. Pages hold only that, since a token says at which id its page ended.
        """
        if not self._freshness.is_fresh_for(read):
            await self._freshness.wait_until_fresh(read, deadline)
        if sees is None and (kept := self.find_now(query, page_size, token, NO_DEMANDS)) is not None:
            return kept
        after = page_start(self._cache, query, token) if token else ""
        place = self._cache.place(query, (page_size, token)) if sees is None else None
        portions: Iterator[Sequence[Entry]] = self._cache.matching(query, after)
        if sees is not None:
            portions = ([entry for entry in portion if sees(entry.traits)] for portion in portions)
        source = self._freshness.source()
        page, next_token = PageBuilder(page_size, self._page_bytes), ""
        for number, portion in enumerate(portions, 1):
            if page.add(portion):
                next_token = encode(PageToken(source.epoch, query.digest, page.entries[-1].traits.id))
                break
            if number % _PORTIONS == 0:
                await self._turns.next()
        if place is not None:
            return Found(page.entries, (), next_token, source, place.keep(page.entries, page.frames, next_token))
        return Found(page.entries, page.frames, next_token, source)

    async def count(
        self, query: Query, group_by: int, read: service_pb2.ReadOptions, deadline: float | None
    ) -> tuple[list[GroupCount], Source]:
        """Counts by key, in order; one group if none is asked for. By revision, an instance counts once for each.

        By reason, only instances that are not ready count.
        """
        await self._freshness.wait_until_fresh(read, deadline)
        source = self._freshness.source()
        tally = GroupTally()
        add: Callable[[Sequence[Entry]], None]
        if group_by == service_pb2.COUNT_GROUP_UNSPECIFIED:
            tally.total[""] = 0
        if group_by == service_pb2.COUNT_GROUP_REVISION:
            add = tally.by_revision
        elif group_by == service_pb2.COUNT_GROUP_REASON:
            if query.ready is True:
                return [], source
            add, query = tally.by_reason, query.of_unready()
        else:
            field, key_of = _KEYS[group_by]
            add = partial(tally.by, key_of)
            # The indexes know how many there are: only those that are not ready are looked at.
            if (sizes := self._cache.sizes(query, field)) is not None:
                add, query = tally.begin_with(sizes, key_of), query.of_unready()
        async for portion in with_turns(self._turns, self._cache.matching(query)):
            add(portion)
        return tally.counts(), source


def page_start(cache: Cache, query: Query, text: str) -> str:
    """The id after which the next page begins. Raises InvalidRequest, EpochChanged."""
    token = page_token(text)
    if token.filter_digest != query.digest:
        raise invalid("page_token", "belongs to another filter: repeat the filter of the first page")
    if token.epoch != cache.epoch:
        raise EpochChanged(token.epoch, cache.epoch)
    return token.last_id


async def with_turns(turns: Turns, portions: Iterator[Sequence[Entry]]) -> AsyncIterator[Sequence[Entry]]:
    """The portions; after every few, other tasks get a turn."""
    for number, portion in enumerate(portions, 1):
        yield portion
        if number % _PORTIONS == 0:
            await turns.next()


_KEYS: Final[Mapping[int, tuple[str, Callable[[Traits], str]]]] = {
    service_pb2.COUNT_GROUP_UNSPECIFIED: ("", lambda _: ""),
    service_pb2.COUNT_GROUP_SERVICE: ("services", attrgetter("service")),
    service_pb2.COUNT_GROUP_NODE: ("nodes", attrgetter("node")),
}


class GroupTally:
    """Total, ready and unknown instances by key. Takes whole portions: there may be a hundred thousand instances."""

    def __init__(self) -> None:
        self.total, self._ready = Counter[str](), Counter[str]()
        self._unknown, self._not_wanted = Counter[str](), Counter[str]()

    def counts(self) -> list[GroupCount]:
        """Counts in order of their keys."""
        parts = self.total, self._ready, self._unknown, self._not_wanted
        return [GroupCount(key, *(part[key] for part in parts)) for key in sorted(self.total)]

    def begin_with(
        self, sizes: Mapping[str, int], key_of: Callable[[Traits], str]
    ) -> Callable[[Sequence[Entry]], None]:
        """Start with these totals, all ready. Call the function returned with the instances that are not."""
        self.total.update(sizes)
        self._ready.update(sizes)

        def unready(portion: Sequence[Entry]) -> None:
            self._ready.subtract([key_of(entry.traits) for entry in portion])
            self._unready(key_of, portion)

        return unready

    def _unready(self, key_of: Callable[[Traits], str], portion: Sequence[Entry]) -> None:
        self._unknown.update([key_of(entry.traits) for entry in portion if entry.is_unknown()])
        self._not_wanted.update([key_of(entry.traits) for entry in portion if entry.reason() == NOT_WANTED])

    def by(self, key_of: Callable[[Traits], str], portion: Sequence[Entry]) -> None:
        """Count each instance once."""
        self.total.update([key_of(entry.traits) for entry in portion])
        self._ready.update([key_of(entry.traits) for entry in portion if entry.traits.ready])
        self._unready(key_of, [entry for entry in portion if not entry.traits.ready])

    def by_reason(self, portion: Sequence[Entry]) -> None:
        """Count each instance once; none of them is ready."""
        reasons = [entry.reason() for entry in portion]
        self.total.update(reasons)
        self._not_wanted.update([reason for reason in reasons if reason == NOT_WANTED])
        self._unknown.update([r for r, entry in zip(reasons, portion, strict=True) if entry.is_unknown()])

    def by_revision(self, portion: Sequence[Entry]) -> None:
        """Count each instance once per revision in its spec: as ready if that revision is."""
        for entry in portion:
            ready = [mark.id for mark in entry.marks if mark.ready]
            for revision in entry.traits.revisions:
                self.total[revision] += 1
                if revision in ready:
                    self._ready[revision] += 1
                elif entry.is_unknown(revision):
                    self._unknown[revision] += 1
