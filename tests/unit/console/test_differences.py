"""The difference between two descriptions equals that of difflib, and never takes minutes."""

from __future__ import annotations

import difflib
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.views.snapshots import difference
from nannypb.v1 import service_pb2 as pb

_LINES = st.lists(st.sampled_from(["a", "b", "- c", "+d", "", "@@"]), max_size=30)


def _snapshot(id_: str, lines: list[str]) -> pb.Snapshot:
    return pb.Snapshot(id=id_, content="\n".join(lines).encode())


@given(_LINES, _LINES)
def test_the_difference_of_two_snapshots_is_a_unified_diff(old: list[str], new: list[str]) -> None:
    before, after = _snapshot("old", old), _snapshot("new", new)
    one, other = (each.content.decode().splitlines() for each in (before, after))
    wanted = list(difflib.unified_diff(one, other, "old", "new", lineterm=""))
    kinds = {"+": "added", "-": "removed", "@": "place"}
    assert difference(before, after) == [(kinds.get(line[:1], "same"), line) for line in wanted]


def test_many_repeated_lines_do_not_make_a_comparison_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a bound, a description of 200 kB held the console up for 15 s, one of megabytes for an hour."""
    rng, pairs = random.Random(1), 0
    matcher = difflib.SequenceMatcher
    look = matcher.find_longest_match

    def counted(self: Any, alo: int, ahi: int, blo: int, bhi: int) -> difflib.Match:
        nonlocal pairs
        pairs += sum(len(self.b2j.get(line, ())) for line in self.a[alo:ahi])
        match: difflib.Match = look(self, alo, ahi, blo, bhi)
        return match

    monkeypatch.setattr(matcher, "find_longest_match", counted)
    old, new = ([f"{number % 100:02}" for number in rng.sample(range(12_000), 12_000)] for _ in range(2))
    found = difference(_snapshot("old", old), _snapshot("new", new))
    assert found[0] == ("removed", "--- old")
    assert pairs <= 2_000_000
