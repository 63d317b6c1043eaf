"""What an upload decides to store, from a description and the stored instances."""

from __future__ import annotations

from typing import Any

import pytest

from descriptions.description import parse_description
from descriptions.held import HeldInstance, held_instance
from hq.registry import changes
from hqpb.v1 import instance_pb2 as model
from nannyctl.output.plans import plan_lines
from nannyctl.plans.diff import format_value
from nannyctl.plans.plan import PlannedAction, PlannedKind, make_plan, way_of
from nannyctl.plans.upload_intent import UploadIntent
from nannyctl.sending.writing import DEPLOYED, SCHEDULED, SECRETS, YOUNGER, fields_to_send, instance_to_send

READY, INSTALLED = model.REVISION_TARGET_READY, model.REVISION_TARGET_INSTALLED
SECRET = {"name": "key", "provider": "vault", "id": "web/key", "environmentVariable": "KEY"}


def described(prune: bool = False, **value: Any) -> UploadIntent:
    faults: list[str] = []
    whole = {"service": "web", "instances": [{"id": "web-1"}], **value}
    description = parse_description(whole, "web.yaml", faults)
    assert not faults
    return UploadIntent(description, description.placements, prune=prune)


def stored(*revisions: str, ready: str = "", node: str = "n1", secrets: int = 0) -> model.Instance:
    """An instance as HQ would return it."""
    instance = model.Instance()
    instance.meta.id, instance.meta.service_id, instance.meta.version, instance.meta.uid = "web-1", "web", 7, 99
    instance.spec.node_name = node
    for revision in revisions:
        made = instance.spec.revision.add(id=revision, target=READY if revision == ready else INSTALLED)
        made.secret_count = secrets
    return instance


def decide(intent: UploadIntent, instance: model.Instance | None) -> PlannedAction:
    return intent.action("web-1", None if instance is None else held_instance(instance, "e1"))


def targets(action: PlannedAction) -> dict[str, str]:
    assert action.after is not None
    return {r.id: "READY" if r.target == READY else "INSTALLED" for r in action.after.spec.revision}


def test_a_missing_instance_is_created() -> None:
    action = decide(described(revisions=[{"id": "v1"}, {"id": "v2"}], ready="v2"), None)
    assert (action.kind, targets(action)) == (PlannedKind.CREATE, {"v1": "INSTALLED", "v2": "READY"})


def test_a_new_revision_runs_and_the_old_one_stays_installed() -> None:
    action = decide(described(revisions=[{"id": "v2"}], ready="v2"), stored("v1", ready="v1"))
    assert (action.kind, targets(action)) == (PlannedKind.UPDATE, {"v1": "INSTALLED", "v2": "READY"})
    assert action.after is not None
    assert action.after.meta.version == 7


def test_without_a_revision_to_make_ready_targets_stay() -> None:
    action = decide(described(revisions=[{"id": "v2"}]), stored("v1", ready="v1"))
    assert targets(action) == {"v1": "READY", "v2": "INSTALLED"}


def test_the_times_of_a_service_are_set_kept_and_cleared() -> None:
    times = {"reportInterval": "20s", "timeout": "60s"}
    given = decide(described(liveness=times), stored("v1", ready="v1")).after
    assert given is not None
    assert (given.spec.liveness.report_interval.seconds, given.spec.liveness.timeout.seconds) == (20, 60)
    assert decide(described(liveness=times), given).kind is PlannedKind.UNCHANGED
    assert decide(described(), given).kind is PlannedKind.UNCHANGED
    cleared = decide(described(liveness={}), given).after
    assert cleared is not None
    assert not cleared.spec.HasField("liveness")


@pytest.mark.parametrize(
    ("all_have", "own", "weight"),
    [(None, None, 70), (10, None, 10), (0, None, 0), (10, 100, 100), ({"sas": 20}, None, 20), ({"sas": 20}, 0, 0)],
)
def test_a_weight_comes_from_the_instance_its_installation_its_service_or_stays(
    all_have: Any, own: int | None, weight: int
) -> None:
    before = stored("v1", ready="v1")
    before.spec.weight = 70
    placement = {"id": before.meta.id, "installation": "sas", **({} if own is None else {"weight": own})}
    more = {} if all_have is None else {"weight": all_have}
    described_now = described(instances=[placement], **more)
    after = decide(described_now, before).after or before
    assert after.spec.weight == weight
    assert decide(described_now, after).kind is PlannedKind.UNCHANGED


def test_only_revisions_that_are_named_are_dropped() -> None:
    before = stored("v0", "v1", "v2", ready="v2")
    assert targets(decide(described(ready="v2", drop=["v0", "v9"]), before)) == {"v1": "INSTALLED", "v2": "READY"}


def test_drop_others_drops_all_revisions_that_are_not_named() -> None:
    before = stored("a", "b", "v1", "v2", ready="v2")
    assert targets(decide(described(ready="v2", installed=["v1"], drop="others"), before)) == {
        "v1": "INSTALLED",
        "v2": "READY",
    }


def test_an_instance_that_is_as_described_is_left_alone() -> None:
    intent = described(revisions=[{"id": "v1"}], ready="v1", labels={"tier": "front"})
    after = decide(intent, stored()).after
    assert after is not None
    assert decide(intent, after).kind is PlannedKind.UNCHANGED


def test_labels_set_by_others_stay_and_null_removes_one() -> None:
    before = stored()
    before.meta.labels.update({"theirs": "1", "old": "1"})
    action = decide(described(labels={"old": None, "tier": "front"}), before)
    assert action.after is not None
    assert dict(action.after.meta.labels) == {"theirs": "1", "tier": "front"}


def test_fields_of_a_later_api_survive() -> None:
    before = stored("v1", ready="v1")
    before.spec.revision[0].MergeFromString(b"\xfa\x7f\x05later")  # field 2047
    action = decide(described(revisions=[{"id": "v1", "container": [{"name": "web"}]}]), before)
    assert action.after is not None
    assert b"later" in action.after.spec.revision[0].SerializeToString()


def test_an_allocation_by_the_scheduler_is_not_sent_back() -> None:
    before = stored()
    before.spec.allocation.cpu_millicores = 100
    action = decide(described(labels={"tier": "front"}), before)
    assert action.after is not None
    assert action.after.spec.allocation.cpu_millicores == 100
    sent = instance_to_send(action)
    assert (sent.spec.HasField("allocation"), sent.spec.node_name) == (False, "")


def test_what_the_description_allocates_is_sent() -> None:
    placed = {"id": "web-1", "node": "n2", "allocation": {"ports": {"http": 80}}}
    sent = instance_to_send(decide(described(instances=[placed]), stored()))
    assert (sent.spec.node_name, sent.spec.allocation.port[0].number) == ("n2", 80)


def clearing(**more: Any) -> PlannedAction:
    """An action that clears secrets, and what else the description changes."""
    before = stored("v1")
    before.spec.revision[0].secret_count = 1
    whole = model.InstanceRevision(id="v1", secret=[model.SecretDescriptor(name="key")])
    held = held_instance(before, "e1").with_secrets([whole])
    action = described(revisions=[{"id": "v1", "secret": []}], **more).action("web-1", held)
    assert way_of(action) == "clear"
    return action


def test_an_update_that_clears_secrets_brings_all_else_that_the_description_changes() -> None:
    action = clearing(weight=10, liveness={"reportInterval": "20s", "timeout": "60s"})
    draft = changes.new_draft(stored("v1"), uid=99, cluster="c", wall_ms=0)
    written = changes.updated_draft(draft, instance_to_send(action), fields_to_send(action)).spec
    assert (written.weight, written.liveness.timeout.seconds) == (10, 60)


def test_what_an_older_replica_does_not_know_is_named_only_where_it_changes() -> None:
    assert set(fields_to_send(clearing())) == {*DEPLOYED, SECRETS}


def test_an_update_names_whatever_of_an_instance_can_be_written() -> None:
    assert {*DEPLOYED, *SCHEDULED, *YOUNGER, SECRETS} == set(changes.ALL_PATHS)


def test_secrets_left_out_are_neither_read_nor_changed() -> None:
    intent, before = described(revisions=[{"id": "v1"}]), held_instance(stored("v1", secrets=1), "e1")
    assert not intent.needs_secrets(before)
    assert intent.action("web-1", before).kind is PlannedKind.UNCHANGED


def with_secret(intent: UploadIntent, name: str) -> PlannedAction:
    """The action for an instance whose descriptors were read."""
    before = held_instance(stored("v1", secrets=1), "e1")
    assert intent.needs_secrets(before)
    told = model.InstanceRevision(id="v1")
    told.secret.add(name=name, provider="vault", id="web/key", environment_variable="KEY")
    return intent.action("web-1", before.with_secrets([told]))


def test_the_same_secrets_are_no_change() -> None:
    intent = described(revisions=[{"id": "v1", "secret": [SECRET]}])
    assert with_secret(intent, "key").kind is PlannedKind.UNCHANGED
    assert with_secret(intent, "other").kind is PlannedKind.UPDATE


def test_an_empty_list_of_secrets_clears_them() -> None:
    action = with_secret(described(revisions=[{"id": "v1", "secret": []}]), "key")
    assert (action.kind, action.clears_secrets) == (PlannedKind.UPDATE, True)


def test_a_note_warns_that_nothing_will_run() -> None:
    action = decide(described(drop=["v1"]), stored("v0", "v1", ready="v1"))
    assert (action.kind, action.note) == (PlannedKind.UPDATE, "v1 runs, and nothing will")


def test_clearing_secrets_is_refused_if_those_of_other_revisions_were_not_read() -> None:
    intent = described(revisions=[{"id": "v1", "secret": []}])
    assert (
        intent.action("web-1", held_instance(stored("v0", "v1", node="", secrets=1), "e1")).kind is PlannedKind.REFUSED
    )


def test_an_id_of_another_service_is_not_taken_over() -> None:
    before = stored()
    before.meta.service_id = "mail"
    action = decide(described(), before)
    assert (action.kind, action.note) == (PlannedKind.REFUSED, "belongs to the service mail: choose another id")


def test_a_missing_revision_cannot_be_made_ready() -> None:
    assert decide(described(ready="v2"), stored("v1")).kind is PlannedKind.REFUSED


def test_a_note_names_a_missing_revision_that_should_stay_installed() -> None:
    action = decide(described(revisions=[{"id": "v2"}], ready="v2", installed=["v1"]), None)
    assert (action.kind, action.note) == (PlannedKind.CREATE, "has no revision v1 to stay INSTALLED")


def test_undescribed_instances_are_deleted_only_with_prune() -> None:
    before = held_instance(stored(), "e1")
    assert described(instances=[]).action("web-1", before).kind is PlannedKind.UNCHANGED
    assert described(instances=[], prune=True).action("web-1", before).kind is PlannedKind.DELETE


def test_alike_changes_of_instances_are_shown_once() -> None:
    ids = [f"web-{n}" for n in range(40)]
    intent = described(instances=[{"id": one, "node": f"n-{one}"} for one in ids], revisions=[{"id": "v1"}], ready="v1")
    texts = [line.text for line in plan_lines("sas", make_plan("web", intent, ids, {}))]
    assert texts[0] == "sas: web: 40 to create"
    assert texts[1] == "  + web-0  node_name=n-web-0"
    assert texts[11] == "  + ... and 30 more instances (--all names them)"
    assert texts.count("      + spec.revision[v1].target: READY") == 1
    assert len(texts) == 14


def test_permission_bits_are_shown_as_people_write_them() -> None:
    assert (format_value(0o400, "spec.revision[v1].secret[key].file.mode"), format_value(256)) == ("0400", "256")


def test_a_plan_shows_both_sides_of_a_change() -> None:
    intent = described(ready="v2")
    holdings: dict[str, HeldInstance] = {"web-1": held_instance(stored("v1", "v2", ready="v1"), "e1")}
    texts = [line.text for line in plan_lines("sas", make_plan("web", intent, ["web-1"], holdings))]
    assert texts[2:] == [
        "      ~ spec.revision[v1].target: READY -> INSTALLED",
        "      ~ spec.revision[v2].target: INSTALLED -> READY",
    ]
