"""Filter expressions: what they select, where they are wrong, and that no text does harm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.consul.filters import FilterError, parse_filter

FIELDS: dict[str, Any] = {"Name": "", "Port": 0, "Is": False, "Tags": [], "Meta": {}, "Checks": [{"Status": ""}]}
ENTRY: dict[str, Any] = {
    "Name": "web",
    "Port": 80,
    "Is": True,
    "Tags": ["a", "b c"],
    "Meta": {"tier": "front", "x.y": "z"},
    "Checks": [{"Status": "passing"}, {"Status": "critical"}],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name == web", True),
        ('Name=="web"', True),
        ("Name != `web`", False),
        ("Port == 80 and Is == true", True),
        ("Name == db or Name == web and Port == 81", False),
        ("(Name == web or Name == db) and Port == 80", True),
        ("not Name == db and not not Port == 80", True),
        ("not (Name == web and Port == 80)", False),
        ('"b c" in Tags', True),
        ("b not in Tags", True),
        ("in in Tags", False),
        ("Tags not contains a", False),
        ("Tags contains a", True),
        ("eb in Name", True),
        ("tier in Meta and Meta.tier == front", True),
        ('Meta["x.y"] == z', True),
        ("Meta.none == x", False),
        ("Meta.none != x", True),
        ("Meta.none is empty and Meta is not empty", True),
        ("Checks.Status == critical", True),
        ("Checks.Status != critical", False),
        ('Name == "we\\"b"', False),
    ],
)
def test_an_expression_selects(text: str, expected: bool) -> None:
    assert parse_filter(text, FIELDS)(ENTRY) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "position 1: expected a field like Service.Meta.tier, found the end"),
        ("Name", "position 5: expected `==`, `!=`, `is empty`, `contains` or `in`; HQ has no `matches`, found the end"),
        ("Name matches web", "position 6: expected `==`"),
        ("Name ==", "position 8: expected a value, found the end"),
        ("Name == web Port", "position 13: expected `and`, `or` or the end, found 'Port'"),
        ("(Name == web", "position 13: expected `)`, found the end"),
        ("Name is full", "position 9: expected `empty`, found 'full'"),
        ("Nam == web", "position 1: there is no field 'Nam'"),
        ("Name.x == web", "position 1: there is no field 'Name.x'"),
        ("web in Tag", "position 8: there is no field 'Tag'"),
        ("Name == 'web\"", "position 13: '\"' is not a word, a sign or a whole quote"),
        ('"/Name" == web', "position 1: expected a field like Service.Meta.tier, found '/Name'"),
        ('Meta["x" == z', "position 10: expected `]`, found '=='"),
        ("(" * 40 + "Name == web", "deeper than 32 levels"),
        (" or ".join(["Port == 1"] * 21), "position 261: more than 20 matches: ask for less at once"),
        ("x" * 2_001, "2001 characters, of 2000 allowed"),
    ],
)
def test_a_fault_is_named_with_its_position(text: str, message: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse_filter(text, FIELDS)
    assert message in str(refused.value)


_WORDS = st.sampled_from(
    [
        *(
            "Name",
            "Port",
            "Tags",
            "Meta.tier",
            "Checks.Status",
            "Meta",
            "==",
            "!=",
            "in",
            "not",
            "is",
            "empty",
            "contains",
        ),
        *("and", "or", "(", ")", "[", "]", '"a b"', "`x`", "web", "80", '"', "`", "\\", "matches", "\x00", "é"),
    ]
)


@given(st.one_of(st.text(max_size=60), st.lists(_WORDS, max_size=20).map(" ".join), st.lists(_WORDS).map("".join)))
def test_any_text_is_an_expression_or_refused_with_its_place(text: str) -> None:
    try:
        holds = parse_filter(text, FIELDS)
    except FilterError as refused:
        assert str(refused).startswith("position ") or "characters" in str(refused)  # noqa: PT017
    else:
        assert holds(ENTRY) in (True, False)


_MATCHES = st.sampled_from(
    [("Name == web", True), ("Port != 80", False), ("a in Tags", True), ("Meta.x is empty", True), ("Is == no", False)]
)
_EXPRESSIONS = st.recursive(
    _MATCHES,
    lambda parts: st.one_of(
        parts.map(lambda one: (f"not ({one[0]})", not one[1])),
        st.tuples(parts, parts).map(lambda two: (f"({two[0][0]}) and ({two[1][0]})", two[0][1] and two[1][1])),
        st.tuples(parts, parts).map(lambda two: (f"({two[0][0]}) or ({two[1][0]})", two[0][1] or two[1][1])),
    ),
    max_leaves=12,
)


@given(_EXPRESSIONS)
def test_an_expression_means_what_its_parts_mean(made: tuple[str, bool]) -> None:
    assert parse_filter(made[0], FIELDS)(ENTRY) is made[1]
