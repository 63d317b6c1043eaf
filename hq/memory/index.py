"""Which instances have a word in a field: one index per field, and all of them together."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import Any, Generic, TypeVar

from hq.memory.bucket import Block, Bucket, id_of
from hq.memory.entry import Entry, frames_of
from hq.memory.joined_lists import CacheSlot, JoinedList, ListCacheBudget, ServiceListCache
from hq.memory.query import UNALLOCATED, UNREADY, Query
from hq.memory.record import Traits

W = TypeVar("W", bound=Hashable)

_SORTED_AT_ONCE = 5_000  # instances; some 3 ms
_MERGED = 64  # buckets; beginning a merge costs some 10 µs for each of them
_PORTION = 500
_LISTED = 1_000  # instances; to join more at once would hold up the loop


class Index(Generic[W]):
    """Buckets by the words that a field may hold. A word that only one instance has holds the instance itself:
    every instance may have labels of its own."""

    def __init__(self) -> None:
        self._held: dict[W, Bucket | Entry] = {}

    def __len__(self) -> int:
        return len(self._held)

    def sizes(self, words: Iterable[W] | None = None) -> dict[W, int]:
        """How many instances have each of these words; of all words, if none are given."""
        held = self._held
        named = held if words is None else {word: held[word] for word in words if word in held}
        return {word: len(one) if isinstance(one, Bucket) else 1 for word, one in named.items()}

    def buckets(self, words: Iterable[W]) -> list[Bucket]:
        """Buckets of those words that any instance has."""
        get = self._held.get
        held = [one for word in words if (one := get(word)) is not None]
        return [one if isinstance(one, Bucket) else Bucket.of(one) for one in held]

    def move(self, before: Sequence[W], after: Sequence[W], instance_id: str, entry: Entry | None) -> None:
        """File an instance under the words in `after`, and no longer under those that only `before` has."""
        if before != after:
            for word in before:
                if word not in after:
                    self._drop(word, instance_id)
        if entry is not None:
            self.add(after, entry)

    def add(self, words: Sequence[W], entry: Entry) -> None:
        """Index an instance by these words; its previous entry under them is replaced."""
        for word in words:
            held = self._held.get(word)
            if isinstance(held, Bucket):
                if not held.append(entry):
                    held.put(entry)
            elif held is None or held.traits.id == entry.traits.id:
                self._held[word] = entry
            else:
                bucket = self._held[word] = Bucket.of(held)
                bucket.put(entry)

    def extend(self, found: dict[W, list[Entry]]) -> None:
        """File new instances, by word, in order of ids."""
        for word, entries in found.items():
            held = self._held.get(word)
            if held is None and len(entries) == 1:
                self._held[word] = entries[0]
                continue
            if not isinstance(held, Bucket):
                held = self._held[word] = Bucket() if held is None else Bucket.of(held)
            held.extend(entries)

    def _drop(self, word: W, instance_id: str) -> None:
        held = self._held.get(word)
        if isinstance(held, Bucket):
            held.drop(instance_id)
            if not len(held):
                del self._held[word]
        elif held is not None and held.traits.id == instance_id:
            del self._held[word]


class Indexes:
    """All indexes of a cache, kept in step with each other. `listing_bytes`: limit of the lists kept joined."""

    def __init__(self, listing_bytes: int) -> None:
        self._homes: dict[str, ServiceListCache] = {}
        self._shelf = ListCacheBudget(listing_bytes)
        self._all = Bucket()
        self._clusters: Counter[str] = Counter()
        self._by: dict[str, Index[Any]] = {name: Index() for name in _NAMES}

    def file(self, instance_id: str, before: Entry | None, after: Entry | None) -> None:
        """Put an instance into every index in place of its previous entry."""
        old, new = before.traits if before else None, after.traits if after else None
        self._count(old, new)
        if after is None:
            self._all.drop(instance_id)
        elif not self._all.append(after):
            self._all.put(after)
        are = _words(new)
        if before is None and after is not None:
            for index, now in zip(self._by.values(), are, strict=True):
                if now:
                    index.add(now, after)
        else:
            were = are if new is old else _words(old)
            for index, was, now in zip(self._by.values(), were, are, strict=True):
                index.move(was, now, instance_id, after)
        self._settle(before, after)

    def file_new(self, entries: list[Entry]) -> None:
        """Put instances into every index that were in none, in order of ids: as `file` does, at a third of its cost."""
        found: list[defaultdict[Any, list[Entry]]] = [defaultdict(list) for _ in _NAMES]
        for entry in entries:
            for by_word, words in zip(found, _words(entry.traits), strict=True):
                for word in words:
                    by_word[word].append(entry)
        self._clusters.update([entry.traits.cluster for entry in entries])
        self._all.extend(entries)
        for index, by_word in zip(self._by.values(), found, strict=True):
            index.extend(by_word)
        for service, own in found[0].items():
            home = self._homes.setdefault(service, ServiceListCache())
            home.invalidate()
            for entry in own:
                entry.home = home

    def nodes(self) -> int:
        """How many nodes hold instances."""
        return len(self._by["nodes"])

    def unready(self) -> int:
        """How many instances are not ready."""
        return sum(map(len, self._by["unready"].buckets(UNREADY)))

    def sizes(self, query: Query, key: str) -> dict[str, int] | None:
        """Sizes, as in `Cache.sizes`."""
        left = self._distinguishing_fields(query)
        if left - {key} or key not in ("", *_COUNTED):
            field = min(left, default="")
            if key or left != {field} or field not in _COUNTED:
                return None
            return {"": sum(self._by[field].sizes(getattr(query, field)).values())}
        if not key:
            return {"": len(self._all)}
        sizes: dict[str, int] = self._by[key].sizes(getattr(query, key) or None)
        if key == "nodes" and not left and (bare := len(self._all) - sum(sizes.values())):
            sizes[""] = bare
        return sizes

    def _distinguishing_fields(self, query: Query) -> frozenset[str]:
        """The fields that tell instances apart here."""
        is_everywhere = query.clusters and self._clusters.keys() <= query.clusters
        return query.fields - {"clusters"} if is_everywhere else query.fields

    def matching(self, query: Query, after: str) -> Iterator[Sequence[Entry]]:
        """Matching entries, as in `Cache.matching`, for a query that names no ids."""
        buckets, settled = self._narrowest(query)
        left = self._distinguishing_fields(query) - {settled}
        portions = _portions(buckets, after)
        return (query.passing(portion, left) for portion in portions) if left else portions

    def listing(self, query: Query) -> JoinedList | None:
        """The whole answer to a query, kept until it changes; None: it is too long, or of a kind that is not kept."""
        if query.listing is None:
            return None
        service, ready = query.listing
        home = self._homes.get(service)
        if home is None:
            return None
        listing = home.listings.get(ready)
        if listing is None:
            (bucket,) = self._by["services"].buckets((service,))
            if len(bucket) > _LISTED:
                return None
            entries = tuple(chain.from_iterable(self.matching(query, "")))
            listing = self._shelf.place(home, ready).keep(entries, frames_of(entries))
        return listing

    def page(self, query: Query, page: Hashable) -> JoinedList | None:
        """A page of a query, if it is kept."""
        home = self._home(query)
        return home.get((query.listing, page)) if home is not None else None

    def place(self, query: Query, page: Hashable) -> CacheSlot | None:
        """Where this page, which is about to be made, may be kept; None: nowhere."""
        home = self._home(query)
        return self._shelf.place(home, (query.listing, page)) if home is not None else None

    def _home(self, query: Query) -> ServiceListCache | None:
        return self._homes.get(query.listing[0]) if query.listing else None

    def _settle(self, before: Entry | None, after: Entry | None) -> None:
        """Give an entry its home; the lists kept there, and in its previous home, become void."""
        if after is not None:
            service = after.traits.service
            home = self._homes.get(service)
            if home is None:
                home = self._homes[service] = ServiceListCache()
            after.home = home
            home.invalidate()
        if before is not None and before.home is not None:
            before.home.invalidate()
            service = before.traits.service
            if not self._by["services"].buckets((service,)):
                self._homes.pop(service, None)

    def _narrowest(self, query: Query) -> tuple[list[Bucket], str]:
        """The buckets with the fewest instances that hold all matches, and the field of the query that they settle."""
        best, settled, least = [self._all], "", len(self._all)
        for name, words, settles in query.lookups:
            buckets = self._by[name].buckets(words)
            size = len(buckets[0]) if len(buckets) == 1 else sum(map(len, buckets))
            if len(buckets) > _MERGED and size > max(_SORTED_AT_ONCE, len(self._all) // 16):
                continue  # it costs less to walk through everything, which is in order
            if size < least or (size == least and settles):
                best, settled, least = buckets, settles, size
        return best, settled

    def _count(self, old: Traits | None, new: Traits | None) -> None:
        if old is not None and new is not None and old.cluster == new.cluster:
            return
        if new is not None:
            self._clusters[new.cluster] += 1
        if old is not None:
            self._clusters[old.cluster] -= 1
            if not self._clusters[old.cluster]:
                del self._clusters[old.cluster]


_COUNTED = ("services", "nodes")  # an instance has one word of these at most
_NAMES = ("services", "nodes", "revisions", "labels", "unready", "unallocated")


def _words(traits: Traits | None) -> tuple[Sequence[Hashable], ...]:
    """Return the keys of an instance, index by index."""
    if traits is None:
        return ((),) * len(_NAMES)
    return (
        (traits.service,),
        (traits.node,) if traits.node else (),
        traits.revisions,
        traits.labels,
        () if traits.ready else UNREADY,
        () if traits.allocated else UNALLOCATED,
    )


def _portions(buckets: list[Bucket], after: str) -> Iterator[Block]:
    """The instances of all buckets as they stand now, each once, in order of ids."""
    if len(buckets) == 1:
        return iter(buckets[0].lend(after))
    lent = [bucket.lend(after) for bucket in buckets]
    if sum(map(len, buckets)) > _SORTED_AT_ONCE:
        return _merge_by_id(lent)
    once = dict.fromkeys(chain.from_iterable(chain.from_iterable(lent)))
    return iter((sorted(once, key=id_of),))


def _merge_by_id(lent: list[list[Block]]) -> Iterator[Block]:
    ordered = heapq.merge(*map(chain.from_iterable, lent), key=id_of)
    once = (entry for entry, _ in groupby(ordered))
    while portion := list(islice(once, _PORTION)):
        yield portion
