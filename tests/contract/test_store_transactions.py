"""Transactions of the port `Store`: in memory and on etcd."""

from __future__ import annotations

import pytest

from store.port import Applied, Compare, ConditionFailed, Rejected, Write
from tests.support.stores import Place


async def test_writes_of_one_transaction_share_its_revision(place: Place) -> None:
    commit = await place.commit(*(Write((), ((place.key(name), b"x"),)) for name in "abc"))
    assert commit.outcomes == [Applied()] * 3
    records = [await place.get(name) for name in "abc"]
    assert {(r.created, r.modified) for r in records if r} == {(commit.revision, commit.revision)}


async def test_a_new_value_keeps_the_revision_of_the_creation(place: Place) -> None:
    created = await place.put("a")
    modified = await place.put("a", b"y")
    assert await place.get("a") == (place.key("a"), b"y", created, modified)


async def test_a_key_created_anew_has_a_new_creation(place: Place) -> None:
    await place.put("a")
    await place.delete("a")
    again = await place.put("a")
    record = await place.get("a")
    assert record is not None
    assert (record.created, record.modified) == (again, again)


async def test_a_guard_that_does_not_hold_stops_everything(place: Place) -> None:
    head = await place.put("epoch", b"one")
    guard = Compare(place.key("epoch"), "value", b"two")
    commit = await place.commit(Write((), ((place.key("a"), b"x"),)), guards=(guard,))
    assert (commit.guarded, commit.outcomes, commit.revision) == (False, [], head)
    assert await place.get("a") is None


async def test_a_conflict_fails_one_write_of_a_transaction_only(place: Place) -> None:
    at = await place.put("a")
    bad = Write((Compare(place.key("a"), "modified", at - 1),), ((place.key("a"), b"bad"),))
    good = Write((Compare(place.key("b"), "modified", 0),), ((place.key("b"), b"good"),))
    commit = await place.commit(bad, good)
    assert commit.outcomes == [ConditionFailed({place.key("a"): at}), Applied()]
    assert await place.get("a") == (place.key("a"), b"x", at, at)


async def test_conditions_see_the_state_before_the_whole_transaction(place: Place) -> None:
    first = Write((), ((place.key("a"), b"x"),))
    second = Write((Compare(place.key("a"), "modified", 0),), ((place.key("b"), b"y"),))
    assert (await place.commit(first, second)).outcomes == [Applied(), Applied()]


async def test_a_refusal_tells_where_each_compared_key_stands(place: Place) -> None:
    a, b = await place.put("a"), await place.put("b")
    refused = await place.attempt(
        Compare(place.key("a"), "modified", a),
        Compare(place.key("b"), "modified", a),
        Compare(place.key("none"), "created", 0),
    )
    assert refused == ConditionFailed({place.key("a"): a, place.key("b"): b, place.key("none"): 0})


async def test_a_refusal_names_no_key_of_a_range_condition(place: Place) -> None:
    await place.put("a")
    assert await place.attempt(Compare(place.start, "modified", 1, "<", place.end)) == ConditionFailed({})


@pytest.mark.parametrize("field", ["created", "modified"])
@pytest.mark.parametrize(
    ("relation", "offset", "holds"),
    [
        ("=", 0, True),
        ("=", -1, False),
        ("=", 1, False),
        ("<", 1, True),
        ("<", 0, False),
        (">", -1, True),
        (">", 0, False),
    ],
)
async def test_revisions_compare_as_numbers(place: Place, field: str, relation: str, offset: int, holds: bool) -> None:
    created, modified = await place.put("a"), await place.put("a")
    base = created if field == "created" else modified
    condition = Compare(place.key("a"), field, base + offset, relation)  # type: ignore[arg-type]
    assert isinstance(await place.attempt(condition), Applied) is holds


@pytest.mark.parametrize(("relation", "operand"), [("=", b"m"), ("<", b"z"), (">", b"a")])
async def test_values_compare_as_bytes(place: Place, relation: str, operand: bytes) -> None:
    await place.put("a", b"m")
    for given in ("=", "<", ">"):
        condition = Compare(place.key("a"), "value", operand, given)
        assert isinstance(await place.attempt(condition), Applied) is (given == relation)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (("modified", "=", 0), True),
        (("created", "=", 0), True),
        (("modified", "<", 1), True),
        (("modified", ">", 0), False),
        (("modified", ">", -1), True),
        (("value", "=", b""), False),
        (("value", "<", b"z"), False),
    ],
)
@pytest.mark.parametrize("of_range", [False, True], ids=["key", "range"])
async def test_a_key_or_range_that_is_not_there_has_revision_zero_and_no_value(
    place: Place, condition: tuple[str, str, int | bytes], holds: bool, of_range: bool
) -> None:
    field, relation, operand = condition
    end = place.key("none~") if of_range else None
    compare = Compare(place.key("none"), field, operand, relation, end)  # type: ignore[arg-type]
    assert isinstance(await place.attempt(compare), Applied) is holds


async def test_a_range_condition_holds_if_no_key_of_the_range_contradicts(place: Place) -> None:
    first, last = await place.put("beats/a"), await place.put("beats/b")
    await place.put("beats0")  # behind the range
    start, end = place.key("beats/"), place.key("beats0")
    assert await place.attempt(Compare(start, "modified", last, "<", end)) == ConditionFailed({})
    assert await place.attempt(Compare(start, "modified", last + 1, "<", end)) == Applied()
    assert await place.attempt(Compare(start, "modified", first - 1, ">", end)) == Applied()


async def test_a_write_puts_and_deletes_together(place: Place) -> None:
    await place.put("old")
    commit = await place.commit(Write((), ((place.key("new"), b"x"),), (place.key("old"),)))
    assert commit.outcomes == [Applied()]
    assert await place.get("old") is None
    assert await place.get("new") is not None


async def test_a_transaction_that_changes_nothing_has_the_revision_of_the_head(place: Place) -> None:
    head = await place.put("a")
    commit = await place.commit(Write((), deletes=(place.key("none"),)))
    assert (commit.outcomes, commit.revision) == ([Applied()], head)
    assert await place.head() == head


async def test_a_key_that_is_put_twice_rejects_the_whole_transaction(place: Place) -> None:
    twice = (place.key("a"), b"x")
    with pytest.raises(Rejected):
        await place.commit(Write((), (twice,)), Write((), (twice,)), Write((), ((place.key("b"), b"x"),)))
    assert await place.get("b") is None


async def test_a_key_that_is_put_twice_rejects_even_where_the_conditions_allow_one_only(place: Place) -> None:
    when = (Compare(place.key("a"), "modified", 0),), (Compare(place.key("a"), "modified", 0, ">"),)
    with pytest.raises(Rejected):
        await place.commit(*(Write(condition, ((place.key("a"), b"x"),)) for condition in when))


async def test_a_key_that_is_put_and_deleted_rejects_the_whole_transaction(place: Place) -> None:
    with pytest.raises(Rejected):
        await place.commit(Write((), ((place.key("a"), b"x"),)), Write((), deletes=(place.key("a"),)))


@pytest.mark.parametrize("under_conditions", [False, True], ids=["top level", "nested"])
async def test_the_129th_operation_rejects_the_transaction(place: Place, under_conditions: bool) -> None:
    def writes(count: int) -> list[Write]:
        names = [f"{n:03}" for n in range(count)]
        when = [(Compare(place.key(name), "modified", 0),) if under_conditions else () for name in names]
        return [Write(w, ((place.key(name), b"x"),)) for w, name in zip(when, names, strict=True)]

    most = 127 if under_conditions else 128  # one is left for what is inside the nested ones
    with pytest.raises(Rejected):
        await place.commit(*writes(most + 1))
    assert len((await place.commit(*writes(most))).outcomes) == most


async def test_a_request_of_over_one_and_a_half_megabytes_is_rejected(place: Place) -> None:
    with pytest.raises(Rejected):
        await place.put("a", b"x" * (3 << 19))
    await place.put("a", b"x" * ((3 << 19) - 10_000))


async def test_an_empty_key_is_rejected(place: Place) -> None:
    with pytest.raises(Rejected):
        await place.commit(Write((), ((b"", b"x"),)))


async def test_an_empty_value_is_a_value(place: Place) -> None:
    await place.put("a", b"")
    assert await place.attempt(Compare(place.key("a"), "value", b"")) == Applied()


async def test_of_many_writers_with_one_revision_one_wins(place: Place) -> None:
    at = await place.put("a")
    compare = Compare(place.key("a"), "modified", at)
    outcomes = [await place.attempt(compare, put="a", value=bytes([n])) for n in range(8)]
    assert [isinstance(outcome, Applied) for outcome in outcomes] == [True] + [False] * 7
