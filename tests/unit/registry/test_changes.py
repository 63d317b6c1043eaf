"""The instance that results from a write, computed without a store."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from hq.registry import changes
from hq.validation import check_instance_update
from hqpb.v1 import instance_pb2 as model
from serving.errors import InvalidRequest, NotFound
from tests.support.sample_instances import INSTALLED, READY, instance

WALL_MS = 1_700_000_000_000


def draft_of(made: model.Instance) -> changes.InstanceDraft:
    return changes.new_draft(made, uid=7, cluster="test", wall_ms=WALL_MS)


def with_secret(made: model.Instance, revision: int = 0, name: str = "pw") -> model.Instance:
    made.spec.revision[revision].secret.add(name=name, provider="vault", id=name, environment_variable="PW")
    return made


def test_a_new_instance_bears_uid_cluster_and_times() -> None:
    draft = draft_of(instance("a-1"))
    assert (draft.meta.uid, draft.meta.cluster) == (7, "test")
    assert draft.meta.creation_time.ToMilliseconds() == WALL_MS


def test_descriptors_leave_the_spec_and_only_their_number_stays() -> None:
    draft = draft_of(with_secret(instance("a-1")))
    assert not draft.spec.revision[0].secret
    assert draft.spec.revision[0].secret_count == 1
    assert list(draft.secrets) == ["r1"]


def test_without_a_mask_absent_descriptors_mean_unchanged() -> None:
    old = draft_of(with_secret(instance("a-1")))
    new = changes.updated_draft(old, instance("a-1", text="new"), None)
    assert new.secrets == old.secrets
    assert new.spec.revision[0].secret_count == 1


@pytest.mark.parametrize("mask", [["spec.revision", "spec.revision.secret"], ["*"], ["spec.revision.secret"]])
def test_descriptors_are_cleared_only_with_a_mask(mask: list[str]) -> None:
    new = changes.updated_draft(draft_of(with_secret(instance("a-1"))), instance("a-1"), mask)
    assert not new.secrets
    assert new.spec.revision[0].secret_count == 0


def test_a_mask_that_names_the_whole_spec_does_not_clear_descriptors() -> None:
    old = draft_of(with_secret(instance("a-1")))
    assert changes.updated_draft(old, instance("a-1"), ["spec"]).secrets == old.secrets


def test_without_a_mask_an_absent_allocation_stays_and_a_given_one_replaces() -> None:
    made = instance("a-1")
    made.spec.allocation.cpu_millicores = 500
    old = draft_of(made)
    assert changes.updated_draft(old, instance("a-1"), None).spec.allocation.cpu_millicores == 500
    given = instance("a-1", node="node-2")
    given.spec.allocation.memory_bytes = 1
    new = changes.updated_draft(old, given, None)
    assert (new.spec.allocation.cpu_millicores, new.spec.allocation.memory_bytes) == (0, 1)
    assert new.spec.node_name == "node-2"


def test_a_star_replaces_everything_and_clears_absent_fields() -> None:
    made = instance("a-1")
    made.spec.allocation.cpu_millicores = 500
    bare = model.Instance()
    bare.meta.id = bare.meta.service_id = "a-1"
    new = changes.updated_draft(draft_of(made), bare, ["*"])
    assert not new.spec.HasField("allocation")
    assert not new.spec.node_name
    assert not new.spec.revision


def test_a_mask_of_the_node_changes_nothing_else() -> None:
    old = draft_of(instance("a-1", text="kept"))
    given = model.Instance()
    given.spec.node_name = "node-9"
    new = changes.updated_draft(old, given, ["spec.node_name"])
    assert new.spec.node_name == "node-9"
    assert new.meta == old.meta
    assert new.spec.revision == old.spec.revision


def test_a_mask_with_a_read_only_field_is_refused_with_its_path() -> None:
    with pytest.raises(InvalidRequest, match=r"update_mask: 'meta\.uid' cannot be written"):
        changes.updated_draft(draft_of(instance("a-1")), instance("a-1"), ["meta.uid"])


def test_unknown_fields_survive_an_update_of_something_else() -> None:
    newer = instance("a-1").spec.SerializeToString() + bytes.fromhex("ba3e03616263")  # field 999: "abc"
    made = instance("a-1")
    made.spec.ParseFromString(newer)
    new = changes.updated_draft(draft_of(made), instance("a-1", text="new"), None)
    assert bytes.fromhex("ba3e03616263") in new.spec.SerializeToString()


def test_a_revision_wanted_ready_turns_the_other_to_installed() -> None:
    old = draft_of(instance("a-1", revisions=("r1", "r2")))
    new = changes.with_revision(old, model.InstanceRevision(id="r3", target=READY), clear_secrets=False)
    assert [(r.id, r.target) for r in new.spec.revision] == [("r1", INSTALLED), ("r2", INSTALLED), ("r3", READY)]
    assert [(r.id, r.target) for r in old.spec.revision] == [("r1", READY), ("r2", INSTALLED)]


def test_a_replaced_revision_keeps_its_place_and_its_descriptors() -> None:
    old = draft_of(with_secret(instance("a-1", revisions=("r1", "r2"))))
    new = changes.with_revision(old, model.InstanceRevision(id="r1", target=INSTALLED), clear_secrets=False)
    assert new.revision_ids() == ["r1", "r2"]
    assert new.secrets == old.secrets
    cleared = changes.with_revision(old, model.InstanceRevision(id="r1"), clear_secrets=True)
    assert not cleared.secrets


def test_clearing_one_revisions_descriptors_leaves_the_others() -> None:
    made = with_secret(with_secret(instance("a-1", revisions=("r1", "r2"))), 1)
    new = changes.with_revision(draft_of(made), model.InstanceRevision(id="r1"), clear_secrets=True)
    assert list(new.secrets) == ["r2"]


def test_a_dropped_revision_takes_its_descriptors_along() -> None:
    old = draft_of(with_secret(instance("a-1", revisions=("r1", "r2"))))
    new = changes.without_revision(old, "r1")
    assert (new.revision_ids(), new.secrets) == (["r2"], {})
    with pytest.raises(NotFound, match="no revision r9"):
        changes.without_revision(old, "r9")


def test_secrets_come_back_as_they_were_stored() -> None:
    secrets = draft_of(with_secret(instance("a-1"))).secrets
    assert changes.secrets_of(changes.encode_secrets(secrets, write_id=3)) == secrets
    assert changes.encode_secrets({}, write_id=3) == b""


@pytest.mark.parametrize("mask", [None, ["*"]], ids=["what is given", "everything"])
def test_an_update_brings_each_field_of_a_spec(mask: list[str] | None) -> None:
    given = model.Instance()
    fill(given.spec)
    updated = changes.updated_draft(draft_of(model.Instance()), given, mask)
    assert names_of(updated.spec) == names_of(given.spec) == {field.name for field in given.spec.DESCRIPTOR.fields}


def fill(message: Message) -> None:
    """Give each field a value, so that it is present."""
    for field in message.DESCRIPTOR.fields:
        held = getattr(message, field.name)
        if field.is_repeated:
            held.add()
        elif field.message_type:
            held.SetInParent()
        else:
            setattr(message, field.name, type(held)(1))


def names_of(message: Message) -> set[str]:
    return {field.name for field, _ in message.ListFields()}


def test_a_weight_is_set_and_cleared_by_its_mask_and_kept_without_one() -> None:
    given = model.Instance(spec=model.InstanceSpec(weight=0))
    old = draft_of(instance("a-1"))
    resting = changes.updated_draft(old, given, ["spec.weight"])
    assert resting.spec.HasField("weight")
    assert resting.spec.weight == 0
    assert resting.spec.revision == old.spec.revision
    kept = changes.updated_draft(resting, instance("a-1", text="new"), None)
    assert kept.spec.HasField("weight")
    assert not changes.updated_draft(resting, model.Instance(), ["spec.weight"]).spec.HasField("weight")


def test_a_weight_of_more_than_a_thousand_is_refused() -> None:
    made = instance("a-1")
    made.spec.weight = 1_000
    check_instance_update(made)
    made.spec.weight = 1_001
    with pytest.raises(InvalidRequest, match=r"spec\.weight: 1001 is out of range: use 0 to 1000"):
        check_instance_update(made)
