"""Operators' orders: how long they hold, on whose clock."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from hq.liveness.guard import GuardCommand
from hq.liveness.orders import Orders
from hqpb.storage.v1 import storage_pb2
from serving.clock import ManualClock
from store.port import Batch, KeyChange
from tests.support.stepped_replica import loaded
from tests.support.store_histories import World

DAY_MS = 86_400_000
HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def orders(clock: ManualClock) -> Orders:
    return Orders(clock)


def guard_order(kind: int, since_ms: int, duration_ms: int = HOUR_MS) -> bytes:
    return storage_pb2.GuardOrder(
        kind=kind, by="ann", reason="drill", since_unix_ms=since_ms, duration_ms=duration_ms
    ).SerializeToString()


def suspension(since_ms: int, duration_ms: int = HOUR_MS) -> bytes:
    record = storage_pb2.NodeSuspension(by="ann", reason="disk", since_unix_ms=since_ms, duration_ms=duration_ms)
    return record.SerializeToString()


@pytest.mark.parametrize(
    ("kind", "order"),
    [(1, GuardCommand.RELEASE), (2, GuardCommand.FORCE), (0, GuardCommand.NONE), (9, GuardCommand.NONE)],
)
def test_an_order_to_the_guard_holds_for_its_time(
    clock: ManualClock, orders: Orders, kind: int, order: GuardCommand
) -> None:
    orders.take("guard", guard_order(kind, clock.wall_ms()), live=True)
    assert orders.order() is order
    clock.advance(3_599)
    assert orders.order() is order
    clock.advance(1)
    assert orders.order() is GuardCommand.NONE
    assert orders.guard() is None


@pytest.mark.parametrize("off_ms", [-DAY_MS, 0, DAY_MS])
def test_a_clock_a_day_off_anywhere_changes_nothing_for_an_order_that_comes_live(
    clock: ManualClock, orders: Orders, off_ms: int
) -> None:
    orders.take("guard", guard_order(2, clock.wall_ms() + off_ms), live=True)
    orders.take("suspend/n1", suspension(clock.wall_ms() + off_ms), live=True)
    clock.advance(3_599)
    assert orders.order() is GuardCommand.FORCE
    assert orders.suspension("n1") is not None
    clock.advance(2)
    assert orders.order() is GuardCommand.NONE
    assert orders.suspension("n1") is None


def test_an_order_found_at_start_holds_for_the_rest_of_its_time(clock: ManualClock, orders: Orders) -> None:
    orders.take("guard", guard_order(2, clock.wall_ms() - HOUR_MS // 2), live=False)
    clock.advance(1_799)
    assert orders.order() is GuardCommand.FORCE
    clock.advance(2)
    assert orders.order() is GuardCommand.NONE


def test_an_order_found_at_start_never_holds_longer_than_was_ordered(clock: ManualClock, orders: Orders) -> None:
    orders.take("guard", guard_order(2, clock.wall_ms() + DAY_MS), live=False)
    clock.advance(3_601)
    assert orders.order() is GuardCommand.NONE


def test_an_order_long_over_when_found_at_start_does_not_hold(clock: ManualClock, orders: Orders) -> None:
    orders.take("guard", guard_order(2, clock.wall_ms() - DAY_MS), live=False)
    orders.take("suspend/n1", suspension(clock.wall_ms() - DAY_MS), live=False)
    assert orders.order() is GuardCommand.NONE
    assert orders.suspensions() == []


def test_an_order_of_an_unknown_kind_is_not_shown_as_a_known_one(clock: ManualClock, orders: Orders) -> None:
    orders.take("guard", guard_order(9, clock.wall_ms()), live=True)
    assert orders.guard() is None
    assert orders.names() == ["guard"]


def test_an_order_found_in_a_compacted_gap_holds_for_the_rest_of_its_time() -> None:
    still = loaded(World())
    names, clock, orders = still.replica.key_names, still.clock, still.replica.liveness.orders
    at, value = still.replica.cache.version + 2, guard_order(1, clock.wall_ms() - HOUR_MS // 2)
    still.apply(Batch(at, [KeyChange(names.guard, value, at - 1, at - 1)]), collapsed=True)
    clock.advance(1_799)
    assert orders.order() is GuardCommand.RELEASE
    clock.advance(2)
    assert orders.order() is GuardCommand.NONE


def test_a_later_order_replaces_an_earlier_one_and_a_deletion_ends_it(clock: ManualClock, orders: Orders) -> None:
    orders.take("guard", guard_order(2, clock.wall_ms()), live=True)
    orders.take("guard", guard_order(1, clock.wall_ms()), live=True)
    assert orders.order() is GuardCommand.RELEASE
    orders.take("guard", None, live=True)
    assert orders.order() is GuardCommand.NONE


def test_each_node_is_suspended_separately(clock: ManualClock, orders: Orders) -> None:
    orders.take("suspend/n2", suspension(clock.wall_ms()), live=True)
    orders.take("suspend/n1", suspension(clock.wall_ms(), 2 * HOUR_MS), live=True)
    assert [s.node for s in orders.suspensions()] == ["n1", "n2"]
    assert orders.suspension("n") is None
    clock.advance(3_601)
    assert [s.node for s in orders.suspensions()] == ["n1"]
    orders.take("suspend/n1", None, live=True)
    assert orders.suspensions() == []


def test_author_reason_and_times_of_an_order_are_kept_for_display(clock: ManualClock, orders: Orders) -> None:
    orders.take("suspend/n1", suspension(123, 456), live=True)
    found = orders.suspension("n1")
    assert found is not None
    assert (found.by, found.reason, found.since_ms, found.until_ms) == ("ann", "disk", 123, 579)


def test_a_new_history_of_the_store_begins_without_orders(clock: ManualClock, orders: Orders) -> None:
    orders.take("guard", guard_order(2, clock.wall_ms()), live=True)
    orders.take("suspend/n1", suspension(clock.wall_ms()), live=True)
    orders.reset()
    assert orders.order() is GuardCommand.NONE
    assert orders.suspensions() == []


def test_unknown_keys_are_ignored_and_undecodable_orders_refused(orders: Orders) -> None:
    orders.take("elsewhere/x", b"whatever", live=True)
    with pytest.raises(DecodeError):
        orders.take("guard", b"\xff", live=True)
    assert orders.order() is GuardCommand.NONE


def test_the_key_of_every_order_is_listed_until_its_record_is_deleted(clock: ManualClock, orders: Orders) -> None:
    """After a gap, these keys show which orders were deleted meanwhile."""
    orders.take("guard", guard_order(2, clock.wall_ms()), live=True)
    orders.take("suspend/n1", suspension(clock.wall_ms()), live=True)
    clock.advance(10_000)
    assert orders.names() == ["guard", "suspend/n1"]
    orders.take("guard", None, live=True)
    orders.take("suspend/n1", None, live=True)
    assert orders.names() == []


@pytest.mark.parametrize("since_ms", [-(1 << 63), (1 << 63) - 1])
def test_orders_with_times_out_of_range_can_still_be_shown(orders: Orders, since_ms: int) -> None:
    """Every answer about an instance shows the guard's order: one written by hand must not make them fail."""
    orders.take("guard", guard_order(2, since_ms), live=True)
    orders.take("suspend/n1", suspension(since_ms), live=True)
    for order in (orders.guard(), orders.suspension("n1")):
        assert order is not None
        for moment in (order.since_ms, order.until_ms):
            Timestamp().FromMilliseconds(moment)
