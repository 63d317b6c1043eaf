"""Where an instance stands on the way to a revision, from what HQ wants and what its agent says."""

from __future__ import annotations

import pytest

from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import Condition, Instance, RevisionStatus
from nanny.actions.reports import is_settled, is_silent, stage_of
from nanny.rollout.views import Stage
from nanny.snapshots.wanted import INSTALLED, READY

TRUE, FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE


def instance(wanted: str, ready: str, *, seen: bool = True, reason: str = "Ready") -> Instance:
    """Revisions `old`, `new` and `other` are there; one is wanted READY, one is ready (empty: none)."""
    made = Instance()
    made.meta.id, made.meta.version = "web-1", 10
    for name in ("old", "new", "other"):
        made.spec.revision.add(id=name, target=READY if name == wanted else INSTALLED)
        status = RevisionStatus(id=name, spec_version=10 if seen else 9)
        status.installed.status = TRUE
        status.ready.CopyFrom(Condition(status=TRUE if name == ready else FALSE, reason=reason))
        made.status.revision.append(status)
    made.status.ready.status = TRUE if ready else FALSE
    made.status.agent.status = FALSE if reason == "HeartbeatTimeout" else TRUE
    return made


@pytest.mark.parametrize(
    ("wanted", "ready", "seen", "ready_s", "stage"),
    [
        ("new", "new", True, 20.0, Stage.DONE),
        ("new", "new", True, 5.0, Stage.SETTLING),
        ("new", "new", False, 20.0, Stage.SETTLING),
        ("new", "", True, -1.0, Stage.UNDER_WAY),
        ("new", "", False, -1.0, Stage.UNHEARD),
        ("new", "old", False, -1.0, Stage.UNTOUCHED),
        ("new", "old", True, -1.0, Stage.UNDER_WAY),
        ("old", "old", True, -1.0, Stage.UP),
        ("old", "", True, -1.0, Stage.DOWN),
        ("other", "old", False, -1.0, Stage.LEAVING),
        ("other", "old", True, -1.0, Stage.LEAVING),
        ("old", "old", False, -1.0, Stage.UNSEEN),
        ("", "old", True, -1.0, Stage.UP),
    ],
)
def test_the_stage_of_an_instance_follows_from_target_and_report(
    wanted: str, ready: str, seen: bool, ready_s: float, stage: Stage
) -> None:
    assert stage_of(instance(wanted, ready, seen=seen), "new", ready_s, 10.0) is stage


def test_an_instance_that_nobody_has_heard_of_is_silent() -> None:
    assert is_silent(Instance())
    assert is_silent(instance("old", "", reason="HeartbeatTimeout"))
    assert stage_of(instance("old", "", reason="HeartbeatTimeout"), "new", -1.0, 10.0) is Stage.SILENT
    assert stage_of(instance("new", "", seen=False, reason="HeartbeatTimeout"), "new", -1.0, 10.0) is Stage.LOST
    assert stage_of(instance("new", "", reason="HeartbeatTimeout"), "new", -1.0, 10.0) is Stage.GONE


@pytest.mark.parametrize("begun", [Condition(), Condition(status=FALSE, reason="NeverReported")])
def test_an_instance_that_has_never_reported_is_waited_for_and_can_fail(begun: Condition) -> None:
    for wanted, stage in (("new", Stage.UNDER_WAY), ("old", Stage.UNPREPARED)):
        made = instance(wanted, "")
        del made.status.revision[:]
        made.status.agent.CopyFrom(begun)
        assert stage_of(made, "new", -1.0, 10.0) is stage


def test_an_instance_without_the_new_files_comes_last_unless_another_revision_is_on_its_way() -> None:
    for wanted, ready, seen, stage in (
        ("old", "old", True, Stage.UNPREPARED),
        ("old", "", True, Stage.UNPREPARED),
        ("other", "old", True, Stage.LEAVING),
        ("old", "old", False, Stage.UNSEEN),
    ):
        made = instance(wanted, ready, seen=seen)
        made.status.revision[1].installed.status = FALSE
        assert stage_of(made, "new", -1.0, 10.0) is stage


def test_the_last_word_of_a_revision_does_not_make_an_instance_heard() -> None:
    made = instance("old", "", reason="NotWantedReady")
    assert not is_silent(made)
    made.status.agent.status = FALSE
    assert is_silent(made)
    assert stage_of(made, "new", -1.0, 10.0) is Stage.SILENT


def test_if_hq_says_nothing_of_agents_an_instance_that_has_reported_is_not_silent() -> None:
    made = instance("old", "", reason="HeartbeatTimeout")
    made.status.ClearField("agent")
    assert not is_silent(made)


def test_an_instance_is_settled_once_its_agent_has_nothing_left_to_do() -> None:
    assert is_settled(instance("new", "new"))
    assert is_settled(instance("new", ""))
    assert not is_settled(instance("new", "old"))
    assert not is_settled(instance("new", "new", seen=False))
