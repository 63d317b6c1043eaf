"""Mass absences wait for a confirmation or ten minutes, also across a restart; single ones do not wait."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from instancectl.node.absences import AbsenceGate

NewGate = Callable[[], AbsenceGate]


class Scene:
    """Ten supervised instances, those that HQ lists, and the time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.supervised = {f"i-{number}" for number in range(10)}
        self.listed: set[str] | None = set(self.supervised)
        self.now = 1000.0

    def gate(self) -> AbsenceGate:
        return AbsenceGate(self.path, lambda: self.supervised, lambda: self.listed, lambda: self.now)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "absences.json")


def test_a_single_absence_counts_at_once(scene: Scene) -> None:
    gate = scene.gate()
    scene.listed = scene.supervised - {"i-1"}
    assert gate.admit("i-1") == ""


def test_a_fifth_may_be_absent_at_once_and_further_absences_wait(scene: Scene) -> None:
    gate = scene.gate()
    scene.listed = scene.supervised - {"i-1", "i-2"}
    assert [gate.admit("i-1"), gate.admit("i-2")] == ["", ""]
    scene.listed -= {"i-3"}
    assert "run instancectl confirm" in gate.admit("i-3")
    assert gate.held == ["i-3"]


def test_instances_that_vanish_together_all_wait(scene: Scene) -> None:
    gate = scene.gate()
    scene.listed = set()
    assert all(gate.admit(each) for each in sorted(scene.supervised))
    assert len(gate.held) == 10


def test_before_the_first_list_no_instance_ends(scene: Scene) -> None:
    scene.listed = None
    gate = scene.gate()
    assert gate.admit("i-1")
    scene.listed = scene.supervised - {"i-1"}
    assert gate.admit("i-1") == ""


def test_absent_instances_end_after_ten_minutes_or_a_confirmation(scene: Scene) -> None:
    gate = scene.gate()
    scene.listed = set()
    for each in ("i-1", "i-2", "i-3"):
        assert gate.admit(each)
    scene.now += 599
    assert gate.admit("i-1")
    gate.confirm()
    assert gate.admit("i-1") == ""
    scene.now += 61
    assert gate.admit("i-2") == ""
    assert gate.admit("i-4")  # it was asked about only now


def test_a_restart_of_the_agent_does_not_restart_the_wait(scene: Scene) -> None:
    scene.listed = set()
    for each in ("i-1", "i-2", "i-3"):
        assert scene.gate().admit(each)
    scene.now += 601
    assert scene.gate().admit("i-1") == ""


def test_an_instance_that_comes_back_is_no_longer_held(scene: Scene) -> None:
    scene.listed = set()
    gate = scene.gate()
    assert gate.admit("i-1")
    scene.listed = set(scene.supervised)
    gate.note_presence("i-1")
    assert gate.held == []
    scene.now += 601
    scene.listed = set()
    assert gate.admit("i-1")
