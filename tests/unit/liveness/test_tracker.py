"""What renews a deadline and what does not, as events and heartbeats come in."""

from __future__ import annotations

import pytest

from tests.support.cache_and_tracker import FALSE, R1, R2, CacheAndTracker


@pytest.fixture
def stage() -> CacheAndTracker:
    stage = CacheAndTracker()
    stage.create()
    return stage


def test_a_deadline_runs_from_the_first_report_of_ready(stage: CacheAndTracker) -> None:
    assert stage.silence_s() is None
    stage.report(ready=FALSE)
    assert stage.silence_s() is None
    stage.report(sequence=2)
    stage.clock.advance(5)
    assert stage.silence_s() == 5


def test_a_report_renews_and_so_does_a_heartbeat_but_only_its_own_revision(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.clock.advance(100)
    stage.heartbeat(R1)
    assert stage.silence_s(R1) == 0
    assert stage.silence_s(R2) == 100
    stage.report(R2, sequence=2, message="changed")
    assert stage.silence_s(R2) == 0


def test_two_revisions_that_report_while_one_replaces_the_other_never_renew_each_other(stage: CacheAndTracker) -> None:
    stage.report(R1)
    for n in range(1, 20):
        stage.clock.advance(10)
        stage.report(R2, sequence=n, message=str(n))
    assert stage.silence_s(R1) == 190
    assert stage.silence_s(R2) == 0


def test_hq_s_own_rewrite_of_a_status_renews_nobody(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.clock.advance(100)
    stage.change(lambda draft: draft.keep(["r1"]))
    assert stage.silence_s(R1) == 100
    assert stage.silence_s(R2) is None


def test_a_change_of_the_spec_renews_nobody(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.clock.advance(100)
    stage.create(revisions="r1 r2 r3")
    assert stage.silence_s(R1) == 100


def test_an_expiry_of_one_revision_renews_nobody_else(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.clock.advance(100)
    stage.expire(R1)
    assert stage.silence_s(R1) is None
    assert stage.silence_s(R2) == 100


def test_a_new_reporter_renews_the_deadline(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.clock.advance(100)
    stage.begin(R1)
    assert stage.silence_s(R1) == 0


def test_a_heartbeat_of_a_revision_not_ready_starts_no_deadline(stage: CacheAndTracker) -> None:
    stage.report(R1, ready=FALSE)
    stage.heartbeat(R1)
    assert stage.silence_s(R1) is None


def test_a_deleted_instance_has_no_deadlines_and_a_recreated_one_begins_anew(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.delete()
    assert len(stage.tracker.deadlines) == 0
    stage.create(uid=8)
    stage.report(R1)
    stage.clock.advance(3)
    assert stage.silence_s(R1) == 3


def test_a_recreation_in_one_version_forgets_what_was_heard_of_the_first(stage: CacheAndTracker) -> None:
    stage.report(R1)
    stage.expire(R1)
    stage.create(uid=8)
    assert stage.tracker.census(5).expected == 0
    assert stage.silence_s(R1) is None
