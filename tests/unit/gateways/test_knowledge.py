"""A gateway never reports as absent what it does not know."""

from __future__ import annotations

import asyncio
from itertools import chain, combinations, product

import pytest

from gateways.picture.knowledge import Coverage, Knowledge, knowledge
from tests.support.pictures import known, picture_of

ABSENT, PRESENT, UNKNOWN = Knowledge.ABSENT, Knowledge.PRESENT, Knowledge.UNKNOWN
LOCATIONS = ("east", "north", "west")


def every_coverage() -> list[Coverage]:
    subsets = [*chain.from_iterable(combinations(LOCATIONS, size) for size in range(4))]
    pairs = product(subsets, subsets)
    return [
        Coverage(is_known, frozenset(heard), frozenset(unheard))
        for is_known in (False, True)
        for heard, unheard in pairs
        if not {*heard} & {*unheard}
    ]


def test_a_service_is_absent_only_if_every_location_was_heard() -> None:
    for coverage in every_coverage():
        if knowledge(coverage, 0) is ABSENT:
            assert coverage.is_known
            assert coverage.heard
            assert not coverage.unheard


def test_a_service_is_absent_from_a_location_only_if_that_was_heard() -> None:
    for coverage, location in product(every_coverage(), LOCATIONS):
        if knowledge(coverage, 0, location) is ABSENT and location in coverage.locations:
            assert location in coverage.heard


def test_a_service_with_instances_is_present_whatever_else_is_unknown() -> None:
    assert all(knowledge(coverage, 1) is PRESENT for coverage in every_coverage() if coverage.is_known)


def test_nothing_is_said_while_the_first_list_is_on_its_way() -> None:
    assert all(
        knowledge(coverage, count) is UNKNOWN
        for coverage in every_coverage()
        for count in (0, 1)
        if not coverage.is_known
    )


def test_hq_away_at_the_start_without_a_file_is_unknown() -> None:
    assert knowledge(Coverage(), 0) is UNKNOWN


def test_a_saved_file_shows_presence_and_never_absence() -> None:
    saved = Coverage(is_known=True)
    assert (knowledge(saved, 3), knowledge(saved, 0)) == (PRESENT, UNKNOWN)


def test_hq_away_later_changes_nothing() -> None:
    pictured = picture_of(known("web-1"))
    pictured.condition.stale, pictured.condition.age_s = True, 300.0
    pictured.look()
    assert (pictured.picture.knowledge("web"), pictured.picture.knowledge("db")) == (PRESENT, ABSENT)


def test_a_location_that_was_never_heard_may_have_the_service() -> None:
    pictured = picture_of(known("web-1"), unheard=["west"])
    told = {name: pictured.picture.knowledge(name) for name in ("web", "db")}
    assert told == {"web": PRESENT, "db": UNKNOWN}
    assert pictured.picture.knowledge("web", "west") is UNKNOWN
    assert pictured.picture.knowledge("db", "east") is ABSENT


def test_a_service_without_ready_instances_is_present() -> None:
    pictured = picture_of(known("web-1", is_ready=False))
    assert (pictured.picture.knowledge("web"), pictured.picture.ready("web")) == (PRESENT, [])


def test_a_deleted_service_is_absent() -> None:
    pictured = picture_of(known("web-1"), known("db-1", "db"))
    pictured.drop(("east", "web-1"))
    assert (pictured.picture.knowledge("web"), [*pictured.picture.services]) == (ABSENT, ["db"])


def test_listeners_hear_of_the_services_that_changed_and_of_no_others() -> None:
    pictured = picture_of(known("web-1"), known("db-1", "db"))
    pictured.told.clear()
    pictured.put(known("db-1", "db", is_ready=False))
    pictured.put(known("web-1", "shop"))
    assert pictured.told == [["db"], ["shop", "web"]]


def test_completing_the_list_notifies_all_subscribers() -> None:
    pictured = picture_of(known("web-1"), unheard=["west"])
    pictured.told.clear()
    pictured.condition.heard, pictured.condition.unheard = frozenset(LOCATIONS), frozenset()
    pictured.put(known("web-1", is_ready=False))
    assert (pictured.told, pictured.picture.knowledge("db")) == ([[]], ABSENT)


async def test_listeners_hear_when_a_location_says_that_it_has_nothing() -> None:
    pictured = picture_of(unheard=["west"])
    watching = asyncio.create_task(pictured.picture.watch_condition(pictured.condition))
    await asyncio.sleep(0)
    pictured.told.clear()
    pictured.condition.heard, pictured.condition.unheard = frozenset(LOCATIONS), frozenset()
    pictured.condition.move()
    while not pictured.told:
        await asyncio.sleep(0)
    assert (pictured.told, pictured.picture.knowledge("db")) == ([[]], ABSENT)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching


def test_ten_thousand_instances_of_one_service_are_one_notification() -> None:
    pictured = picture_of(*(known(f"web-{i}", host=f"10.0.{i >> 8}.{i & 255}") for i in range(10_000)))
    assert (len(pictured.picture.ready("web")), len(pictured.told)) == (10_000, 1)
