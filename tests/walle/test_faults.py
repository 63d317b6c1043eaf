"""Real processes of Wall-E under faults, judged from the store's history; and the checker itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from google.protobuf.message import Message

from store.port import Batch, KeyChange
from tests.checker.bounds import EFFORT, HELD, ITSELF, REVISIONS_OF_AN_OPERATION, WAVE, held_too_long
from tests.checker.repairs import (
    ALLOWED,
    APART,
    LEFT_ALONE,
    ONCE,
    TRIES_OF_A_TASK,
    History,
    dns_once,
    once,
    seldom,
)
from tests.rig.walle_run import WalleRun
from tests.support.walle.seeded import BUGS, Patch
from walle.fuses.limits import parse_limit
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATUS_DEAD,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    STAGE_APPROVAL,
    STAGE_CONFIRMING,
    STAGE_ENDING,
    STAGE_RUNNING,
    STAGE_VERIFYING,
    VERDICT_OK,
    Check,
    Host,
    Intent,
    Operation,
    OperationKind,
    Stage,
)
from wallepb.v1.project_pb2 import Credit, Fuse, Mark, Project, Scenario, ScenarioHost, Switch, Switching


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_never_more_repairs_than_allowed_whatever_is_killed_paused_or_cut_off(tmp_path: Path) -> None:
    run = WalleRun(tmp_path, seed=1, say=lambda _: None, least=(2, 1))
    await run.run(20.0)
    assert run.broken == []
    assert run.repairs >= 2, run.struck  # one that never repairs is safe and useless
    assert run.dns_fixes >= 1, run.struck


@pytest.mark.long
@pytest.mark.night
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("bug", "word"), BUGS.items(), ids=lambda one: getattr(one, "__name__", one))
async def test_a_seeded_bug_is_found_by_a_run_under_faults(
    bug: Callable[[Patch], None], word: str, tmp_path: Path
) -> None:
    program = ("tests.support.walle.seeded", bug.__name__)
    run = WalleRun(tmp_path, seed=1, say=lambda _: None, program=program, awaited=word)
    await run.run(20.0)
    assert any(one.startswith(word) for one in run.broken), (run.broken, run.struck)


class Story:
    """A history, told record by record."""

    def __init__(self, *limit: str, settle_ms: int = 0) -> None:
        self.history, self.revision = History(b"/w/", {}, settle_ms), 0
        self.put("project/web", Project(id="web", limits={"ssh": parse_limit(limit), "dead": parse_limit(["1m:1"])}))

    def put(self, key: str, record: Message) -> None:
        self.put_all({key: record})

    def put_all(self, records: Mapping[str, Message]) -> None:
        """In one transaction."""
        self.revision += 1
        now = self.revision
        changes = [KeyChange(b"/w/" + key.encode(), one.SerializeToString(), now, now) for key, one in records.items()]
        self.history.replay(Batch(now, changes))

    def repair(self, name: str, at_s: int) -> None:
        doing = Operation(id=f"{name}-{at_s}", kind=OPERATION_KIND_REBOOT, check="ssh", stage=STAGE_RUNNING)
        doing.since_ms = at_s * 1000
        host = Host(name=name, project="web", state=HOST_STATE_ASSIGNED)
        self.put(f"host/{name}", host)  # the operation before is over
        host.operation.CopyFrom(doing)
        self.put(f"host/{name}", host)

    def dies(self, name: str, at_s: int) -> None:
        host = Host(name=name, project="web", state=HOST_STATE_ASSIGNED, status=HOST_STATUS_DEAD)
        fuses = {
            f"fuse/{owner}": Fuse(id=owner, mark=[Mark(counter=counter, host=name, at_ms=at_s * 1000)])
            for owner, counter in (("web", "dead"), ("global", "max_dead_hosts"))
        }
        self.put_all({f"host/{name}": host, **fuses})

    def fuse(self, *, off: bool, credits_: int = 0, until_s: int = 0) -> None:
        fuse = Fuse(id="web", healing=Switch(off=off))
        given = [Credit(counter="ssh", left=credits_, until_ms=until_s * 1000)] if credits_ else []
        fuse.switching.append(Switching(automation="healing", off=off, credit=given, reason=str(self.revision)))
        self.put("fuse/web", fuse)

    def blamed(self) -> list[str]:
        assert all(one.promise is ALLOWED for one in self.history.broken)
        return [one.what.partition(":")[0].partition(" ")[0] for one in self.history.broken]


def test_the_checker_blames_a_repair_above_the_limit_and_none_once_the_window_has_passed() -> None:
    story = Story("1m:2")
    for name, at_s in (("a", 10), ("a", 20), ("b", 30), ("c", 79), ("d", 91)):
        story.repair(name, at_s)
    assert story.blamed() == ["c"]


def test_the_checker_counts_no_repair_again_that_left_its_window_before_the_clock_went_back() -> None:
    """The next acting process begins some seconds earlier; marks of what had left the window are deleted by then."""
    story = Story("1m:2")
    for name, at_s in (("a", 10), ("b", 80), ("c", 65), ("d", 66)):
        story.repair(name, at_s)
    assert story.blamed() == ["d"]


def test_the_checker_allows_credits_until_they_are_spent_or_over() -> None:
    story = Story("1m:1")
    story.fuse(off=True)
    story.fuse(off=False, credits_=2, until_s=30)
    for name in "abc":
        story.repair(name, 20)
    assert story.blamed() == []
    story.repair("d", 21)
    assert story.blamed() == ["d"]
    late = Story("1m:1")
    late.fuse(off=True)
    late.fuse(off=False, credits_=2, until_s=30)
    for name in "ab":
        late.repair(name, 40)
    assert late.blamed() == ["b"]


def test_the_checker_blames_repairs_while_a_fuse_is_out_and_counts_anew_once_it_is_on() -> None:
    story = Story("1m:1")
    story.repair("a", 10)
    story.fuse(off=True)
    story.repair("b", 11)
    assert story.blamed() == ["b", "b"]  # off, and over the limit
    story.fuse(off=False)
    story.repair("c", 12)
    assert story.blamed() == ["b", "b"]


def test_the_checker_counts_resets_against_operations_that_came_to_their_work() -> None:
    story = Story("1m:9")
    story.repair("a", 10)
    story.repair("a", 20)
    assert [one.promise for one in once({"a": 2, "b": 1}, story.history.intents)] == [ONCE]


def failing(name: str, since_s: int) -> Host:
    check = Check(name="ssh", failing=True, since_ms=since_s * 1000)
    return Host(name=name, project="web", state=HOST_STATE_ASSIGNED, check=[check])


def test_the_checker_blames_a_repair_of_what_has_not_failed_for_the_settle_time() -> None:
    story = Story("1m:9", settle_ms=2_000)
    for name, at_s in (("a", 12), ("b", 11)):
        host = failing(name, since_s=10)
        story.put(f"host/{name}", host)
        host.operation.CopyFrom(Operation(id=name, kind=OPERATION_KIND_REBOOT, check="ssh", since_ms=at_s * 1000))
        story.put(f"host/{name}", host)
    assert [(one.promise, one.what[:1]) for one in story.history.broken] == [(ITSELF, "b")]


def test_the_checker_blames_an_operation_that_is_stored_again_and_again() -> None:
    story, host = Story("1m:9"), failing("a", since_s=1)
    for number in range(REVISIONS_OF_AN_OPERATION + 3):
        host.operation.CopyFrom(Operation(id="a", kind=OPERATION_KIND_REBOOT, check="ssh", since_ms=1000))
        host.operation.message = f"try {number}"
        story.put("host/a", host)
    assert [one.promise for one in story.history.broken] == [EFFORT]
    tries = [("DELETE", "/tasks/t")] * (TRIES_OF_A_TASK + 2)
    assert [one.promise for one in seldom(tries, restarts=1)] == [EFFORT]
    assert list(seldom([*tries[1:], *[("GET", "/tasks/t")] * 99], restarts=1)) == []


@pytest.mark.parametrize(
    ("first", "most", "blamed"),
    [
        (ScenarioHost(outcome=OUTCOME_DONE), "", False),
        (ScenarioHost(), "", True),
        (ScenarioHost(outcome=OUTCOME_FAILED), "", True),
        (ScenarioHost(outcome=OUTCOME_FAILED, accepted=True), "", False),
        (ScenarioHost(outcome=OUTCOME_FAILED), "1", False),
    ],
    ids=["back", "not back", "failed", "a person went on", "it may fail"],
)
def test_the_checker_blames_a_second_wave_after_a_bad_first_one(first: ScenarioHost, most: str, blamed: bool) -> None:
    story, waiting = Story("1m:9"), ScenarioHost(name="b")
    first.name, first.operation_id = "a", "op1"
    story.put("scenario/s", Scenario(id="s", wave_size="1", max_failures=most, host=[first, waiting]))
    waiting.operation_id = "op2"
    story.put("scenario/s", Scenario(id="s", wave_size="1", max_failures=most, host=[first, waiting]))
    assert [one.promise for one in story.history.broken] == [WAVE] * blamed


@pytest.mark.parametrize(
    ("stage", "kind", "minutes"),
    [
        (STAGE_APPROVAL, OPERATION_KIND_REBOOT, 5),
        (STAGE_CONFIRMING, OPERATION_KIND_REBOOT, 30),
        (STAGE_RUNNING, OPERATION_KIND_REBOOT, 30),
        (STAGE_RUNNING, OPERATION_KIND_REDEPLOY, 1440),
        (STAGE_VERIFYING, OPERATION_KIND_REBOOT, 30),
        (STAGE_ENDING, OPERATION_KIND_REBOOT, 10),
    ],
)
def test_the_checker_blames_an_approval_that_is_held_beyond_its_bound(
    stage: Stage, kind: OperationKind, minutes: int
) -> None:
    host = Host(name="a", operation=Operation(stage=stage, kind=kind))
    late_ms = (minutes + 3) * 60_000
    assert not list(held_too_long(host, late_ms))
    host.operation.task.add(id="t", created=True, verdict=VERDICT_OK)
    assert [one.promise for one in held_too_long(host, late_ms)] == [HELD]
    assert not list(held_too_long(host, minutes * 60_000))


def test_the_checker_counts_hosts_that_are_given_up_and_blames_operations_on_them() -> None:
    story = Story("1m:9")
    story.dies("a", 10)
    story.dies("b", 20)
    assert story.blamed() == ["b"]
    story.dies("c", 81)
    assert story.blamed() == ["b"]
    dead = Host(name="c", project="web", state=HOST_STATE_ASSIGNED, status=HOST_STATUS_DEAD)
    dead.operation.CopyFrom(Operation(id="late", kind=OPERATION_KIND_REBOOT, check="ssh", since_ms=72_000))
    story.put("host/c", dead)
    assert [one.promise for one in story.history.broken] == [ALLOWED, LEFT_ALONE]


def test_the_checker_blames_a_host_that_is_given_up_though_no_limit_counted_it() -> None:
    story = Story("1m:9")
    story.put("host/a", Host(name="a", project="web", state=HOST_STATE_ASSIGNED, status=HOST_STATUS_DEAD))
    assert story.blamed() == ["a", "a"]


def test_the_checker_blames_a_limit_of_dns_that_switches_healing_off() -> None:
    story = Story("1m:9")
    story.put("fuse/web", Fuse(id="web", dns=Switch(off=True, tripped_by="dns-fixes 1d:5")))
    assert story.history.broken == []
    story.put("fuse/web", Fuse(id="web", healing=Switch(off=True, tripped_by="dns-fixes 1d:5")))
    assert [one.promise for one in story.history.broken] == [APART]


def test_the_checker_counts_dns_updates_against_attempts_that_were_stored() -> None:
    story = Story("1m:9")
    host = Host(name="a", project="web", state=HOST_STATE_ASSIGNED)
    doing = Operation(id="d", kind=OPERATION_KIND_DNS_FIX, check="dns", stage=STAGE_RUNNING, since_ms=1_000)
    doing.intent.CopyFrom(Intent(attempts=2))
    host.operation.CopyFrom(doing)
    story.put("host/a", host)
    assert list(dns_once({"a": 2}, story.history.dns_attempts)) == []
    assert [one.promise for one in dns_once({"a": 3, "b": 1}, story.history.dns_attempts)] == [ONCE, ONCE]
