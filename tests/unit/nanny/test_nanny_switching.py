"""activate and rollback: which revision, and what changes."""

from __future__ import annotations

import pytest

from descriptions.desired import ready_of
from descriptions.held import held_instance
from hqpb.v1 import instance_pb2 as model
from nannyctl.plans.plan import PlannedKind
from nannyctl.plans.switching import CannotRollBack, SwitchIntent, previous

READY, INSTALLED = model.REVISION_TARGET_READY, model.REVISION_TARGET_INSTALLED


def instance(*revisions: str, ready: str = "") -> model.Instance:
    made = model.Instance()
    made.meta.id, made.meta.version = "web-1", 7
    for revision in revisions:
        made.spec.revision.add(id=revision, target=READY if revision == ready else INSTALLED)
    return made


def test_a_switch_changes_two_targets_and_nothing_else() -> None:
    before = instance("v0", "v1", "v2", ready="v2")
    before.spec.revision[0].target = model.REVISION_TARGET_UNSPECIFIED
    before.spec.revision[1].MergeFromString(b"\xfa\x7f\x05later")
    action = SwitchIntent("v1").action("web-1", held_instance(before, "e1"))
    assert action.after is not None
    assert ready_of(action.after) == "v1"
    assert [change.field for change in action.changes] == ["spec.revision[v1].target", "spec.revision[v2].target"]
    for revision, target in zip(action.after.spec.revision, (0, INSTALLED, READY), strict=True):
        revision.target = target  # type: ignore[assignment]
    assert action.after.SerializeToString() == before.SerializeToString()


def test_what_is_ready_already_is_left_alone() -> None:
    assert (
        SwitchIntent("v1").action("web-1", held_instance(instance("v1", ready="v1"), "e1")).kind
        is PlannedKind.UNCHANGED
    )


def test_a_revision_that_was_never_uploaded_is_refused() -> None:
    action = SwitchIntent("v9").action("web-1", held_instance(instance("v1", ready="v1"), "e1"))
    assert (action.kind, action.note) == (PlannedKind.REFUSED, "has no revision v9: upload it first")


def test_rollback_goes_to_the_revision_added_before() -> None:
    switch = previous([instance("v0", "v1", "v2", ready="v2")] * 3)
    assert (switch.to, switch.only_from) == ("v1", "v2")


def test_a_rollback_that_was_broken_off_is_finished_and_not_repeated() -> None:
    halfway = [instance("v0", "v1", "v2", ready="v1"), instance("v0", "v1", "v2", ready="v2")]
    switch = previous(halfway)
    assert (switch.to, switch.only_from) == ("v1", "v2")
    kinds = [switch.action("web-1", held_instance(one, "e1")).kind for one in halfway]
    assert kinds == [PlannedKind.UNCHANGED, PlannedKind.UPDATE]


def test_a_half_finished_upload_is_rolled_back() -> None:
    switch = previous([instance("v1", ready="v1"), instance("v1", "v2", ready="v2")])
    assert (switch.to, switch.only_from) == ("v1", "v2")


def test_without_a_revision_before_there_is_no_rollback() -> None:
    with pytest.raises(CannotRollBack, match="no revision was added before v1: choose one with --to"):
        previous([instance("v1", ready="v1")])


def test_instances_that_disagree_are_not_guessed_about() -> None:
    with pytest.raises(CannotRollBack, match="differs between instances"):
        previous([instance("a", "v2", ready="v2"), instance("b", "v2", ready="v2")])
    with pytest.raises(CannotRollBack, match="are both READY"):
        previous([instance("a", ready="a"), instance("b", ready="b")])


def test_from_keeps_to_the_instances_that_run_it() -> None:
    assert previous([instance("v1", "v2", ready="v1")] * 2 + [instance("v1", "v2", ready="v2")], "v2").to == "v1"
    with pytest.raises(CannotRollBack, match="v2 is not READY anywhere"):
        previous([instance("v1", "v2", ready="v1")], "v2")
