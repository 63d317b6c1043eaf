"""Lists as pages show them."""

from __future__ import annotations

import pytest

from console.views.listing import Column, listing

COLUMNS = {"name": Column(str), "size": Column(abs, most_first=True)}
ROWS = list(range(-50, 200))


def page(**query: str) -> list[int]:
    return list(listing(ROWS, COLUMNS, ["numbers"], query).rows)


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ({}, -50, 49),
        ({"from": "101"}, 50, 149),
        ({"from": "150"}, 50, 149),  # a page begins where pages begin
        ({"from": "999"}, 150, 199),
        ({"from": "-1"}, -50, 49),
        ({"from": "\u0665"}, -50, 49),
        ({"sort": "size"}, 199, 100),
        ({"sort": "-size"}, 0, -50),
        ({"sort": "name"}, -1, 142),
        ({"sort": "-name"}, 99, 189),
        ({"sort": "nothing"}, -50, 49),
    ],
)
def test_a_page_is_the_part_that_the_address_asks_for(query: dict[str, str], first: int, last: int) -> None:
    found = page(**query)
    assert (found[0], found[-1]) == (first, last)


def test_links_keep_the_filters_reverse_the_sort_and_lead_both_ways() -> None:
    query = {"q": "a&b", "sort": "size", "from": "101", "other": "x"}
    found = listing(ROWS, COLUMNS, ["numbers"], query, ["q"])
    assert (found.previous, found.next) == (
        "/numbers?q=a%26b&sort=size",
        "/numbers?q=a%26b&sort=size&from=201",
    )
    assert found.by == {"name": "/numbers?q=a%26b&sort=name", "size": "/numbers?q=a%26b&sort=-size"}
    assert found.order == {"size": "descending"}
    assert (found.first, found.total) == (101, 250)


def test_an_empty_list_has_one_page() -> None:
    none: list[int] = []
    found = listing(none, COLUMNS, ["numbers"], {"from": "5"})
    assert (found.rows, found.previous, found.next) == ([], "", "")
