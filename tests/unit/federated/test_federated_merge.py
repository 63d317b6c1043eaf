"""Merging answers of locations without decoding them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated.encoded import merge, scan
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.instance_strategies import instances

NAMES = ("east", "north", "west")
# Lengths of one, two and three bytes, parts that are missing, strings that are not ASCII.
SIMPLE = st.builds(
    lambda id_, labels, size, node: model.Instance(
        meta=model.InstanceMeta(id=id_, labels=labels, annotations={"padding": "x" * size}),
        spec=model.InstanceSpec(node_name=node) if node else None,
    ),
    st.text(max_size=5) | st.text("ab", min_size=130, max_size=140),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    st.sampled_from((0, 10, 120, 127, 128, 200, 20_000)),
    st.text(max_size=3),
)


def answer(name: str, items: list[model.Instance], token: str = "") -> bytes:
    source = pb.Source(cluster=name, replica=f"{name}-1", version=7)
    return pb.FindInstancesResponse(instances=items, next_page_token=token, sources=[source]).SerializeToString()


def part(name: str, items: list[model.Instance], token: str = "") -> merge.PagePart:
    return merge.part(merge.Cursor(), merge.parse_list(answer(name, items, token)))


def small(instance_id: str, cluster: str) -> model.Instance:
    return model.Instance(meta=model.InstanceMeta(id=instance_id, cluster=cluster))


@pytest.mark.long
@given(st.lists(instances(), max_size=2))
def test_an_answer_is_taken_apart_as_a_decoder_would(items: list[model.Instance]) -> None:
    told = merge.parse_list(answer("east", items, "go on"))
    assert [item.id.decode() for item in told.items] == [item.meta.id for item in items]
    assert pb.FindInstancesResponse.FromString(b"".join(i.frame for i in told.items)).instances[:] == items
    assert told.next_page_token == "go on"
    assert pb.Source.FromString(told.source).cluster == "east"


@pytest.mark.long
@given(instances())
def test_the_id_is_found_in_any_order_of_fields(instance: model.Instance) -> None:
    meta = instance.meta.SerializeToString()
    turned = b"".join(meta[f.at : f.end] for f in reversed(list(scan.fields(meta))))
    body = scan.delimited_field(2, instance.spec.SerializeToString()) + scan.delimited_field(1, turned)
    assert merge.instance_id(body, 0, len(body)).decode() == instance.meta.id


@given(st.binary(max_size=60))
def test_bytes_that_are_no_answer_are_refused_or_read_but_never_crash(noise: bytes) -> None:
    try:
        merge.parse_list(noise)
    except ValueError:
        return


def test_a_field_that_reaches_beyond_its_message_is_malformed() -> None:
    with pytest.raises(scan.Malformed):
        list(scan.fields(b"\x0a\x05abc"))


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(SIMPLE, max_size=4, unique_by=lambda i: i.meta.id)))
def test_merging_encoded_answers_equals_merging_decoded_ones(found: dict[str, list[model.Instance]]) -> None:
    for name, items in found.items():
        items.sort(key=lambda item: item.meta.id)
        for item in items:
            item.meta.cluster = name
    page = merge.page({name: part(name, items) for name, items in found.items()}, 0, 1 << 30)
    merged = list(pb.FindInstancesResponse.FromString(b"".join(page.frames)).instances)
    everything = [item for items in found.values() for item in items]
    assert merged == sorted(everything, key=lambda item: (item.meta.id, item.meta.cluster))
    assert page.is_last


def test_one_id_in_two_locations_is_two_instances() -> None:
    page = merge.page({n: part(n, [small("a", n)]) for n in ("east", "west")}, 0, 1 << 20)
    found = pb.FindInstancesResponse.FromString(b"".join(page.frames)).instances
    assert [(i.meta.id, i.meta.cluster) for i in found] == [("a", "east"), ("a", "west")]


def test_a_page_ends_at_the_last_instance_of_a_location_that_has_more() -> None:
    parts = {"east": part("east", [small("b", "east")], "more"), "west": part("west", [small("c", "west")])}
    page = merge.page(parts, 0, 1 << 20)
    assert len(page.frames) == 1
    assert page.cursors == {"east": merge.Cursor("more"), "west": merge.Cursor("", "")}


def test_a_page_holds_at_least_one_instance_however_large() -> None:
    page = merge.page({"east": part("east", [small("a", "east"), small("b", "east")])}, 0, 1)
    assert len(page.frames) == 1
    assert page.cursors["east"] == merge.Cursor("", "a")


def test_counts_are_added_up_by_key() -> None:
    one = pb.CountInstancesResponse(groups=[pb.InstanceCount(key="b", total=3, ready=1, not_wanted=2)])
    two = pb.CountInstancesResponse(
        groups=[pb.InstanceCount(key="a", total=1, unknown=1), pb.InstanceCount(key="b", total=1, ready=1)]
    )
    sums = merge.sum_counts([one, two])
    assert [(g.key, g.total, g.ready, g.unknown, g.not_wanted) for g in sums] == [("a", 1, 0, 1, 0), ("b", 4, 2, 0, 2)]
    assert all(g.HasField("unknown") for g in sums), "a zero is shown, in JSON too"


# --- walks over pages -----------------------------------------------------------------------------------------------

IDS = st.text("abc", min_size=1, max_size=3)


class FakeList:
    """A location's list: ids in order, page by page; its tokens name the last id, as HQ's do."""

    def __init__(self, name: str, ids: set[str], largest_page: int) -> None:
        self.name, self.ids, self._largest_page = name, ids, largest_page

    def find(self, cursor: merge.Cursor, page_size: int) -> merge.PagePart:
        """The next part of this list as the gateway parses it."""
        while True:
            after = cursor.token
            left = [i for i in sorted(self.ids) if i > after]
            size = min(page_size or self._largest_page, self._largest_page)
            shown = left[:size]
            token = shown[-1] if len(left) > size else ""
            body = answer(self.name, [small(i, self.name) for i in shown], token)
            told = merge.part(cursor, merge.parse_list(body))
            if not merge.is_fruitless(told):
                return told
            cursor = merge.Cursor(told.next_page_token, cursor.after)


def walk(lists: list[FakeList], page_size: int, max_bytes: int, between: object = None) -> list[tuple[str, str]]:
    """Read page after page; return the (id, cluster) of all instances seen."""
    cursors: dict[str, merge.Cursor] = {}
    seen: list[tuple[str, str]] = []
    for _ in range(1_000):
        open_ = [one for one in lists if cursors.get(one.name, merge.Cursor()).done is None]
        parts = {one.name: one.find(cursors.get(one.name, merge.Cursor()), page_size) for one in open_}
        page = merge.page(parts, page_size, max_bytes)
        found = pb.FindInstancesResponse.FromString(b"".join(page.frames)).instances
        assert not page_size or len(found) <= page_size
        seen += [(i.meta.id, i.meta.cluster) for i in found]
        cursors |= page.cursors
        if page.is_last:
            return seen
        if callable(between):
            between()
    raise AssertionError("the walk does not end")


@given(
    st.dictionaries(st.sampled_from(NAMES), st.tuples(st.sets(IDS, max_size=12), st.integers(1, 5)), min_size=1),
    st.integers(0, 5),
    st.integers(1, 200),
)
def test_pages_are_complete_in_order_and_without_doubles(
    world: dict[str, tuple[set[str], int]], page_size: int, max_bytes: int
) -> None:
    lists = [FakeList(name, ids, largest) for name, (ids, largest) in world.items()]
    seen = walk(lists, page_size, max_bytes)
    assert seen == sorted((i, one.name) for one in lists for i in one.ids)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.tuples(st.sets(IDS, max_size=10), st.integers(1, 4)), min_size=1),
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from(NAMES), IDS, st.booleans()), max_size=20),
)
def test_an_instance_that_stays_is_on_exactly_one_page(
    world: dict[str, tuple[set[str], int]], page_size: int, changes: list[tuple[str, str, bool]]
) -> None:
    lists = [FakeList(name, set(ids), largest) for name, (ids, largest) in world.items()]
    by_name = {one.name: one for one in lists}
    touched = {(instance_id, name) for name, instance_id, _ in changes}
    steady = {(i, one.name) for one in lists for i in one.ids} - touched

    def change() -> None:
        if changes:
            name, instance_id, is_added = changes.pop()
            if name in by_name:
                (by_name[name].ids.add if is_added else by_name[name].ids.discard)(instance_id)

    seen = walk(lists, page_size, 1 << 20, change)
    assert [row for row in seen if row in steady] == sorted(steady)
    assert len(seen) == len(set(seen))
