"""A long text of a CMS is cut where a clause ends, not in the middle of a word."""

from __future__ import annotations

from walle.texts import truncate_text


def test_a_text_is_cut_at_a_clause_else_at_a_word() -> None:
    assert truncate_text("web has no room") == "web has no room"
    clause = "budget web must keep 54 of 60 available: take fewer at a time"
    cut = truncate_text("; ".join([clause] * 30))
    assert len(cut) <= 1_000
    assert cut.endswith(f"{clause}; \N{HORIZONTAL ELLIPSIS}")
    assert truncate_text("word " * 300).endswith("word; \N{HORIZONTAL ELLIPSIS}")
    assert len(truncate_text("x" * 2_000)) == 1_000
