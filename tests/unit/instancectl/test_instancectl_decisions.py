"""instancectl's smaller decisions: uids, restarts, readiness, adoption, what to tell."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hqpb.v1 import instance_pb2 as model
from instancectl.containers.checks import Readiness, Rhythm, rhythm
from instancectl.containers.restarts import Restarts, RestartSettings
from instancectl.processes.child import ProcessExit
from instancectl.processes.limits import Grip
from instancectl.processes.procfs import ProcessId
from instancectl.reports import conditions
from instancectl.state import RunningChild
from instancectl.takeover import is_wanted, revision_to_keep, spec_to_adopt_by
from instancectl.wanted.desired import Desired, RevisionContentKey, container_digest, revision_key
from instancectl.wanted.hq_source import InstanceIdentity, Meaning, judge_absence, judge_presence
from tests.support.sample_instances import INSTALLED, READY

KNOWN = InstanceIdentity(uid=5, epoch="e1")


@pytest.mark.parametrize(
    ("known", "found", "meaning"),
    [
        (None, InstanceIdentity(5, "e1"), Meaning.GO_ON),
        (KNOWN, InstanceIdentity(5, "e1"), Meaning.GO_ON),
        (KNOWN, InstanceIdentity(6, "e1"), Meaning.RECREATED),
        (KNOWN, InstanceIdentity(6, "e2"), Meaning.GO_ON),  # a restored HQ gives new uids to the same instances
    ],
)
def test_a_different_uid_means_recreated_only_within_an_epoch(
    known: InstanceIdentity | None, found: InstanceIdentity, meaning: Meaning
) -> None:
    assert judge_presence(known, found) is meaning


@pytest.mark.parametrize(
    ("known", "epoch", "elsewhere", "meaning"),
    [
        (None, "e1", False, Meaning.WAIT),
        (KNOWN, "e1", False, Meaning.GONE),
        (KNOWN, "e1", True, Meaning.MOVED),
        (KNOWN, "e2", False, Meaning.DOUBT),
        (KNOWN, "e2", True, Meaning.DOUBT),
    ],
)
def test_an_absence_counts_only_within_the_epoch_that_knew_the_instance(
    known: InstanceIdentity | None, epoch: str, elsewhere: bool, meaning: Meaning
) -> None:
    assert judge_absence(known, epoch, elsewhere=elsewhere) is meaning


# --- restarts -----------------------------------------------------------------------------------------------------


def restarts(policy: model.RestartPolicy = model.RESTART_POLICY_ALWAYS) -> Restarts:
    return Restarts(policy, RestartSettings(1.0, 8.0, 60.0), random.Random(3))


def test_waits_double_up_to_the_limit_with_half_of_each_random() -> None:
    one = restarts()
    for limit_s in (1.0, 2.0, 4.0, 8.0, 8.0):
        delay_s = one.after(ProcessExit(code=1), ran_for_s=0.1)
        assert delay_s is not None
        assert limit_s / 2 <= delay_s <= limit_s


def test_a_long_run_resets_the_wait_before_a_restart() -> None:
    one = restarts()
    for _ in range(5):
        one.after(ProcessExit(code=1), ran_for_s=0.1)
    delay_s = one.after(ProcessExit(code=1), ran_for_s=61.0)
    assert delay_s is not None
    assert delay_s <= 1.0


@pytest.mark.parametrize(
    ("policy", "end", "again"),
    [
        (model.RESTART_POLICY_UNSPECIFIED, ProcessExit(code=0), True),
        (model.RESTART_POLICY_ALWAYS, ProcessExit(code=0), True),
        (model.RESTART_POLICY_ON_FAILURE, ProcessExit(code=0), False),
        (model.RESTART_POLICY_ON_FAILURE, ProcessExit(code=1), True),
        (model.RESTART_POLICY_ON_FAILURE, ProcessExit(signal=9), True),
        (model.RESTART_POLICY_ON_FAILURE, ProcessExit(), True),
        (model.RESTART_POLICY_NEVER, ProcessExit(code=1), False),
        (model.RESTART_POLICY_NEVER, None, True),  # it has not begun
    ],
)
def test_the_policy_decides_whether_a_container_starts_again(
    policy: model.RestartPolicy, end: ProcessExit | None, again: bool
) -> None:
    assert (restarts(policy).after(end, 1.0) is not None) is again


# --- readiness ----------------------------------------------------------------------------------------------------


def checks(successes: int = 0, failures: int = 0) -> Readiness:
    return Readiness(rhythm(model.ReadinessCheck(success_threshold=successes, failure_threshold=failures)))


def test_one_success_makes_ready_and_three_failures_in_a_row_make_not_ready() -> None:
    readiness = checks()
    assert readiness.record_result(True)
    assert not readiness.record_result(False)
    assert not readiness.record_result(False)
    assert not readiness.record_result(True)  # it begins again
    assert [readiness.record_result(False) for _ in range(3)] == [False, False, True]
    assert not readiness.is_ready


def test_thresholds_are_taken_from_the_check() -> None:
    readiness = checks(successes=2, failures=1)
    assert [readiness.record_result(True) for _ in range(2)] == [False, True]
    assert readiness.record_result(False)


def test_failed_checks_of_an_earlier_supervisor_count_towards_the_threshold() -> None:
    timing = rhythm(model.ReadinessCheck())
    assert not Readiness(timing, is_ready=True).record_result(True)
    assert [Readiness(timing, is_ready=True, failures=failures).record_result(False) for failures in (0, 1, 2)] == [
        False,
        False,
        True,
    ]


def test_failed_checks_of_a_ready_container_count_from_its_last_success() -> None:
    readiness = checks()
    counted = []
    for passed in (False, True, False, False, True, False, False, False):
        readiness.record_result(passed)
        counted.append(readiness.failures)
    assert counted == [0, 0, 1, 2, 0, 1, 2, 0]


def test_a_readiness_check_without_values_has_the_documented_defaults() -> None:
    assert rhythm(model.ReadinessCheck()) == Rhythm(
        initial_delay_s=0.0, period_s=10.0, timeout_s=1.0, failures=3, successes=1
    )


# --- fingerprints and adoption --------------------------------------------------------------------------------------


def revision(revision_id: str = "r1", *, target: model.RevisionTarget = READY) -> model.InstanceRevision:
    made = model.InstanceRevision(id=revision_id, target=target)
    made.container.add(name="main", command=["serve"])
    made.file.add(name="app", url="http://files/app")
    return made


def test_a_revision_is_prepared_anew_for_changed_files_but_not_for_its_target_or_processes() -> None:
    allocation = model.ResourceAllocation(memory_bytes=1)
    key = revision_key(revision(), allocation)
    other = revision(target=INSTALLED)
    other.container[0].command.append("--loud")
    assert revision_key(other, model.ResourceAllocation(memory_bytes=2)) == key
    other.file[0].url += "2"
    assert revision_key(other, allocation) != key
    allocation.port.add(name="http", number=1)
    assert revision_key(revision(), allocation) != key


def child(wanted: Desired, revision_id: str, digest: str = "") -> RunningChild:
    key = wanted.key_of(revision_id) or RevisionContentKey(revision_id, "gone")
    found = wanted.by_key.get(key)
    own = container_digest(found.container[0], wanted.allocation) if found else ""
    identity = ProcessId(1, 1, "boot")
    return RunningChild(key, "main", digest or own, identity, "mark", "", "", 1.0, 0.0, 0)


def test_a_child_is_adopted_if_its_revision_and_container_are_what_they_were() -> None:
    wanted = Desired("i-1", "node-1", (revision("r1"), revision("r2", target=INSTALLED)))
    assert is_wanted(child(wanted, "r1"), wanted)
    assert not is_wanted(child(wanted, "r1", digest="another command"), wanted)
    assert not is_wanted(child(wanted, "r3"), wanted)


def test_of_two_running_revisions_the_one_wanted_ready_is_adopted() -> None:
    wanted = Desired("i-1", "node-1", (revision("r1", target=INSTALLED), revision("r2")))
    assert revision_to_keep([child(wanted, "r1"), child(wanted, "r2")], wanted) == wanted.key_of("r2")
    assert revision_to_keep([child(wanted, "r1")], wanted) == wanted.key_of("r1")
    assert revision_to_keep([child(wanted, "r3")], wanted) is None


def test_running_processes_are_adopted_by_the_spec_they_were_started_from() -> None:
    before = Desired("i-1", "node-1", (revision("r1"),))
    changed = Desired("i-1", "node-1", (revision("r2"),))
    assert spec_to_adopt_by([child(before, "r1")], before, changed) is before
    assert spec_to_adopt_by([child(changed, "r2")], before, changed) is changed  # the copy could not be written
    assert spec_to_adopt_by([child(before, "r1")], None, changed) is changed


# --- what is told -------------------------------------------------------------------------------------------------


def container(name: str = "main", *, ready: bool = True, ended: str = "") -> model.ContainerStatus:
    made = model.ContainerStatus(name=name, ready=ready)
    if ended:
        made.state.terminated.reason = ended
    else:
        made.state.running.SetInParent()
    return made


def test_a_revision_is_ready_when_each_container_is_ready_or_completed() -> None:
    assert conditions.readiness([container(), container("init", ready=False, ended="Completed")]).holds
    assert not conditions.readiness([container(), container("slow", ready=False)]).holds
    assert not conditions.readiness([container(ready=False, ended="Completed")]).holds
    assert conditions.readiness([]).holds


def told(
    stage: conditions.RunningRevision, installed: conditions.ConditionVerdict = conditions.INSTALLED
) -> dict[str, model.RevisionStatus]:
    wanted = Desired("i-1", "node-1", (revision("r1", target=INSTALLED), revision("r2")), version=9)
    return conditions.statuses(wanted, lambda _: installed, stage, {}, 1.5)


def test_the_previous_revision_is_ready_as_long_as_it_runs() -> None:
    wanted = Desired("i-1", "node-1", (revision("r1", target=INSTALLED), revision("r2")))
    said = told(conditions.RunningRevision(wanted.key_of("r1"), (container(),)), conditions.PREPARING)
    assert said["r1"].ready.status == conditions.TRUE
    assert (said["r2"].ready.status, said["r2"].ready.reason) == (conditions.FALSE, "NotInstalled")
    assert said["r2"].spec_version == 9


def test_nothing_is_installed_of_a_revision_with_target_created() -> None:
    created = revision("r1", target=model.REVISION_TARGET_CREATED)
    wanted = Desired("i-1", "node-1", (created, revision("r2", target=INSTALLED)))
    assert [key.id for key in wanted.held_keys] == ["r2"]
    said = conditions.statuses(wanted, lambda _: None, conditions.RunningRevision(), {}, 1.5)
    assert (said["r1"].installed.status, said["r1"].installed.reason) == (conditions.FALSE, "Created")
    assert said["r1"].ready.reason == "NotWantedReady"
    assert not is_wanted(child(wanted, "r1"), wanted)


def test_a_revision_is_not_ready_from_the_moment_it_is_stopping() -> None:
    wanted = Desired("i-1", "node-1", (revision("r2"),))
    said = told(conditions.RunningRevision(wanted.key_of("r2"), (container(),), leaving=conditions.STOPPING))
    assert said["r2"].ready.reason == "Stopping"


def test_containers_that_the_spec_does_not_know_are_left_out() -> None:
    wanted = Desired("i-1", "node-1", (revision("r2"),))
    said = told(conditions.RunningRevision(wanted.key_of("r2"), (container(), container("removed"))))
    assert [s.name for s in said["r2"].container] == ["main"]


def test_a_condition_keeps_the_time_of_its_last_transition() -> None:
    wanted = Desired("i-1", "node-1", (revision("r1"),))
    first = conditions.statuses(wanted, lambda _: conditions.PREPARING, conditions.RunningRevision(), {}, 1.0)
    later = conditions.statuses(wanted, lambda _: conditions.PENDING, conditions.RunningRevision(), first, 2.0)
    assert later["r1"].installed.last_transition_time == first["r1"].installed.last_transition_time
    done = conditions.statuses(wanted, lambda _: conditions.INSTALLED, conditions.RunningRevision(), later, 3.0)
    assert done["r1"].installed.last_transition_time.seconds == 3


# --- memory ---------------------------------------------------------------------------------------------------------


def test_only_a_cgroup_says_that_a_process_was_killed_for_memory(tmp_path: Path) -> None:
    grip = Grip(group=tmp_path)
    assert not grip.ran_out_of_memory()
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert grip.ran_out_of_memory()
    assert not Grip().ran_out_of_memory()
