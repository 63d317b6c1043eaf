"""Bugs in reading: freshness, filters, pages, counts."""

from __future__ import annotations

import pytest

from hq.memory.cache import Cache
from hq.memory.index import Index
from hq.memory.joined_lists import ServiceListCache
from hq.memory.query import Query
from hq.registry import reads
from hq.registry.reads import GroupCount, Reads
from hq.registry.source import Freshness, Source
from hqpb.v1 import service_pb2
from tests.support.seeded_bugs import scenes
from tests.support.seeded_bugs.bug import bug

Patch = pytest.MonkeyPatch


@bug("STRONG reads are answered from memory, without a fence.", "FRESH", scenes.behind)
def strong_from_memory(patch: Patch) -> None:
    meets = Freshness.is_fresh_for

    def weak(self: Freshness, read: service_pb2.ReadOptions) -> bool:
        return meets(self, service_pb2.ReadOptions(min_version=read.min_version, epoch=read.epoch))

    patch.setattr(Freshness, "is_fresh_for", weak)


@bug("min_version is not waited for.", "FRESH", scenes.behind)
def min_version_ignored(patch: Patch) -> None:
    meets = Freshness.is_fresh_for

    def careless(self: Freshness, read: service_pb2.ReadOptions) -> bool:
        return meets(self, service_pb2.ReadOptions(epoch=read.epoch, consistency=read.consistency))

    patch.setattr(Freshness, "is_fresh_for", careless)


@bug("An answer never says that it is stale.", "FRESH", scenes.behind)
def never_stale(patch: Patch) -> None:
    source = Freshness._source
    patch.setattr(Freshness, "_source", lambda self: source(self)._replace(stale=False))


@bug("An answer names a newer version than it shows.", "GENUINE", scenes.calm)
def version_runs_ahead(patch: Patch) -> None:
    source = Freshness._source

    def ahead(self: Freshness) -> Source:
        told = source(self)
        return told._replace(version=told.version + 1)

    patch.setattr(Freshness, "_source", ahead)


@bug("The next page begins one instance too late.", "GENUINE", scenes.calm)
def page_skips_one(patch: Patch) -> None:
    start = reads.page_start

    def too_far(cache: Cache, query: Query, text: str) -> str:
        last = start(cache, query, text)
        return f"{last[:-1]}{chr(ord(last[-1]) + 1)}"

    patch.setattr(reads, "page_start", too_far)


@bug("An index keeps instances under words that they no longer have.", "GENUINE", scenes.moves)
def index_forgets_nothing(patch: Patch) -> None:
    patch.setattr(Index, "_drop", lambda self, word, instance_id: None)


@bug("A list that is kept joined is not made again when an instance changes.", "GENUINE", scenes.calm)
def kept_list_grows_old(patch: Patch) -> None:
    patch.setattr(ServiceListCache, "invalidate", lambda self: None)


@bug("A count takes every instance for a ready one.", "GENUINE", scenes.calm)
def all_counted_ready(patch: Patch) -> None:
    count = Reads.count

    async def hopeful(self: Reads, *args: object) -> tuple[list[GroupCount], Source]:
        groups, source = await count(self, *args)  # type: ignore[arg-type]
        return [group._replace(ready=group.total) for group in groups], source

    patch.setattr(Reads, "count", hopeful)


@bug("An instance that memory does not know is denied without a fence.", "GENUINE", scenes.behind)
def denied_from_memory(patch: Patch) -> None:
    async def from_memory(self: Reads, instance_id: str) -> None:
        pass

    patch.setattr(Reads, "_look_again", from_memory)
