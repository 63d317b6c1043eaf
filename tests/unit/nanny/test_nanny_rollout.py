"""How far the agents are, and exit codes."""

from __future__ import annotations

import pytest

from hqcli.exits import Exit
from hqpb.v1 import instance_pb2 as model
from nannyctl.exits import worst
from nannyctl.plans.progress import rollout
from nannyctl.sending.results import UploadOutcome, failure

READY, INSTALLED = model.REVISION_TARGET_READY, model.REVISION_TARGET_INSTALLED
WORDS = {None: model.CONDITION_STATUS_UNKNOWN, True: model.CONDITION_STATUS_TRUE, False: model.CONDITION_STATUS_FALSE}


def instance(name: str, **reported: tuple[bool | None, bool | None]) -> model.Instance:
    """v1 is wanted INSTALLED, v2 READY; `v2=(installed, ready)` is what its agent says."""
    made = model.Instance()
    made.meta.id, made.meta.version = name, 10
    made.spec.node_name = "n1"
    made.spec.revision.add(id="v1", target=INSTALLED)
    made.spec.revision.add(id="v2", target=READY)
    for revision, (installed, ready) in reported.items():
        status = made.status.revision.add(id=revision)
        status.installed.status, status.ready.status = WORDS[installed], WORDS[ready]
    return made


def reasons(*instances: model.Instance) -> list[str]:
    return [f"{slow.revision}: {slow.why}" for slow in rollout("web", instances).slow]


def test_everything_is_done_when_every_agent_did_what_is_wanted() -> None:
    state = rollout("web", [instance("web-1", v1=(True, False), v2=(True, True))])
    assert (state.is_done, state.words()) == (True, "everything is as desired")
    assert [(c.revision, c.wanted_ready, c.wanted_installed, c.installed, c.ready) for c in state.counts.values()] == [
        ("v1", 0, 1, 1, 0),
        ("v2", 1, 0, 1, 1),
    ]


def test_the_slow_are_named_with_reasons() -> None:
    slow = instance("web-1", v1=(False, False), v2=(True, False))
    slow.status.revision[0].installed.reason = "ChecksumMismatch"
    slow.status.revision[0].installed.message = "app.tar is another file."
    slow.status.revision[1].ready.reason = "HeartbeatTimeout"
    assert reasons(slow) == [
        "v1: not installed: ChecksumMismatch: app.tar is another file",
        "v2: not ready: HeartbeatTimeout",
    ]


def test_an_agent_that_never_spoke_is_slow() -> None:
    assert reasons(instance("web-1", v2=(True, True))) == ["v1: no agent has reported it"]


def test_a_revision_that_should_only_be_installed_must_not_run() -> None:
    assert reasons(instance("web-1", v1=(True, True), v2=(True, True))) == ["v1: still runs"]


def test_what_an_agent_says_of_an_older_spec_does_not_count() -> None:
    one = instance("web-1", v1=(True, None), v2=(True, True))
    one.status.revision[1].spec_version = 9
    assert reasons(one) == ["v2: its agent has not seen the newest spec"]
    one.status.revision[1].spec_version = 10
    assert reasons(one) == []


def test_an_instance_that_was_never_uploaded_is_slow_too() -> None:
    state = rollout("web", [], ["web-1"])
    assert (state.is_done, [slow.instance for slow in state.slow]) == (False, ["web-1"])


def test_a_service_without_instances_is_never_done() -> None:
    assert not rollout("web", []).is_done


@pytest.mark.parametrize(
    ("exits", "code"),
    [
        ([], Exit.OK),
        ([Exit.OK, Exit.OK], Exit.OK),
        ([Exit.UNAVAILABLE, Exit.UNAVAILABLE], Exit.UNAVAILABLE),
        ([Exit.OK, Exit.UNAVAILABLE], Exit.PARTIAL),
        ([Exit.OK, Exit.PARTIAL], Exit.PARTIAL),
        ([Exit.CONFLICT, Exit.OK], Exit.CONFLICT),
        ([Exit.CONFLICT, Exit.UNAVAILABLE], Exit.CONFLICT),
        ([Exit.CONFLICT, Exit.REFUSED], Exit.REFUSED),
        ([Exit.NOT_YET, Exit.UNAVAILABLE], Exit.NOT_YET),
    ],
)
def test_the_exit_code_of_many_is_what_failures_have_in_common(exits: list[Exit], code: Exit) -> None:
    assert worst(exits) is code


def test_a_refusal_names_the_field_without_its_place_in_the_batch() -> None:
    result = failure("web-1", "INVALID_ARGUMENT", "INVALID_REQUEST", "is too long", "instance[3].spec.node_name")
    assert (result.outcome, result.message) == (UploadOutcome.REFUSED, "spec.node_name: is too long")
