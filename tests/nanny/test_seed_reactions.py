"""What pausing, stopping, rolling back and forgetting promise, sentence by sentence."""

from __future__ import annotations

from nanny.automaton.service_state import ServiceState
from nanny.automaton.states import Action, Current, SnapshotEvent, Target
from nanny.records import kinds
from tests.nanny.orders import SERVICE, Ordered, refused

C, T = Current, Target


class TestReactionsToEvents:
    def test_a_paused_service_handles_events_and_does_nothing(self) -> None:
        web = Ordered().add("a").pause().activate("a")
        assert web.current("a") is C.GENERATING
        assert web.running == []

    def test_after_resume_a_service_goes_on(self) -> None:
        web = Ordered().add("a").pause().activate("a").pause(paused=False)
        assert web.running == [("a", Action.GENERATE)]

    def test_a_paused_service_cannot_be_deleted(self) -> None:
        """An owner lifted a manager's pause by deleting the service and creating it again."""
        web = Ordered().pause()
        assert "is paused by ann" in refused(lambda: web.send(deleted=True))
        web.pause(paused=False).send(deleted=True)

    def test_who_paused_when_and_why_stands_beside_the_state(self) -> None:
        paused = Ordered().add("a").pause().record.paused
        assert (paused.author, paused.comment) == ("ann", "looking")

    def test_an_order_that_another_one_overtook_is_refused_when_its_turn_comes(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED).settle().target("a", T.DESTROYED).settle()
        assert "no state" in refused(lambda: web.target("a", T.DESTROYED))

    def test_an_outcome_of_a_superseded_action_changes_nothing(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).until("a", C.PREPARING)
        number = web.service.tuples["a"].action
        web.target("a", T.CREATED)
        end = {"snapshot_id": "a", "number": number, "outcome": 1}
        assert "is over" in refused(lambda: web.send(ended=end))
        assert web.current("a") is C.REMOVING


class TestStoppingAService:
    def test_the_active_snapshot_gets_the_target_prepared(self) -> None:
        web = Ordered().add("a").activate("a").settle().stop()
        assert web.wanted("a") is T.PREPARED
        assert web.settle().current("a") is C.PREPARED
        assert web.state is ServiceState.OFFLINE

    def test_everything_that_is_active_is_deactivated(self) -> None:
        web = Ordered().add("a", "b").activate("a").settle().activate("b").until("b", C.ACTIVATING).stop()
        assert [web.current(one) for one in "ab"] == [C.DEACTIVATING] * 2

    def test_actions_on_these_snapshots_are_cancelled(self) -> None:
        web = Ordered().add("a").activate("a").until("a", C.ACTIVATING)
        before = web.service.tuples["a"].action
        assert web.stop().service.tuples["a"].action != before
        assert web.running == [("a", Action.DEACTIVATE)]

    def test_instances_that_run_by_targets_of_their_own_are_deactivated_too(self) -> None:
        web = Ordered().add("a").target("a", T.PREPARED).settle().instance("a", "web-1", T.ACTIVE)
        assert web.state is ServiceState.ONLINE
        assert web.stop().running == [("a", Action.DEACTIVATE)]

    def test_a_target_of_one_instance_breaks_no_service(self) -> None:
        web = Ordered().add("a", "b").activate("b").settle()
        assert web.target("a", T.PREPARED).settle().instance("a", "web-1", T.ACTIVE).state is ServiceState.ONLINE

    def test_an_offline_service_cannot_be_stopped(self) -> None:
        assert "Offline" in refused(lambda: Ordered().add("a").stop())


class TestRollBackByPolicy:
    def ordered(self) -> Ordered:
        web = Ordered(rollout={"roll_back": True}).add("a", "b").activate("a").settle()
        return web.activate("b").until("b", C.ACTIVATING)

    def test_a_failed_roll_out_goes_back_to_the_snapshot_that_reached_active_last(self) -> None:
        web = self.ordered().ended("b", SnapshotEvent.FAILED)
        assert (web.wanted("a"), web.current("a")) == (T.ACTIVE, C.ACTIVATING)
        web.settle()
        assert (web.current("a"), web.current("b")) == (C.ACTIVE, C.PREPARED)

    def test_a_roll_back_that_fails_is_not_rolled_back(self) -> None:
        web = self.ordered().ended("b", SnapshotEvent.FAILED).ended("a", SnapshotEvent.FAILED)
        assert web.current("a") is C.BROKEN
        assert web.running == []

    def test_after_a_stop_there_is_nothing_to_go_back_to(self) -> None:
        web = self.ordered().stop().settle().activate("b").until("b", C.ACTIVATING).ended("b", SnapshotEvent.FAILED)
        assert web.current("b") is C.BROKEN
        assert web.running == []


class TestBounds:
    def test_history_and_snapshots_are_bounded_and_a_snapshot_in_use_stays(self) -> None:
        web = Ordered().add("used").activate("used").settle()
        web.add(*[f"s{n}" for n in range(300)])
        assert len(web.record.known) <= 201
        assert "used" in web.record.known
        assert len(web.history()) == 300
        assert (kinds.SNAPSHOT.name, kinds.of_snapshot(SERVICE, "s0")) not in web.change.kept

    def test_a_service_whose_snapshots_have_states_is_not_forgotten(self) -> None:
        web = Ordered().add("a").target("a", T.CREATED).settle()
        assert "still has snapshots with a state (a" in refused(lambda: web.send(deleted=True))
        web.target("a", T.DESTROYED).settle().send(deleted=True)
        assert not web.change.kept
