"""Which recorded silences a start may continue: none of agents that may have been heard since."""

from __future__ import annotations

import pytest

from hq.liveness.deadlines import Deadlines, LivenessTimes, RevisionKey, Silence
from hq.liveness.guard import Census, ExpiryGuard, GuardRules
from hq.liveness.replay import Replay
from hqpb.storage.v1 import storage_pb2
from tests.support.cache_and_tracker import R1, CacheAndTracker

AT, EPOCH, PRESENCE_MS = 100, "e1", 1_000_000
CALM, OVER = Census(100, 0, 10), Census(100, 50, 10)


@pytest.fixture
def stage() -> CacheAndTracker:
    stage = CacheAndTracker()
    stage.create()
    stage.begin()
    stage.report(R1, sequence=2, incarnation=2)
    return stage


def record(epoch: str = EPOCH, at: int = AT, uid: int = 7) -> storage_pb2.SilenceRecord:
    """A record in which the agent has been silent for 300 s, and its revision r1 for 500 s."""
    heard_ms = [PRESENCE_MS - 300_000, PRESENCE_MS - 500_000]
    return storage_pb2.SilenceRecord(
        epoch=epoch, at=at, revision=["r1"], uid=[uid, uid], of=[0, 1], heard_ms=heard_ms, refused_ms=[0, 0]
    )


def carried(stage: CacheAndTracker, replay: Replay, *records: storage_pb2.SilenceRecord) -> list[object]:
    found = replay.carry_silences(records, EPOCH, PRESENCE_MS, stage.cache.entries())
    return [*found.revisions.items(), *found.agents.items()]


def replay_from(version: int) -> Replay:
    replay = Replay()
    replay.restart(version)
    return replay


ALL = [(R1, Silence(500)), ("a", Silence(300))]


def test_the_silence_of_an_agent_not_heard_since_the_record_goes_on(stage: CacheAndTracker) -> None:
    assert carried(stage, replay_from(AT), record()) == ALL


def test_a_replay_that_began_after_the_record_carries_nothing(stage: CacheAndTracker) -> None:
    assert carried(stage, replay_from(AT + 1), record()) == []


def test_a_record_of_another_epoch_or_uid_says_nothing(stage: CacheAndTracker) -> None:
    assert carried(stage, replay_from(AT), record(epoch="e0"), record(uid=8)) == []


def test_a_report_newer_than_the_record_ends_the_silence(stage: CacheAndTracker) -> None:
    replay = replay_from(AT - 5)
    replay.version = AT
    replay.record_report(stage.entry(), stage.entry().marks[0])
    assert carried(stage, replay, record()) == ALL, "it was known when the record was made"
    replay.version = AT + 1
    replay.record_report(stage.entry(), stage.entry().marks[0])
    assert carried(stage, replay, record()) == []


def test_after_planned_work_since_the_record_no_silence_is_carried(stage: CacheAndTracker) -> None:
    replay = replay_from(AT)
    replay.version = AT + 1
    replay.record_order("n1")
    assert carried(stage, replay, record()) == []


def test_a_record_with_inconsistent_columns_is_not_read(stage: CacheAndTracker) -> None:
    broken = record()
    broken.of[0], broken.refused_ms[:] = 9, [0]
    assert carried(stage, replay_from(AT), broken) == []


def test_before_an_expiry_hq_is_present_for_an_interval_and_a_retry_without_a_gap() -> None:
    times = LivenessTimes()
    deadlines = Deadlines[RevisionKey](times)
    deadlines.start([R1], 1_000.0, "started", {R1: Silence(5_000)})
    assert deadlines.deadline(R1) == 1_000 + times.grace_s
    deadlines.gap(1_100, 1_101, "away")
    deadlines.gap(1_250, 1_252, "away")
    assert deadlines.deadline(R1) == 1_252 + times.grace_s
    assert list(deadlines.expired_keys(1_252 + times.grace_s)) == []
    assert list(deadlines.expired_keys(1_252 + times.grace_s + times.flush_s)) == [R1]


def test_short_gaps_do_not_postpone_a_carried_silence_for_ever() -> None:
    times = LivenessTimes()
    deadlines = Deadlines[RevisionKey](times)
    deadlines.start([R1], 0.0, "started", {R1: Silence(200)})
    now = 200.0
    while not list(deadlines.expired_keys(now)):
        assert now < 2_000
        deadlines.gap(now, now + 1, "away")
        now += 6


def test_silence_during_refusals_is_carried_over_too() -> None:
    times = LivenessTimes()
    before, after = Deadlines[RevisionKey](times), Deadlines[RevisionKey](times)
    before.record_contact(R1, 0.0)
    for now in range(100, 700, 100):
        before.record_refusal(R1, float(now))
    silence = before.silence(R1, 700.0)
    assert silence == Silence(100, 600)
    after.start([R1], 5_000.0, "started", {R1: silence})
    assert after.is_refused(R1)
    assert after.silence(R1, 5_000.0) == silence
    after.record_refusal(R1, 5_001.0)
    assert after.deadline(R1) == 5_000 - 700 + 2 * times.timeout_s, "no start renews what refusals may excuse"


@pytest.mark.parametrize("used_s", [100, 600])
def test_a_restart_does_not_renew_a_hold(used_s: int) -> None:
    before, after = ExpiryGuard(GuardRules()), ExpiryGuard(GuardRules())
    for now in range(0, used_s + 1, 10):
        before.judge(float(now), OVER)
    use = before.use(float(used_s))
    assert use is not None
    after.resume(9_000.0, use)
    left_s = 600 - used_s
    assert after.judge(9_000.0, OVER).hold == bool(left_s)
    assert not after.judge(9_000.0 + left_s, OVER).hold
    assert not after.judge(9_000.0 + left_s + 1, CALM).hold
    assert not after.judge(9_000.0 + left_s + 2, OVER).hold, "nor does a short calm"


def test_a_guard_that_never_held_carries_nothing_over() -> None:
    guard = ExpiryGuard(GuardRules())
    guard.judge(0.0, CALM)
    assert guard.use(0.0) is None
