"""An instance is counted on for one and a half report intervals after its last report; its own ones if longer."""

from __future__ import annotations

import pytest

from cms.ledger.hearing import Hearing
from cms.ledger.instances import InstanceKey

KEY = InstanceKey("ams", "i1")


@pytest.mark.parametrize(("interval_s", "patience_s"), [(0.0, 270.0), (20.0, 270.0), (1_800.0, 2_700.0)])
def test_an_instance_that_reports_rarely_may_be_silent_for_longer(interval_s: float, patience_s: float) -> None:
    hearing = Hearing(270.0)
    hearing.record_report(KEY, 1_000.0, interval_s)
    assert list(hearing.too_old(1_000.0 + patience_s - 1)) == []
    assert list(hearing.too_old(1_000.0 + patience_s + 1)) == [KEY]
