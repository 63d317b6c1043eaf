"""The door: while this replica is cut off from agents it excuses their silence, for at most one timeout."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hq.liveness.reachability import SelfProbe

TIMEOUT_S = 600.0


class Wall:
    """A door, and the reason for which heartbeats fail (empty: they do not)."""

    def __init__(self) -> None:
        self.now = 0.0
        self.failing = ""
        self.door = SelfProbe(TIMEOUT_S, lambda: self.failing)

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.now += 1
            self.door.look(self.now)

    def standing(self) -> str:
        return "shut" if self.door.is_shut else "spent" if self.door.is_spent else "open"


@pytest.fixture
def wall() -> Wall:
    return Wall()


def test_failing_heartbeats_shut_the_door_for_one_timeout(wall: Wall) -> None:
    wall.pass_time(10)
    assert wall.standing() == "open"
    wall.failing = "connection refused"
    wall.pass_time(599)
    assert wall.standing() == "shut"
    assert wall.door.why == "connection refused"
    wall.pass_time(2)
    assert wall.standing() == "spent"
    wall.failing = ""
    wall.pass_time(1)
    assert wall.standing() == "open"


def test_ten_seconds_without_a_probe_shut_the_door_unless_nobody_probes(wall: Wall) -> None:
    wall.pass_time(100)
    assert wall.standing() == "open"
    wall.door.probed_at = wall.now
    wall.pass_time(10)
    assert wall.standing() == "open"
    wall.pass_time(1)
    assert wall.standing() == "shut"
    assert "probe" in wall.door.why


def test_the_door_may_excuse_again_after_a_timeout_without_an_outage(wall: Wall) -> None:
    wall.failing = "refused"
    wall.pass_time(400)
    wall.failing = ""
    wall.pass_time(599)
    wall.failing = "refused"
    wall.pass_time(202)
    assert wall.standing() == "spent"
    wall.failing = ""
    wall.pass_time(602)
    wall.failing = "refused"
    wall.pass_time(590)
    assert wall.standing() == "shut"


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 500)), max_size=40))
def test_the_door_excuses_one_timeout_in_all_until_it_was_open_for_a_timeout(
    history: list[tuple[bool, int]],
) -> None:
    wall, excused_s, open_s = Wall(), 0.0, 0.0
    for fails, seconds in history:
        wall.failing = "refused" if fails else ""
        for _ in range(seconds):
            wall.pass_time(1)
            open_s = 0.0 if fails else open_s + 1
            excused_s = 0.0 if open_s > TIMEOUT_S else excused_s + wall.door.is_shut
            assert excused_s <= TIMEOUT_S
