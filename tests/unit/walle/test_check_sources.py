"""A check has a state for each source and alert, in the order in which these began."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.walle.hosts import at
from walle.healing.check_sources import MOST, MOST_FINE, changed_check
from wallepb.v1.host_pb2 import Check
from wallepb.v1.service_pb2 import CheckReport


def said(source: str, *, failing: bool = True, fingerprint: str = "", starts_s: int = 0) -> CheckReport:
    one = CheckReport(name="disk", failing=failing, source=source, fingerprint=fingerprint)
    if starts_s:
        one.starts_at.CopyFrom(Timestamp(seconds=starts_s))
    return one


def after(*reports: CheckReport, check: Check | None = None) -> Check:
    """The check after these, a second apart from second 1 on; those that say nothing new change nothing."""
    for number, report in enumerate(reports):
        check = changed_check(check, report, at(1000 * (number + 1))) or check
    assert check is not None
    return check


def test_a_check_fails_while_a_source_says_so_and_since_the_first_said_so() -> None:
    check = after(said("a"), said("b"), said("a", failing=False))
    assert (check.failing, check.source, check.since_ms) == (True, "b", 1000)
    check = after(said("b", failing=False), check=check)
    assert (check.failing, check.source, check.since_ms) == (False, "b", 1000)


def test_a_source_that_said_nothing_clears_nothing_and_costs_nothing() -> None:
    assert changed_check(None, said("a", failing=False), at()) is None
    assert changed_check(after(said("a")), said("b", failing=False), at()) is None


def test_the_same_again_is_no_news() -> None:
    assert changed_check(after(said("a", starts_s=5)), said("a", starts_s=5), at()) is None


def test_an_old_payload_changes_nothing() -> None:
    check = after(said("a", starts_s=5), said("a", failing=False, starts_s=5))
    assert changed_check(check, said("a", starts_s=5), at()) is None, "within one start, resolved is final"
    assert changed_check(check, said("a", starts_s=4), at()) is None
    again = after(said("a", starts_s=6), check=check)
    assert again.failing
    assert changed_check(again, said("a", failing=False, starts_s=5), at()) is None


def test_two_alerts_of_a_source_are_two_faults() -> None:
    check = after(said("a", fingerprint="1"), said("a", fingerprint="2"), said("a", failing=False, fingerprint="1"))
    assert check.failing


def test_what_an_older_version_stored_is_decided_by_who_speaks_first() -> None:
    old = Check(name="disk", failing=True, since_ms=7, source="alertmanager")
    assert not after(said("a", failing=False), check=old).failing
    check = after(said("a"), check=old)
    assert (check.failing, check.since_ms, check.source) == (True, 7, "a")


def test_fine_alerts_do_not_pile_up() -> None:
    reports = [said("a", failing=f, fingerprint=str(n), starts_s=n + 1) for n in range(100) for f in (True, False)]
    assert len(after(*reports).said) <= MOST_FINE + 1
    assert len(after(*(said("a", fingerprint=str(n)) for n in range(200))).said) == MOST
