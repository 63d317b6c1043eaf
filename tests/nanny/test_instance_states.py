"""Every state of an instance has its two names, and follows from what agents report."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import instancectl
from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import Condition, ContainerState, ContainerStatus, ContainerTerminated, RevisionStatus
from nanny.instances import BY_REASON, STATES, instance_state

TRUE, FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE
READY, INSTALLED = instance_pb2.REVISION_TARGET_READY, instance_pb2.REVISION_TARGET_INSTALLED
CREATED = 3


def status(
    installed: str = "", ready: str = "", *, is_installed: bool = False, is_ready: bool = False
) -> RevisionStatus:
    return RevisionStatus(
        installed=Condition(status=TRUE if is_installed else FALSE, reason=installed),
        ready=Condition(status=TRUE if is_ready else FALSE, reason=ready),
    )


def test_there_are_twenty_nine_states_each_with_names_of_its_own() -> None:
    assert len(STATES) == 29
    assert max(Counter(state.old for state in STATES).values()) == 1
    assert max(Counter(state.new for state in STATES).values()) == 1


def test_each_reason_belongs_to_one_state() -> None:
    assert len(BY_REASON) == sum(len(state.reasons) for state in STATES)


@pytest.mark.parametrize("reason", sorted(BY_REASON))
def test_an_instance_is_in_the_state_of_the_reason_for_which_it_is_not_installed(reason: str) -> None:
    assert instance_state(CREATED, status(installed=reason)) is BY_REASON[reason]


@pytest.mark.parametrize(
    ("target", "reported", "expected"),
    [
        (READY, status(is_installed=True, is_ready=True), "Active"),
        (INSTALLED, status(is_installed=True, ready="NotWantedReady"), "Prepared"),
        (INSTALLED, status(is_installed=True, ready="Stopping"), "Hook in progress"),
        (INSTALLED, status(is_installed=True, ready="StartCancelled"), "Cancelled"),
        (INSTALLED, status(is_installed=True, ready="HookCancelled"), "Hook cancelled"),
        (INSTALLED, status(is_installed=True, is_ready=True), "Hook in progress"),
        (CREATED, status(installed="Created"), "Removed"),
        (READY, status("Installed", "WaitingForPredecessor", is_installed=True), "Pending"),
        (READY, status("Installed", "ContainerNotReady", is_installed=True), "Activating"),
        (READY, status("Installed", "SomethingNew", is_installed=True), "Activating"),
        (READY, status("SomethingNew"), "Failing"),
        (READY, status("Installed", "HeartbeatTimeout", is_installed=True), "Unknown"),
        (READY, status("Installed", "Notifying", is_installed=True, is_ready=True), "Notifying"),
        (READY, None, "Unknown"),
        (None, status(is_installed=True), "Unknown"),
        (READY, RevisionStatus(), "Unknown"),
    ],
)
def test_states_follow_from_target_and_report(
    target: int | None, reported: RevisionStatus | None, expected: str
) -> None:
    assert instance_state(target, reported).new == expected


def test_a_container_killed_for_its_memory_has_a_state_of_its_own_and_not_just_not_ready() -> None:
    reported = status("Installed", "ContainerNotReady", is_installed=True)
    ended = ContainerTerminated(reason="OOMKilled")
    reported.container.append(ContainerStatus(name="web", state=ContainerState(terminated=ended)))
    assert instance_state(READY, reported).old == "DAEMON_WAS_TERMINATED_EXTERNALLY"


OF_OTHER_AGENTS = {
    *(
        "InstallScheduled",
        "ShardInstalled",
        "Exited",
        "TimedOut",
        "ResourceOvercommit",
        "Removed",
        "PortoFailure",
        "PortoUnavailable",
        "SkynetFailure",
    ),
    *("SkynetTimeout", "DynamicResourceDownloading", "DynamicResourcePrepareFailed", "Notifying", "NotifyFailed"),
}
OF_EARLIER_AGENTS = {"FetchFailed"}
OF_HQ = {"HeartbeatTimeout", "ReportsRefused"}
OF_CONDITIONS_THAT_SAY_IT_THEMSELVES = {"Installed", "Ready", "NotWantedReady"}


def test_the_table_knows_every_reason_that_instancectl_sends_and_no_others_but_those_of_other_agents() -> None:
    sent = {reason for path in Path(instancectl.__path__[0]).rglob("*.py") for reason in reasons(path)}
    assert {"Downloading", "ChecksumMismatch", "PrepareScriptTimedOut", "SecretMissing"} < sent  # they are found
    assert sent - set(BY_REASON) == OF_CONDITIONS_THAT_SAY_IT_THEMSELVES
    assert set(BY_REASON) - sent - {"Killed", "OOMKilled"} == OF_OTHER_AGENTS | OF_EARLIER_AGENTS | OF_HQ


def reasons(path: Path) -> Iterator[str]:
    """Words of verdicts and of failures to prepare, in a module of instancectl."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("ConditionVerdict"), args=[_, reason, *_]):
                yield from words(reason)
            case ast.Call(func=ast.Name("PrepareFailed" | "ContainerFault"), args=[reason, *_]):
                yield from words(reason)
            case ast.ClassDef(bases=[ast.Name("PrepareFailed")], name=reason):
                yield reason  # each is named as its class
            case ast.Assign(targets=[ast.Name("reason")], value=value) if path.name == "prepare.py":
                yield from words(value)


def words(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
