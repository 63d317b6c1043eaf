"""What a replica counts: expiries, recoveries, who is expected; starts and planned work."""

from __future__ import annotations

import pytest

from hq.liveness.deadlines import RevisionKey
from hq.liveness.guard import Census
from hq.memory import statuses
from tests.support.cache_and_tracker import FALSE, R1, R2, CacheAndTracker


@pytest.fixture
def stage() -> CacheAndTracker:
    stage = CacheAndTracker()
    stage.create()
    return stage


def test_expiries_by_any_replica_are_counted_for_one_timeout(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.clock.advance(700)
    stage.expire(R1)
    assert stage.tracker.expiries == 1
    assert stage.tracker.census(5)[:4] == Census(2, 2, 5)[:4]
    stage.clock.advance(601)
    assert stage.tracker.census(5)[:4] == Census(1, 1, 5)[:4]


def test_a_recovery_is_counted_and_ends_the_expiry(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.expire(R1)
    stage.report(R1, sequence=2)
    assert (stage.tracker.expiries, stage.tracker.recoveries) == (1, 1)
    assert stage.tracker.census(5)[:4] == Census(1, 0, 5)[:4]
    assert stage.silence_s(R1) == 0


def test_a_report_of_not_ready_does_not_recover_and_the_next_one_of_ready_does(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.expire(R1)
    stage.report(R1, ready=FALSE, sequence=2)
    assert (stage.tracker.expiries, stage.tracker.recoveries) == (1, 0)
    stage.report(R1, sequence=3)
    assert (stage.tracker.expiries, stage.tracker.recoveries) == (1, 1)


def test_a_declared_removal_lowers_the_expected_number_and_is_not_silent(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.expire(R2)
    assert stage.tracker.census(5).expected == 2
    stage.change(lambda draft: draft.keep(["r1"]))
    assert stage.tracker.census(5)[:4] == Census(1, 0, 5)[:4]
    stage.delete()
    assert stage.tracker.census(5)[:4] == Census(0, 0, 5)[:4]


def test_transitions_are_listed_newest_first_with_their_receipts(stage: CacheAndTracker) -> None:
    stage.create("b", uid=8)
    for key in (R1, RevisionKey("b", "r1")):
        stage.report(key)
        stage.expire(key)
    stage.report(R1, sequence=2)
    assert [(t.key.instance_id, t.ready) for t in stage.tracker.transitions()] == [
        ("a", True),
        ("b", False),
        ("a", False),
    ]
    newest, oldest = stage.tracker.transitions("a")
    assert newest.condition.receipt.recovered_from == statuses.HEARTBEAT_TIMEOUT
    assert oldest.condition.receipt.decided_by == "another replica"
    assert oldest.node == "n1"
    assert len(stage.tracker.transitions(at_most=1)) == 1


def test_a_start_gives_every_ready_revision_a_full_timeout(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.report(R2, ready=FALSE)
    stage.clock.advance(500)
    stage.tracker.start(stage.cache.entries(), "started")
    assert stage.silence_s(R1) == 0
    assert stage.silence_s(R2) is None
    assert list(stage.tracker.deadlines.expired_keys(stage.clock.now() + 600)) == []


def test_heartbeats_replayed_before_a_start_count_for_nothing(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.heartbeat(R1)
    stage.delete()
    stage.tracker.deadlines.record_contact(R1, stage.clock.now())  # as a replay might
    stage.tracker.start(stage.cache.entries(), "started")
    assert len(stage.tracker.deadlines) == 0


def test_on_a_node_under_planned_work_nothing_is_silent_and_nothing_is_expected(stage: CacheAndTracker) -> None:
    stage.create("b", uid=8, node="n2")
    stage.report(R1)
    stage.report(RevisionKey("b", "r1"))
    stage.suspend("n1")
    stage.clock.advance(700)
    assert stage.silence_s(R1) is None
    assert stage.tracker.census(2)[:4] == Census(1, 1, 2)[:4]
    assert list(stage.tracker.deadlines.expired_keys(stage.clock.now())) == [RevisionKey("b", "r1")]


def test_expiries_under_planned_work_are_not_counted(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.expire(R1)
    assert stage.tracker.census(1)[:4] == Census(2, 1, 1)[:4]
    stage.suspend("n1")
    assert stage.tracker.census(1)[:4] == Census(0, 0, 1)[:4]
    stage.expire(R2)
    assert stage.tracker.census(1)[:4] == Census(0, 0, 1)[:4]
    assert stage.tracker.expiries == 2


def test_reports_during_planned_work_start_no_deadline_and_its_end_gives_a_full_timeout(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.suspend("n1")
    stage.heartbeat(R1)
    stage.report(R2)
    assert stage.tracker.census(2).expected == 0
    stage.clock.advance(5_000)
    stage.suspend()
    assert stage.silence_s(R1) == stage.silence_s(R2) == 0
    stage.suspend()
    stage.clock.advance(10)
    assert stage.silence_s(R1) == 10


def test_an_instance_created_under_planned_work_is_not_expected_to_report(stage: CacheAndTracker) -> None:
    stage.suspend("n9")
    stage.create("b", uid=8, node="n9")
    stage.report(RevisionKey("b", "r1"))
    assert stage.tracker.census(2).expected == 0
    stage.suspend()
    assert stage.tracker.census(2).expected == 1
