"""What renews a deadline and what does not, as events and beats come in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hq import statuses
from hq.cache import Cache
from hq.clock import ManualClock
from hq.entry import Entry
from hq.liveness.deadlines import LivenessTimes, RevisionKey
from hq.liveness.tracker import Tracker
from hq.store.keys import Keys
from hq.store.port import Batch, Change
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2

TRUE, FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE
R1, R2 = RevisionKey("a", "r1"), RevisionKey("a", "r2")
HEARD = statuses.Heard("replica-1", 5)


class Stage:
    """A cache and a tracker fed with records, as a replica feeds them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.keys = Keys()
        self.cache = Cache(self.keys)
        self.tracker = Tracker(LivenessTimes(), self.clock)
        self.version = 1

    def create(self, instance_id: str = "a", uid: int = 7, node: str = "n1", revisions: str = "r1 r2") -> None:
        meta = instance_pb2.InstanceMeta(id=instance_id, uid=uid, service_id="svc")
        spec = instance_pb2.InstanceSpec(node_name=node)
        for revision in revisions.split():
            spec.revision.add(id=revision)
        record = storage_pb2.SpecRecord(meta=meta.SerializeToString(), spec=spec.SerializeToString())
        old = self.cache.get(instance_id)
        if old is None or old.traits.uid != uid:
            self.put(instance_id, record, statuses.empty_record(uid, 1, 0))
        else:
            self.put(instance_id, record, None)

    def delete(self, instance_id: str = "a") -> None:
        self.put(instance_id, None, None)

    def change(self, change: Callable[[statuses.Draft], None], instance_id: str = "a") -> None:
        entry = self.entry(instance_id)
        draft = statuses.Draft(entry.traits.uid, entry.stored()[1].record, entry.marks)
        change(draft)
        self.put_status(instance_id, draft.record(9, self.clock.wall_ms()))

    def report(
        self, key: RevisionKey = R1, ready: int = TRUE, sequence: int = 1, incarnation: int = 1, message: str = ""
    ) -> None:
        status = instance_pb2.RevisionStatus(id=key.revision_id, incarnation=incarnation, sequence=sequence)
        status.ready.CopyFrom(instance_pb2.Condition(status=ready, message=message))  # type: ignore[arg-type]
        self.change(lambda draft: draft.report(status, HEARD, statuses.digest(status)), key.instance_id)

    def begin(self, key: RevisionKey = R1, incarnation: int = 2) -> None:
        self.change(lambda draft: draft.begin(key.revision_id, incarnation, HEARD), key.instance_id)

    def flip(self, key: RevisionKey = R1) -> None:
        receipt = instance_pb2.Receipt(decided_by="another replica")
        self.change(lambda draft: draft.flip(key.revision_id, receipt, 1), key.instance_id)

    def beat(self, key: RevisionKey = R1) -> None:
        entry = self.entry(key.instance_id)
        position = [mark.id for mark in entry.marks].index(key.revision_id)
        self.tracker.beat(entry, entry.beat(position, self.clock.wall_ms(), "replica-2"), self.clock.now())

    def entry(self, instance_id: str = "a") -> Entry:
        entry = self.cache.get(instance_id)
        assert entry is not None
        return entry

    def put(
        self, instance_id: str, spec: storage_pb2.SpecRecord | None, status: storage_pb2.StatusRecord | None
    ) -> None:
        changes = {self.keys.spec(instance_id): spec}
        if status is not None or spec is None:
            changes[self.keys.status(instance_id)] = status  # type: ignore[assignment]
        self._apply({key: None if record is None else record.SerializeToString() for key, record in changes.items()})

    def put_status(self, instance_id: str, status: storage_pb2.StatusRecord) -> None:
        self._apply({self.keys.status(instance_id): status.SerializeToString()})

    def _apply(self, values: dict[bytes, bytes | None]) -> None:
        self.version += 1
        changes = [Change(key, value, self.version, self.version) for key, value in values.items()]
        for event in self.cache.apply(Batch(self.version, changes)):
            self.tracker.observe(event)

    def silence_s(self, key: RevisionKey = R1) -> float | None:
        return self.tracker.deadlines.silence_s(key, self.clock.now())

    def suspend(self, *nodes: str) -> None:
        self.tracker.suspend(nodes, lambda node: [e for e in self.cache.entries() if e.traits.node == node])


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.create()
    return stage


def test_a_deadline_runs_from_the_first_report_of_ready(stage: Stage) -> None:
    assert stage.silence_s() is None
    stage.report(ready=FALSE)
    assert stage.silence_s() is None
    stage.report(sequence=2)
    stage.clock.advance(5)
    assert stage.silence_s() == 5


def test_a_report_renews_and_so_does_a_beat_but_only_its_own_revision(stage: Stage) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.clock.advance(100)
    stage.beat(R1)
    assert stage.silence_s(R1) == 0
    assert stage.silence_s(R2) == 100
    stage.report(R2, sequence=2, message="changed")
    assert stage.silence_s(R2) == 0


def test_two_revisions_that_report_while_one_replaces_the_other_never_renew_each_other(stage: Stage) -> None:
    stage.report(R1)
    for n in range(1, 20):
        stage.clock.advance(10)
        stage.report(R2, sequence=n, message=str(n))
    assert stage.silence_s(R1) == 190
    assert stage.silence_s(R2) == 0


def test_hq_s_own_rewrite_of_a_status_renews_nobody(stage: Stage) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.clock.advance(100)
    stage.change(lambda draft: draft.keep(["r1"]))
    assert stage.silence_s(R1) == 100
    assert stage.silence_s(R2) is None


def test_a_change_of_the_spec_renews_nobody(stage: Stage) -> None:
    stage.report(R1)
    stage.clock.advance(100)
    stage.create(revisions="r1 r2 r3")
    assert stage.silence_s(R1) == 100


def test_a_flip_of_one_revision_renews_nobody_else(stage: Stage) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.clock.advance(100)
    stage.flip(R1)
    assert stage.silence_s(R1) is None
    assert stage.silence_s(R2) == 100


def test_a_new_reporter_is_a_sign_of_life(stage: Stage) -> None:
    stage.report(R1)
    stage.clock.advance(100)
    stage.begin(R1)
    assert stage.silence_s(R1) == 0


def test_a_beat_of_what_is_not_ready_runs_no_deadline(stage: Stage) -> None:
    stage.report(R1, ready=FALSE)
    stage.beat(R1)
    assert stage.silence_s(R1) is None


def test_a_deleted_instance_has_no_deadlines_and_another_life_of_its_id_begins_anew(stage: Stage) -> None:
    stage.report(R1)
    stage.delete()
    assert len(stage.tracker.deadlines) == 0
    stage.create(uid=8)
    stage.report(R1)
    stage.clock.advance(3)
    assert stage.silence_s(R1) == 3


def test_another_life_in_one_version_forgets_what_was_heard_of_the_first(stage: Stage) -> None:
    stage.report(R1)
    stage.flip(R1)
    stage.create(uid=8)
    assert stage.tracker.census(5).expected == 0
    assert stage.silence_s(R1) is None


def test_flips_are_counted_whoever_wrote_them_and_for_one_timeout(stage: Stage) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.clock.advance(700)
    stage.flip(R1)
    assert stage.tracker.flips == 1
    assert stage.tracker.census(5) == (2, 2, 5)
    stage.clock.advance(601)
    assert stage.tracker.census(5) == (1, 1, 5)


def test_a_recovery_is_counted_and_ends_the_flip(stage: Stage) -> None:
    stage.report(R1)
    stage.flip(R1)
    stage.report(R1, sequence=2)
    assert (stage.tracker.flips, stage.tracker.recoveries) == (1, 1)
    assert stage.tracker.census(5) == (1, 0, 5)
    assert stage.silence_s(R1) == 0


def test_a_report_of_not_ready_does_not_recover_and_the_next_one_of_ready_does(stage: Stage) -> None:
    stage.report(R1)
    stage.flip(R1)
    stage.report(R1, ready=FALSE, sequence=2)
    assert (stage.tracker.flips, stage.tracker.recoveries) == (1, 0)
    stage.report(R1, sequence=3)
    assert (stage.tracker.flips, stage.tracker.recoveries) == (1, 1)


def test_a_declared_removal_lowers_the_expected_number_and_is_not_silent(stage: Stage) -> None:
    stage.report(R1)
    stage.report(R2)
    stage.flip(R2)
    assert stage.tracker.census(5).expected == 2
    stage.change(lambda draft: draft.keep(["r1"]))
    assert stage.tracker.census(5) == (1, 0, 5)
    stage.delete()
    assert stage.tracker.census(5) == (0, 0, 5)


def test_transitions_tell_newest_first_with_their_receipts(stage: Stage) -> None:
    stage.create("b", uid=8)
    for key in (R1, RevisionKey("b", "r1")):
        stage.report(key)
        stage.flip(key)
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


def test_a_start_gives_everyone_who_is_ready_a_full_timeout(stage: Stage) -> None:
    stage.report(R1)
    stage.report(R2, ready=FALSE)
    stage.clock.advance(500)
    stage.tracker.start(stage.cache.entries(), "started")
    assert stage.silence_s(R1) == 0
    assert stage.silence_s(R2) is None
    assert list(stage.tracker.deadlines.expired(stage.clock.now() + 600)) == []


def test_beats_replayed_before_a_start_count_for_nothing(stage: Stage) -> None:
    stage.report(R1)
    stage.beat(R1)
    stage.delete()
    stage.tracker.deadlines.heard(R1, stage.clock.now())  # as a replay might
    stage.tracker.start(stage.cache.entries(), "started")
    assert len(stage.tracker.deadlines) == 0


def test_on_a_node_under_planned_work_nothing_is_silent_and_nothing_is_expected(stage: Stage) -> None:
    stage.create("b", uid=8, node="n2")
    stage.report(R1)
    stage.report(RevisionKey("b", "r1"))
    stage.suspend("n1")
    stage.clock.advance(700)
    assert stage.silence_s(R1) is None
    assert stage.tracker.census(2) == (1, 1, 2)
    assert list(stage.tracker.deadlines.expired(stage.clock.now())) == [RevisionKey("b", "r1")]


def test_reports_during_planned_work_start_no_deadline_and_its_end_gives_a_full_timeout(stage: Stage) -> None:
    stage.report(R1)
    stage.suspend("n1")
    stage.beat(R1)
    stage.report(R2)
    assert stage.tracker.census(2).expected == 0
    stage.clock.advance(5_000)
    stage.suspend()
    assert stage.silence_s(R1) == stage.silence_s(R2) == 0
    stage.suspend()
    stage.clock.advance(10)
    assert stage.silence_s(R1) == 10


def test_an_instance_created_under_planned_work_is_covered_too(stage: Stage) -> None:
    stage.suspend("n9")
    stage.create("b", uid=8, node="n9")
    stage.report(RevisionKey("b", "r1"))
    assert stage.tracker.census(2).expected == 0
    stage.suspend()
    assert stage.tracker.census(2).expected == 1
