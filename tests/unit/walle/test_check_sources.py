"""A check has a state for each source and alert, in the order in which these began."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.walle.book import DictBook
from tests.support.walle.hosts import a_host, a_project, at
from walle.healing.check_sources import (
    EXPIRES_MS,
    MOST,
    MOST_BYTES,
    MOST_FINE,
    changed_check,
    expired_check,
    within_bounds,
)
from walle.healing.incidents import Incidents
from walle.work.book import HOST, PROJECT, World
from walle.work.repairs import consider, is_fine
from walle.work.waves import evidence_of
from wallepb.v1.host_pb2 import Check
from wallepb.v1.project_pb2 import SCENARIO_KIND_REBOOT, Scenario, ScenarioHost
from wallepb.v1.service_pb2 import CheckReport


def said(source: str, *, failing: bool = True, fingerprint: str = "", starts_s: int = 0) -> CheckReport:
    one = CheckReport(name="disk", failing=failing, source=source, fingerprint=fingerprint)
    if starts_s:
        one.starts_at.CopyFrom(Timestamp(seconds=starts_s))
    return one


def after(*reports: CheckReport, check: Check | None = None) -> Check:
    """Apply the reports one second apart, from second 1 on; return the check."""
    for number, report in enumerate(reports):
        check = changed_check(check, report, at(1000 * (number + 1))) or check
    assert check is not None
    return check


def test_a_check_fails_while_any_source_says_so_since_the_first_said_so() -> None:
    check = after(said("a"), said("b"), said("a", failing=False))
    assert (check.failing, check.source, check.since_ms) == (True, "b", 1000)
    check = after(said("b", failing=False), check=check)
    assert (check.failing, check.source, check.since_ms) == (False, "b", 1000)


def test_a_good_report_of_a_source_that_never_failed_changes_nothing() -> None:
    assert changed_check(None, said("a", failing=False), at()) is None
    assert changed_check(after(said("a")), said("b", failing=False), at()) is None


def test_a_repeated_report_changes_nothing() -> None:
    assert changed_check(after(said("a", starts_s=5)), said("a", starts_s=5), at(2000)) is None


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


def test_a_check_stored_by_an_older_version_belongs_to_the_next_source_that_reports() -> None:
    old = Check(name="disk", failing=True, since_ms=7, source="alertmanager")
    assert not after(said("a", failing=False), check=old).failing
    check = after(said("a"), check=old)
    assert (check.failing, check.since_ms, check.source) == (True, 7, "a")


def test_a_state_that_is_not_repeated_becomes_unknown() -> None:
    check = after(said("a"), said("b", failing=True))
    later = changed_check(check, said("a"), at(EXPIRES_MS // 2))
    assert later is not None, "the time is noted"
    assert changed_check(later, said("a"), at(EXPIRES_MS // 2 + 1000)) is None, "but not at each repetition"
    assert expired_check(later, at(1999 + EXPIRES_MS)) is None
    left = expired_check(later, at(2000 + EXPIRES_MS))
    assert left is not None
    assert (left.failing, left.unknown, left.source, left.since_ms) == (True, False, "a", 1000)
    gone = expired_check(left, at(2 * EXPIRES_MS))
    assert gone is not None
    assert (gone.failing, gone.unknown, gone.source) == (False, True, "a")
    assert expired_check(gone, at(3 * EXPIRES_MS)) is None
    for report, is_failing in ((said("a"), True), (said("c", failing=False), False)):
        back = after(report, check=gone)
        assert (back.failing, back.unknown) == (is_failing, False)


def test_an_unknown_check_neither_begins_nor_completes_a_repair() -> None:
    book = DictBook()
    host = a_host("h1", "disk")
    host.check[0].CopyFrom(after(said("a")))
    book.put(HOST, "h1", host)
    book.put(PROJECT, "web", a_project())
    world = World("test", {}, lambda: "op", Incidents(), 0)
    assert consider(book, "h1", world, at(2000 + EXPIRES_MS)) == []
    host = book.get(HOST, "h1") or host
    assert host.check[0].unknown
    assert not host.HasField("operation")
    host.operation.check = "disk"
    assert not is_fine(host)
    scenario = Scenario(kind=SCENARIO_KIND_REBOOT)
    assert evidence_of(scenario, ScenarioHost(), host, None, None).problem == "disk is unknown"


def test_resolved_alerts_do_not_pile_up() -> None:
    reports = [said("a", failing=f, fingerprint=str(n), starts_s=n + 1) for n in range(100) for f in (True, False)]
    assert len(after(*reports).said) <= MOST_FINE + 1
    assert len(after(*(said("a", fingerprint=str(n)) for n in range(200))).said) == MOST


def test_made_up_fingerprints_do_not_push_out_reports_of_other_sources() -> None:
    """Otherwise an agent could clear what Alertmanager said of its node."""
    flood = [said("agent/n1", fingerprint=str(number)) for number in range(MOST + 10)]
    calm = [said("agent/n1", failing=False, fingerprint=str(number)) for number in range(MOST + 10)]
    check = after(said("alertmanager", starts_s=5), *flood, *calm)
    assert (check.failing, check.source) == (True, "alertmanager")
    check = after(said("alertmanager", starts_s=6), said("alertmanager", failing=False, starts_s=6), *flood, *calm)
    assert changed_check(check, said("alertmanager", starts_s=5), at(9_999_999)) is None, "what is old counts no more"


def test_a_source_that_reports_too_much_loses_only_its_own_oldest_reports() -> None:
    loud = [said("a", fingerprint=f"{number:0256}") for number in range(MOST)]
    checks = [after(said("b"), *loud) for _ in range(10)]
    assert sum(check.ByteSize() for check in checks) > MOST_BYTES
    kept = within_bounds(checks, at(10**6))
    assert MOST_BYTES // 2 < sum(check.ByteSize() for check in kept) <= MOST_BYTES
    assert [sum(one.name == "b" for one in check.said) for check in kept] == [1] * 10
    assert {check.said[-1].fingerprint for check in kept} == {loud[-1].fingerprint}
    assert within_bounds(kept, at(10**6)) == kept
