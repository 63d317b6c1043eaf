"""What the description of snapshots and their states promises, sentence by sentence."""

from __future__ import annotations

import pytest

from control import Refused
from nanny.automaton.service_state import ServiceState
from nanny.automaton.states import Action, Current, SnapshotEvent, Target
from nanny.automaton.step import SnapshotAutomaton
from nanny.instances import instance_state
from nanny.records import kinds
from nanny.records.services import tuple_of
from nannyctl.output.services import show_instances
from nannypb.v1 import service_pb2 as pb
from tests.nanny.orders import SERVICE, Ordered, refused

C, T = Current, Target


class TestHead:
    def test_head_is_the_snapshot_that_edits_are_made_on_and_need_not_be_active(self) -> None:
        web = Ordered().add("a").activate("a").settle().add("b")
        assert web.record.head == "b"
        assert web.current("b") is None

    def test_a_new_snapshot_becomes_head(self) -> None:
        assert Ordered().add("a", "b").record.head == "b"

    def test_by_default_an_activated_snapshot_does_not_become_head(self) -> None:
        assert Ordered().add("a", "b").activate("a").record.head == "b"

    def test_with_the_flag_a_snapshot_becomes_head_when_its_activation_begins(self) -> None:
        web = Ordered(set_snapshot_as_current_upon_activation=True).add("a", "b").activate("a")
        assert web.record.head == "a"
        assert web.current("a") is C.GENERATING

    def test_the_same_content_again_is_the_old_snapshot_made_head(self) -> None:
        web = Ordered().add("a", "b", "a")
        assert web.record.head == "a"
        assert list(web.record.known) == ["b", "a"]

    def test_a_snapshot_over_another_head_than_its_author_saw_is_refused(self) -> None:
        web = Ordered().add("a", "b")
        with pytest.raises(Refused, match="HEAD is b, not a"):
            web.send(snapshot={"snapshot": {"id": "c", "parent": "a"}})


class TestTargetState:
    def test_destroyed_takes_the_snapshot_out_of_the_tuples(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).settle().target("a", T.DESTROYED).settle()
        assert web.current("a") is None
        assert web.wanted("a") is None

    def test_created_generates_the_configuration_if_it_was_not(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED)
        assert web.running == [("a", Action.GENERATE)]
        assert web.settle().current("a") is C.CREATED

    def test_created_tells_agents_that_the_prepared_files_are_not_needed(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).settle().target("a", T.CREATED)
        assert web.running == [("a", Action.REMOVE)]
        assert web.settle().current("a") is C.CREATED

    def test_prepared_includes_created(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED)
        assert web.running == [("a", Action.GENERATE)]
        web.ended("a", SnapshotEvent.DONE)
        assert web.running == [("a", Action.PREPARE)]
        assert web.settle().current("a") is C.PREPARED

    def test_one_snapshot_at_most_is_active_and_the_former_one_becomes_prepared(self) -> None:
        web = Ordered().add("a", "b").activate("a").settle().activate("b")
        assert web.wanted("a") is T.PREPARED
        assert web.wanted("b") is T.ACTIVE
        web.settle()
        assert (web.current("a"), web.current("b")) == (C.PREPARED, C.ACTIVE)


class TestCurrentState:
    def test_a_snapshot_is_generating_while_its_configuration_is_made(self) -> None:
        assert Ordered().add("a").target("a", T.CREATED).current("a") is C.GENERATING

    def test_only_one_snapshot_is_activating(self) -> None:
        web = Ordered().add("a", "b").activate("a").until("a", C.ACTIVATING).activate("b")
        assert web.current("a") is C.DEACTIVATE_PENDING
        assert web.until("b", C.ACTIVATING).running == [("b", Action.ACTIVATE)]

    def test_a_snapshot_is_deactivating_while_it_is_switched_off(self) -> None:
        assert Ordered().add("a").activate("a").settle().stop().current("a") is C.DEACTIVATING

    def test_one_snapshot_is_active_though_instances_of_several_may_run(self) -> None:
        web = Ordered().add("a", "b", "c").activate("a").settle()
        web.activate("b").until("b", C.ACTIVATING).ended("b", SnapshotEvent.FAILED)
        web.activate("c").until("c", C.ACTIVE)
        assert [web.current(one) for one in "abc"] == [C.DEACTIVATING, C.DEACTIVATING, C.ACTIVE]

    def test_a_snapshot_is_broken_when_its_roll_out_ended_badly(self) -> None:
        web = (
            Ordered()
            .add("a")
            .activate("a")
            .until("a", C.ACTIVATING)
            .ended("a", SnapshotEvent.FAILED, "web-1 is not ready")
        )
        assert web.current("a") is C.BROKEN
        assert tuple_of(web.record, "a").message == "web-1 is not ready"  # type: ignore[union-attr]
        assert web.state is ServiceState.BROKEN

    def test_a_snapshot_is_broken_when_another_one_was_activated_meanwhile(self) -> None:
        passed: list[tuple[str, str]] = []
        step = SnapshotAutomaton(passed=lambda snapshot, _, __, after: passed.append((snapshot, str(after))))
        web = Ordered().add("a", "b").activate("a").until("a", C.ACTIVATING).activate("b").until("b", C.ACTIVATING)
        step.end_action(web.service, "b", web.service.tuples["b"].action, SnapshotEvent.DONE)
        assert passed == [("b", "ACTIVE"), ("a", "BROKEN"), ("a", "DEACTIVATING")]

    def test_a_snapshot_is_preparing_and_then_prepared(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).until("a", C.PREPARING)
        assert web.ended("a", SnapshotEvent.DONE).current("a") is C.PREPARED

    def test_after_preparing_ended_badly_a_snapshot_is_partially_prepared_and_the_next_order_finishes_it(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).until("a", C.PREPARING).ended("a", SnapshotEvent.FAILED)
        assert web.current("a") is C.PARTIALLY_PREPARED
        assert web.target("a", T.PREPARED).settle().current("a") is C.PREPARED

    def test_cancelled_preparing_leaves_partially_prepared_and_activating_another_snapshot_cancels_none(
        self,
    ) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).until("a", C.PREPARING).target("a", T.CREATED)
        assert "nanny: a PREPARING -> PARTIALLY_PREPARED (cancelled)" in web.history()
        assert web.current("a") is C.REMOVING
        web = Ordered().add("a", "b").activate("a").until("a", C.PREPARING).activate("b")
        assert (web.current("a"), web.wanted("a")) == (C.PREPARING, T.PREPARED)
        assert web.settle().current("a") is C.PREPARED

    def test_removing_takes_a_snapshot_from_the_nodes(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).settle().target("a", T.CREATED)
        assert web.current("a") is C.REMOVING

    def test_destroying_takes_a_snapshot_out_of_hq(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED).settle().target("a", T.DESTROYED)
        assert web.current("a") is C.DESTROYING

    def test_after_generating_ended_badly_a_snapshot_is_partially_created_and_the_next_order_finishes_it(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED).ended("a", SnapshotEvent.FAILED)
        assert web.current("a") is C.PARTIALLY_CREATED
        assert web.target("a", T.CREATED).settle().current("a") is C.CREATED

    def test_a_created_snapshot_has_nothing_on_the_nodes(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED).settle()
        assert web.current("a") is C.CREATED
        assert web.state is ServiceState.OFFLINE

    def test_deactivate_pending_means_that_nothing_is_done_for_now(self) -> None:
        web = Ordered().add("a", "b").activate("a").settle().activate("b")
        assert web.current("a") is C.DEACTIVATE_PENDING
        assert [snapshot for snapshot, _ in web.running] == ["b"]

    def test_several_snapshots_may_be_deactivate_pending(self) -> None:
        web = Ordered().add("a", "b", "c").activate("a").settle()
        web.activate("b").until("b", C.ACTIVATING).activate("c")
        assert [web.current(one) for one in "ab"] == [C.DEACTIVATE_PENDING] * 2

    def test_after_the_activation_pending_snapshots_become_broken_and_are_deactivated(self) -> None:
        web = Ordered().add("a", "b").activate("a").settle().activate("b").until("b", C.ACTIVE)
        assert any("a DEACTIVATE_PENDING -> BROKEN" in line for line in web.history())
        assert web.running == [("a", Action.DEACTIVATE)]

    def test_destroyed_and_activation_must_be_cancelled_are_never_stored(self) -> None:
        web = Ordered().add("a", "b").activate("a").until("a", C.ACTIVATING).activate("b").settle()
        web.target("a", T.DESTROYED).settle()
        assert web.current("a") is None
        assert any("ACTIVATION_MUST_BE_CANCELLED -> DEACTIVATE_PENDING" in line for line in web.history())


class TestManagingStates:
    def test_an_order_that_failed_is_given_again_with_the_same_target_even_destroyed(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).until("a", C.PREPARING).ended("a", SnapshotEvent.FAILED)
        assert web.target("a", T.PREPARED).current("a") is C.PREPARING
        web.settle().target("a", T.DESTROYED).ended("a", SnapshotEvent.FAILED)
        assert (web.current("a"), web.target("a", T.DESTROYED).current("a")) == (C.PARTIALLY_PREPARED, C.REMOVING)
        web.until("a", C.DESTROYING).ended("a", SnapshotEvent.FAILED)
        assert (web.current("a"), web.target("a", T.DESTROYED).current("a")) == (C.PARTIALLY_CREATED, C.DESTROYING)
        assert web.settle().current("a") is None
        web.activate("a").until("a", C.ACTIVATING).ended("a", SnapshotEvent.FAILED)
        assert (web.current("a"), web.activate("a").current("a")) == (C.BROKEN, C.ACTIVATING)

    def test_the_active_snapshot_takes_no_lower_target(self) -> None:
        web = Ordered().add("a").activate("a").settle()
        for target in (T.DESTROYED, T.CREATED, T.PREPARED):
            why = refused(lambda target=target: web.target("a", target))
            assert "to change that, activate another snapshot or stop the service" in why
        assert web.current("a") is C.ACTIVE

    def test_another_snapshot_is_activated_explicitly(self) -> None:
        web = Ordered().add("a", "b").activate("a").settle()
        assert web.activate("b").settle().current("b") is C.ACTIVE

    def test_a_target_shows_who_set_it_when_and_the_ticket(self) -> None:
        web = Ordered().add("a").target("a", T.ACTIVE, author="bob", ticket="OPS-1", comment="release")
        told = tuple_of(web.record, "a").target_set  # type: ignore[union-attr]
        assert (told.author, told.ticket, told.comment) == ("bob", "OPS-1", "release")
        assert told.time.ToMilliseconds() == web.clock_ms

    def test_a_current_state_shows_since_when_it_is_and_which_action_works_on_it(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED)
        made = tuple_of(web.record, "a")
        assert made is not None
        assert (made.since_unix_ms, made.action) == (web.clock_ms, 1)
        prepared = tuple_of(web.until("a", C.PREPARED).record, "a")
        assert prepared is not None
        assert prepared.since_unix_ms > made.since_unix_ms
        assert not web.running

    def test_a_snapshot_without_a_state_has_neither_a_current_state_nor_a_target(self) -> None:
        web = Ordered().add("a").activate("a").settle().add("b")
        assert web.record.head == "b"
        assert (web.current("b"), web.wanted("b")) == (None, None)

    def test_an_order_that_is_void_waits_in_the_queue_and_says_so_only_when_its_turn_comes(self) -> None:
        web = Ordered().add("a", "b").activate("a").settle().activate("b").settle()
        assert "stop" in refused(lambda: web.target("b", T.PREPARED))
        assert web.current("b") is C.ACTIVE

    def test_a_target_of_an_unknown_snapshot_is_refused(self) -> None:
        assert "no snapshot x" in refused(lambda: Ordered().activate("x"))

    def test_a_snapshot_without_a_state_cannot_be_destroyed(self) -> None:
        assert "no state" in refused(lambda: Ordered().add("a").target("a", T.DESTROYED))

    def test_the_snapshots_state_does_not_follow_its_instances(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).settle().instance("a", "web-1", T.ACTIVE)
        assert web.current("a") is C.PREPARED

    def test_a_roll_out_or_roll_back_wipes_the_targets_of_instances(self) -> None:
        web = Ordered().add("a", "b").activate("a").settle().instance("a", "web-1", T.PREPARED)
        web.activate("b").settle()
        stored = web.change.kept[kinds.INSTANCE_TARGET.name, kinds.of_instance(SERVICE, ("sas", "web-1"))]
        assert web.service.tuples["a"].overrides != stored.overrides

    def test_activating_the_active_snapshot_again_wipes_the_targets_of_instances_too(self) -> None:
        web = Ordered().add("a").activate("a").settle().instance("a", "web-1", T.PREPARED).activate("a")
        assert web.running == [("a", Action.ACTIVATE)]
        assert not web.service.tuples["a"].overrides

    def test_an_instance_takes_no_target_while_its_snapshot_is_worked_on(self) -> None:
        web = Ordered().add("a").activate("a").until("a", C.ACTIVATING)
        assert "ACTIVATING" in refused(lambda: web.instance("a", "web-1", T.ACTIVE))


class TestYpLite:
    def test_without_the_flag_instances_get_no_configuration_before_preparing(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED).settle()
        assert not web.service.tuples["a"].fill

    def test_with_the_fill_flag_instances_get_the_configuration_before_preparing(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED, fill=True)
        assert web.service.tuples["a"].fill
        assert web.running == [("a", Action.GENERATE)]

    def test_an_instance_without_configuration_takes_no_target_until_preparing_or_activating_brought_it(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED).settle()
        assert refused(lambda: web.instance("a", "web-0", T.ACTIVE))
        web.target("a", T.PREPARED).settle().instance("a", "web-0", T.ACTIVE)

    def test_an_instance_without_configuration_is_shown_with_state_and_target_unknown(self) -> None:
        assert instance_state(None, None).old == "UNKNOWN"
        answer = pb.ListInstancesResponse(instance=[pb.InstanceRow(id="web-0", state="UNKNOWN", state_name="Unknown")])
        assert show_instances(answer).splitlines()[1].split() == ["web-0", "Unknown", "UNKNOWN", "no"]

    def test_the_fill_flag_may_come_with_a_later_order(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED).settle().target("a", T.CREATED, fill=True)
        assert web.running == [("a", Action.GENERATE)]
        assert web.settle().current("a") is C.CREATED
