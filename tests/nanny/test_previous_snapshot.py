"""Where `nanny rollback` goes: to the snapshot that was ACTIVE before, as the server's records show it."""

from __future__ import annotations

from nanny.automaton.states import Current, SnapshotEvent, Target
from nanny.records.services import tuple_of
from nannyctl.commands.orders import previous_snapshot, rollback_under_way
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import HealthRecord, StepOrder
from tests.nanny.orders import SERVICE, Ordered, refused


def test_a_roll_back_given_again_while_it_is_under_way_is_the_same_order() -> None:
    opened = pb.Order(id="cli-1", target=pb.TARGET_ACTIVE, outcome=pb.ORDER_OUTCOME_OPEN, roll_back=True)
    a = pb.SnapshotState(snapshot_id="a", target=pb.TARGET_ACTIVE, order=opened)
    b = pb.SnapshotState(snapshot_id="b", target=pb.TARGET_PREPARED, current=pb.CURRENT_STATE_DEACTIVATE_PENDING)
    found = rollback_under_way(pb.Service(snapshot=[a, b]))
    assert found is not None
    assert found.snapshot_id == "a"
    of_before = pb.Order(id="rollback-cli-1", target=pb.TARGET_ACTIVE, outcome=pb.ORDER_OUTCOME_OPEN)
    a.order.CopyFrom(of_before)  # as a Nanny, or a command, that knows no `roll_back` leaves it
    assert rollback_under_way(pb.Service(snapshot=[a, b])) == a
    a.order.outcome = pb.ORDER_OUTCOME_REACHED
    assert rollback_under_way(pb.Service(snapshot=[a, b])) is None
    a.order.CopyFrom(pb.Order(id="cli-2", target=pb.TARGET_ACTIVE, outcome=pb.ORDER_OUTCOME_OPEN))
    assert rollback_under_way(pb.Service(snapshot=[a, b])) is None  # a roll-out, which is rolled back


def previous(web: Ordered) -> str:
    shown = pb.Service(id=SERVICE)
    for one in web.record.snapshot:
        state = shown.snapshot.add(snapshot_id=one.snapshot_id, current=one.current, target=one.target, order=one.order)
        state.has_served = one.has_served
        state.current_since.FromMilliseconds(one.since_unix_ms)
    return previous_snapshot(shown)


def test_a_roll_back_goes_to_the_snapshot_that_was_active_before_and_then_forward_again() -> None:
    web = Ordered().add("a", "b", "c").activate("a").settle().activate("b").settle()
    assert previous(web) == "a"
    assert previous(web.activate("c").settle()) == "b"
    assert previous(web.activate("b").settle()) == "c"


def test_a_roll_out_under_way_is_rolled_back_to_what_still_serves() -> None:
    web = Ordered().add("a", "b", "c").activate("a").settle().activate("b").settle().activate("c")
    assert previous(web.until("c", Current.ACTIVATING)) == "b"


def test_a_roll_back_goes_to_a_snapshot_that_is_still_being_switched_off() -> None:
    web = Ordered().add("a", "b", "c").activate("a").settle().activate("b").settle().activate("c")
    web = web.until("c", Current.ACTIVATING).ended("c", SnapshotEvent.DONE)
    assert (web.current("b"), web.outcome("c")[0]) == (Current.DEACTIVATING, "REACHED")  # as after `nanny activate`
    assert previous(web) == "b"
    assert web.target("b", Target.ACTIVE, roll_back=True).settle().outcome("b")[0] == "REACHED"
    assert (web.current("b"), web.current("c"), previous(web)) == (Current.ACTIVE, Current.PREPARED, "c")


def test_a_snapshot_that_failed_is_not_rolled_back_to_while_it_is_being_switched_off() -> None:
    web = Ordered().add("a", "b", "c").activate("a").settle().activate("b").settle().activate("c")
    web = web.until("c", Current.ACTIVATING).ended("c", SnapshotEvent.FAILED, "worse").activate("b")
    web = web.until("b", Current.ACTIVATING).ended("b", SnapshotEvent.DONE)
    assert (web.current("c"), previous(web)) == (Current.DEACTIVATING, "a")
    assert "was not ACTIVE before" in refused(lambda: web.target("c", Target.ACTIVE, roll_back=True))


def test_a_roll_back_never_goes_to_a_snapshot_that_failed_or_was_only_prepared() -> None:
    web = Ordered().add("a", "b", "c").activate("a").settle().activate("b").until("b", Current.ACTIVATING)
    web.ended("b", SnapshotEvent.FAILED, "web-1 did not become ready")
    assert previous(web) == "a"
    assert previous(web.activate("a").settle().target("c", Target.PREPARED).settle()) == ""


def test_a_roll_back_goes_only_to_what_was_active_before() -> None:
    web = Ordered().add("a", "b", "c").activate("a").settle().activate("b").settle().target("c", Target.PREPARED)
    for never in ("c", "b"):
        why = refused(lambda never=never: web.settle().target(never, Target.ACTIVE, roll_back=True))
        assert "was not ACTIVE before" in why
    assert tuple_of(web.target("a", Target.ACTIVE, roll_back=True).record, "a").order.roll_back  # type: ignore[union-attr]
    assert web.settle().outcome("a")[0] == "REACHED"


def a_then_b() -> Ordered:
    """`a` was ACTIVE, `b` is."""
    return Ordered().add("a", "b").activate("a").settle().activate("b").settle()


def test_a_snapshot_that_served_can_be_rolled_back_to_whatever_was_ordered_since() -> None:
    assert previous(a_then_b().target("a", Target.PREPARED)) == "a"  # it is that already
    ill = Ordered().add("a", "b").activate("a").settle()
    ill.record.health.CopyFrom(HealthRecord(ready=1, wanted=3, remark="2 are not ready"))
    assert ill.activate("a").outcome("a")[0] == "FAILED"
    assert previous(ill.activate("b").settle()) == "a"
    early = Ordered().add("a", "b").activate("a").settle()
    for one in early.record.snapshot:
        one.ClearField("has_served")  # as an earlier version stored it
    for web in (early.activate("b").target("a", Target.PREPARED).settle(), ill):
        assert previous(web) == "a"
        web.target("a", Target.ACTIVE, roll_back=True)


def test_a_snapshot_that_left_the_nodes_or_failed_since_it_served_cannot_be_rolled_back_to() -> None:
    gone = a_then_b().target("a", Target.CREATED).settle().target("a", Target.PREPARED).settle()
    failed = a_then_b().activate("a").until("a", Current.ACTIVATING).ended("a", SnapshotEvent.FAILED, "worse")
    aborted = a_then_b().activate("a").until("a", Current.ACTIVATING)
    aborted.send(aborted=StepOrder(order_id="o3"))
    for web in (gone, failed.activate("b").settle(), aborted.activate("b").settle()):
        assert previous(web) == ""
        assert "was not ACTIVE before" in refused(lambda web=web: web.target("a", Target.ACTIVE, roll_back=True))


def test_a_stopped_service_is_not_rolled_back() -> None:
    web = Ordered().add("a", "b").activate("a").settle().activate("b").settle().stop().settle()
    assert previous(web) == ""
