"""docs/metrics.md says what is declared."""

from __future__ import annotations

import re

from tools import gen_metrics_reference


def test_the_page_on_metrics_is_up_to_date_with_the_tables() -> None:
    assert gen_metrics_reference.PATH.read_text() == gen_metrics_reference.text(), "out of date: make proto"


def test_counters_are_named_as_they_are_scraped() -> None:
    """Without the suffix, an alert that is written from the page is about nothing."""
    counters = re.findall(r"^\| `(\w+)` \| counter", gen_metrics_reference.text(), re.MULTILINE)
    assert len(counters) > 20
    assert [name for name in counters if not name.endswith("_total")] == []
