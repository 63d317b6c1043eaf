"""Whether HQ was there to hear: proofs that come close together, and gaps between them."""

from __future__ import annotations

import pytest

from hq.liveness.deadlines import Deadlines, LivenessTimes, RevisionKey
from hq.liveness.reachability import Reachability, SelfProbe
from serving.clock import ManualClock

KEY = RevisionKey("a", "r1")
FRESH_S = 5.5


class World:
    """A clock, deadlines, and proofs of freshness that the test gives."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.deadlines = Deadlines[RevisionKey](LivenessTimes())
        self.proven_at: float | None = None
        self.deaf = False
        self.presence = Reachability(
            self.deadlines,
            SelfProbe(LivenessTimes().timeout_s, lambda: ""),
            lambda: self.proven_at,
            lambda: self.deaf,
            fresh_s=FRESH_S,
        )

    def prove(self) -> None:
        self.proven_at = self.clock.now()

    def look(self) -> bool:
        return self.presence.look(self.clock.now())

    def pass_time(self, seconds: float) -> None:
        """Advance the clock, with a proof every 3 s and a look every second."""
        for n in range(round(seconds)):
            self.clock.advance(1)
            if n % 3 == 0:
                self.prove()
            assert self.look()

    def silence_s(self) -> float:
        silence_s = self.deadlines.silence_s(KEY, self.clock.now())
        assert silence_s is not None
        return silence_s


@pytest.fixture
def world() -> World:
    world = World()
    world.deadlines.record_contact(KEY, world.clock.now())
    return world


def test_nothing_is_judged_before_the_first_proof(world: World) -> None:
    for _ in range(100):
        world.clock.advance(100)
        assert not world.look()
    world.prove()
    assert world.look()
    assert world.presence.gaps == 0


def test_regular_proofs_are_no_gap(world: World) -> None:
    world.prove()
    world.pass_time(3_600)
    assert world.presence.gaps == 0
    assert world.silence_s() == pytest.approx(3_600)


def test_a_gap_lasts_from_the_last_proof_to_the_look_that_finds_a_new_one(world: World) -> None:
    world.prove()
    world.pass_time(100)  # the last proof is as old as the look
    looks = []
    for _ in range(60):
        world.clock.advance(1)
        looks.append(world.look())
    assert looks == [True] * 5 + [False] * 55
    world.prove()
    assert world.look()
    assert world.presence.gaps == 1
    assert world.silence_s() == pytest.approx(100)


def test_silence_does_not_grow_once_a_gap_is_noticed(world: World) -> None:
    world.prove()
    world.pass_time(100)
    world.clock.advance(1_000)
    assert not world.look()
    assert world.silence_s() == pytest.approx(100)


def test_a_process_pause_is_a_gap_whichever_check_runs_first(world: World) -> None:
    world.prove()
    world.pass_time(100)
    world.clock.advance(600)
    world.prove()
    assert world.look()
    assert world.presence.gaps == 1
    assert world.silence_s() == pytest.approx(100)


def test_a_slow_sweep_is_no_gap_while_proofs_keep_coming(world: World) -> None:
    world.prove()
    world.look()
    for _ in range(4):
        world.clock.advance(3)
        world.prove()
        world.look()
    world.clock.advance(4)
    assert world.look()
    assert world.presence.gaps == 0


def test_a_fence_that_took_long_inside_a_sweep_is_a_gap_only_if_proofs_are_far_apart(world: World) -> None:
    world.prove()
    world.look()
    world.clock.advance(4)
    world.prove()  # was sent now, and comes back in 4 s
    world.clock.advance(4)
    assert world.look()
    assert world.presence.gaps == 0
    world.clock.advance(9)
    world.prove()
    assert world.look()
    assert world.presence.gaps == 1


def test_an_outage_with_flickering_proofs_is_one_gap_for_each_break(world: World) -> None:
    world.prove()
    world.pass_time(10)
    for n in range(1, 5):
        world.clock.advance(10)
        assert not world.look()
        world.prove()
        assert world.look()
        assert world.presence.gaps == n
    assert world.silence_s() == pytest.approx(10)


def test_a_new_start_gives_a_full_timeout_and_forgets_the_gap_before_it(world: World) -> None:
    world.prove()
    world.pass_time(10)
    world.clock.advance(100)
    assert not world.look()
    world.proven_at = None
    assert not world.look()
    world.clock.advance(100)
    world.prove()
    assert world.look()
    assert world.presence.gaps == 0


def test_while_reports_cannot_be_stored_hq_is_away_even_with_fresh_memory(world: World) -> None:
    world.prove()
    world.pass_time(100)
    world.deaf = True
    for _ in range(20):
        world.clock.advance(1)
        world.prove()
        assert not world.look()
    world.deaf = False
    assert world.look()
    assert world.presence.gaps == 1
    assert 99 <= world.silence_s() <= 101


def test_a_pause_of_the_process_does_not_use_up_what_a_shut_door_may_excuse(world: World) -> None:
    door = world.presence.door
    door.probed_at = world.clock.now()
    world.prove()
    assert world.look()
    world.clock.advance(3600)
    assert not world.look()
    world.prove()
    assert not world.look()
    assert door.is_shut
    assert not door.is_spent
    door.probed_at = world.clock.now()
    assert world.look()
    assert world.silence_s() == 0
