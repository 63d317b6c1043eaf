"""Reads of the port `Store`: in memory and on etcd."""

from __future__ import annotations

import pytest

from hq.keys import HqKeys
from store.listing import listing
from store.port import Compacted, FutureRevision, Unavailable, Write
from tests.support.stores import Place


async def test_get_tells_the_head_beside_the_record(place: Place) -> None:
    at = await place.put("a", b"1")
    head = await place.put("b")
    assert await place.store.get(place.key("a")) == ((place.key("a"), b"1", at, at), head)
    assert await place.store.get(place.key("none")) == (None, head)


async def test_get_at_a_revision_shows_the_past(place: Place) -> None:
    first = await place.put("a", b"1")
    second = await place.put("a", b"2")
    gone = await place.delete("a")
    seen = [await place.get("a", revision) for revision in (first - 1, first, second, gone)]
    assert [record and record.value for record in seen] == [None, b"1", b"2", None]


async def test_get_at_a_compacted_revision_says_so(place: Place) -> None:
    first = await place.put("a", b"1")
    second = await place.put("a", b"2")
    await place.store.compact(second)
    with pytest.raises(Compacted):
        await place.get("a", first)
    record = await place.get("a", second)
    assert record is not None
    assert record.value == b"2"


async def test_get_at_a_future_revision_says_so(place: Place) -> None:
    head = await place.put("a")
    with pytest.raises(FutureRevision):
        await place.get("a", head + 1)


async def test_a_page_is_ordered_and_tells_whether_keys_follow(place: Place) -> None:
    for name in ("b", "a", "d", "c"):
        await place.put(name)
    page = await place.store.page(place.start, place.end, revision=0, limit=3)
    assert [r.key for r in page.records] == [place.key(name) for name in "abc"]
    assert (page.more, page.revision) == (True, await place.head())
    rest = await place.store.page(place.key("d"), place.end, revision=0, limit=3)
    assert ([r.key for r in rest.records], rest.more) == ([place.key("d")], False)


async def test_a_page_that_just_fits_is_the_last(place: Place) -> None:
    for name in "abc":
        await place.put(name)
    page = await place.store.page(place.start, place.end, revision=0, limit=3)
    assert (len(page.records), page.more) == (3, False)


async def test_a_page_of_nothing_is_empty(place: Place) -> None:
    page = await place.store.page(place.start, place.end, revision=0, limit=10)
    assert (page.records, page.more) == ([], False)


async def test_pages_at_one_revision_show_one_state_whatever_is_written_meanwhile(place: Place) -> None:
    revisions = [await place.put(f"{n:03}", b"old") for n in range(20)]
    seen = []
    start, more = place.start, True
    while more:
        page = await place.store.page(start, place.end, revision=revisions[-1], limit=6)
        seen += [(r.value, r.modified) for r in page.records]
        start, more = page.records[-1].key + b"\0", page.more
        await place.put(f"{len(seen):03}", b"new")
        await place.put(f"{len(seen):03}+", b"between")
        await place.delete("019")
    assert seen == [(b"old", revision) for revision in revisions]


async def test_a_listing_reads_everything_below_its_prefix_at_the_head(place: Place) -> None:
    keys = HqKeys(place.start.decode() + "in")
    for base in range(0, 700, 100):
        await place.commit(*(Write((), ((keys.of("spec", str(base + n)), b"x" * 50),)) for n in range(100)))
    head = await place.put("inn")  # a neighbour
    parts = [part async for part in listing(place.store, keys.prefix, keys.end)]
    assert len(parts) > 1
    assert {part.revision for part in parts} == {head}
    found = [record.key for part in parts for record in part.records]
    assert found == sorted(keys.of("spec", str(n)) for n in range(700))


async def test_pages_at_compacted_and_future_revisions_say_so(place: Place) -> None:
    first = await place.put("a")
    head = await place.put("a")
    await place.store.compact(head)
    with pytest.raises(Compacted):
        await place.store.page(place.start, place.end, revision=first, limit=10)
    with pytest.raises(FutureRevision):
        await place.store.page(place.start, place.end, revision=head + 1, limit=10)


async def test_newest_counts_keys_and_names_their_last_change(place: Place) -> None:
    assert await place.store.newest(place.start, place.end) == (0, 0, await place.head())
    await place.put("a")
    last = await place.put("b")
    await place.put("c")
    head = await place.delete("c")
    assert await place.store.newest(place.start, place.end) == (2, last, head)


async def test_a_revision_can_be_compacted_once_and_not_ahead_of_the_head(place: Place) -> None:
    head = await place.put("a")
    with pytest.raises(FutureRevision):
        await place.store.compact(head + 1)
    await place.store.compact(head)
    with pytest.raises(Compacted):
        await place.store.compact(head)


async def test_compaction_keeps_what_is_there(place: Place) -> None:
    kept = await place.put("kept", b"1")
    await place.put("gone")
    await place.delete("gone")
    head = await place.put("last")
    await place.store.compact(head)
    assert await place.get("kept", head) == (place.key("kept"), b"1", kept, kept)
    await place.put("later")
    page = await place.store.page(place.start, place.end, revision=head, limit=10)
    assert [r.key for r in page.records] == [place.key("kept"), place.key("last")]


async def test_each_member_answers_for_itself(place: Place) -> None:
    members = await place.store.members()
    assert [(m.leader, m.error) for m in members] == [(True, "")]
    assert members[0].endpoint
    assert members[0].version


async def test_a_closed_store_is_away(place: Place) -> None:
    await place.store.close()
    with pytest.raises(Unavailable):
        await place.get("a")
    with pytest.raises(Unavailable):
        await place.put("a")
