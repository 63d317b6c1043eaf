"""docs/metrics.md says what is declared."""

from __future__ import annotations

from tools import gen_metrics_reference


def test_the_page_on_metrics_is_up_to_date_with_the_tables() -> None:
    assert gen_metrics_reference.PATH.read_text() == gen_metrics_reference.text(), "out of date: make proto"
