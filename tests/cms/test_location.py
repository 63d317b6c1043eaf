"""What the CMS makes of what a location of HQ says: which instances count, and which can be relied on."""

from __future__ import annotations

import pytest

from cms.hqview.location import HqLocationFollower
from cms.hqview.reading import ledger_instance
from cms.ledger.budgets import Budgets
from cms.ledger.instances import InstanceKey, Standing
from cms.ledger.picture import InstanceIndex
from hqclient import Bookmark, Changes, Client, Interrupted, Resync, SnapshotPart, Synced
from hqclient.errors import HqApiError
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.clock import ManualClock
from tests.support.sample_instances import instance

KEY = InstanceKey("ams", "web-0")


class Scene:
    """A location whose messages the test makes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.picture = InstanceIndex(Budgets(), 270.0, 600.0)
        self.location = HqLocationFollower("ams", Client(["127.0.0.1:9"]), self.picture, self.clock, lambda: None)

    def synced(self, *instances: model.Instance, epoch: str = "e1") -> None:
        self.location._take(SnapshotPart(instances))
        self.location._take(Synced("", (source(epoch),)))
        self.heard()

    def heard(self) -> None:
        for key in self.picture.instances:
            self.picture.record_report(key, self.clock.now())

    def standing(self) -> tuple[Standing, str]:
        self.picture.age(self.clock.now())
        self.picture.believe([] if self.location.doubt() else ["ams"])
        return self.picture.standing(self.picture.instances[KEY])


def source(epoch: str = "e1", **more: object) -> pb.Source:
    return pb.Source(cluster="ams", epoch=epoch, version=7, **more)  # type: ignore[arg-type]


def said(status: model.ConditionStatus = model.CONDITION_STATUS_TRUE, uid: int = 1) -> model.Instance:
    made = instance("web-0", "web", "h0")
    made.meta.uid = uid
    made.status.ready.status = status
    return made


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_ready_instance_that_was_heard_is_available(scene: Scene) -> None:
    scene.synced(said())
    assert scene.standing() == (Standing.AVAILABLE, "")


async def test_before_a_snapshot_is_complete_nothing_is_relied_on(scene: Scene) -> None:
    scene.location._take(SnapshotPart((said(),)))
    assert "have not been read yet" in scene.location.doubt()


async def test_after_a_new_epoch_of_hq_everyone_must_be_heard_again(scene: Scene) -> None:
    scene.synced(said())
    scene.location._take(Bookmark("", (source("e2"),)))
    assert scene.standing()[0] is Standing.UNCERTAIN
    scene.clock.advance(1)
    scene.heard()
    assert scene.standing()[0] is Standing.AVAILABLE


async def test_another_instance_with_the_same_id_must_be_heard_itself(scene: Scene) -> None:
    scene.synced(said())
    event = pb.WatchEvent(version=8, put=said(uid=2))
    scene.location._take(Changes((event,), "", (source(),)))
    assert scene.standing()[0] is Standing.UNCERTAIN


@pytest.mark.parametrize("real", [("web-1",), ("web-1", "web-2", "web-3"), ("web-1", "web-3")])
async def test_a_watch_that_starts_over_mends_lost_deletions_creations_and_pairs_of_them(
    scene: Scene, real: tuple[str, ...]
) -> None:
    scene.synced(*(instance(name, "web", "h0") for name in ("web-1", "web-2")))
    scene.location._take(Resync("starting over, to compare with HQ"))
    scene.synced(*(instance(name, "web", "h0") for name in real))
    assert {key.id for key in scene.picture.instances} == set(real)
    assert (scene.location.instances, scene.location.doubt()) == (len(real), "")


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Bookmark("", (source(stale=True, error="etcd is away"),)), "etcd is away"),
        (Bookmark("", (source(trust=pb.EPOCH_TRUST_DOUBTED, error="it lost half"),)), "it lost half"),
        (Resync("continuity is lost"), "not been read yet"),
    ],
)
async def test_a_location_that_cannot_be_relied_on_says_why(scene: Scene, item: Bookmark | Resync, words: str) -> None:
    scene.synced(said())
    scene.location._take(item)
    assert words in scene.location.doubt()
    assert scene.standing()[0] is Standing.UNCERTAIN


async def test_a_silent_location_makes_even_broken_instances_uncertain(scene: Scene) -> None:
    scene.synced(said(model.CONDITION_STATUS_FALSE))
    assert scene.standing()[0] is Standing.DOWN
    scene.clock.advance(13)
    assert scene.standing()[0] is Standing.UNCERTAIN


async def test_while_a_watch_is_interrupted_its_instances_are_uncertain(scene: Scene) -> None:
    import grpc

    scene.synced(said())
    scene.location._take(Interrupted(HqApiError(grpc.StatusCode.UNAVAILABLE, "gone"), 1.0))
    assert scene.standing()[0] is Standing.UNCERTAIN
    scene.location._take(Bookmark("", (source(),)))
    assert scene.standing()[0] is Standing.AVAILABLE


async def test_silence_for_one_and_a_half_intervals_is_uncertain_not_down(scene: Scene) -> None:
    scene.synced(said())
    for _ in range(28):
        scene.clock.advance(10)
        scene.location._take(Bookmark("", (source(),)))
    assert scene.standing()[0] is Standing.UNCERTAIN


async def test_an_instance_on_a_suspended_node_is_uncertain_with_the_suspension_as_the_reason(scene: Scene) -> None:
    scene.synced(said())
    scene.picture.changes()
    scene.picture.suspend(KEY, True)
    assert scene.picture.changes().instances == {KEY}
    assert scene.standing() == (Standing.AVAILABLE, ""), "it was heard not long ago"
    for _ in range(28):
        scene.clock.advance(10)
        scene.location._take(Bookmark("", (source(),)))
    standing, why = scene.standing()
    assert standing is Standing.UNCERTAIN
    assert "its node is suspended in HQ" in why
    scene.picture.suspend(KEY, False)
    assert "silent for over" in scene.standing()[1]


def test_an_instance_that_appears_counts_once_it_was_ready() -> None:
    new = ledger_instance("ams", said(model.CONDITION_STATUS_UNKNOWN), None, is_new=True)
    starting = ledger_instance("ams", said(model.CONDITION_STATUS_FALSE), new, is_new=True)
    ready = ledger_instance("ams", said(), starting, is_new=True)
    broken = ledger_instance("ams", said(model.CONDITION_STATUS_FALSE), ready, is_new=True)
    assert [one.counts for one in (new, starting, ready, broken)] == [False, False, True, True]


def test_after_a_restart_instances_that_may_have_been_ready_count() -> None:
    untouched = said(model.CONDITION_STATUS_UNKNOWN)
    rolled = said(model.CONDITION_STATUS_UNKNOWN)
    rolled.meta.modification_time.FromSeconds(60)
    broken = said(model.CONDITION_STATUS_FALSE)
    found = [ledger_instance("ams", one, None, is_new=False).counts for one in (untouched, rolled, broken)]
    assert found == [False, True, True]


def test_an_instance_that_nobody_wants_ready_does_not_count() -> None:
    unwanted = said()
    unwanted.spec.revision[0].target = model.REVISION_TARGET_INSTALLED
    assert not ledger_instance("ams", unwanted, None, is_new=False).counts
