"""Templates of -o jsonpath."""

from __future__ import annotations

import pytest

from hqcli.jsonpath import BadTemplate, template

DATA = {"items": [{"id": "a", "n": "1", "tags": ["x", "y"]}, {"id": "b", "n": 2, "ready": True, "more": {"k": 1}}]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{.items[*].id}", "a b"),
        (".items[*].id", "a b"),
        ("items[0].id", "a"),
        ("{$.items[1].n}", "2"),
        ("{.items[1].ready} {.items[1].more}", 'true {"k": 1}'),
        ("{.items[-1:].id}", "b"),
        ('{.items[?(@.id=="b")].n}', "2"),
        ("{.items[?(@.id=='b')].n}", "2"),
        ("{.items[*].tags[*]}", "x y"),
        ("{.nothing.there}", ""),
        ('{range .items[*]}{.id}{"\\t"}{@.n};{end}', "a\t1;b\t2;"),
        ("{range .items[*]}{range .tags[*]}<{@}>{end}|{end}", "<x><y>||"),
        ("ids: {.items[*].id}", "ids: a b"),
    ],
)
def test_a_template_shows(text: str, shown: str) -> None:
    assert template(text)(DATA) == shown


@pytest.mark.parametrize("text", ["{.items", "{.items[}", "{end}", "{range .items[*]}{.id}", "a}b{.x}"])
def test_a_malformed_template_is_refused(text: str) -> None:
    with pytest.raises(BadTemplate):
        template(text)
