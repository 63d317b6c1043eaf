"""How the answers of several CMSs are combined, and the default CMS."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest

from walle.approval.protocol import CmsAnswer, CmsFailure, Request, UnknownTask
from walle.approval.tasks import HOLD_MS, combine, task_after_answer, task_to_retry, tasks_for, to_give_back
from walle.healing.operation import Do, Effect, effects, with_task
from walle.work import default_cms as default
from walle.work.results import changed_task
from wallepb.v1.host_pb2 import (
    OPERATION_KIND_PREPARE,
    OPERATION_KIND_REBOOT,
    STAGE_APPROVAL,
    VERDICT_IN_PROCESS,
    VERDICT_OK,
    VERDICT_REJECTED,
    VERDICT_UNSPECIFIED,
    Operation,
    Task,
)
from wallepb.v1.project_pb2 import Cms, DefaultCmsTasks

ALL = (VERDICT_OK, VERDICT_IN_PROCESS, VERDICT_REJECTED, VERDICT_UNSPECIFIED)


def test_all_ok_means_go_any_rejected_means_no_and_anything_else_wait() -> None:
    for said in product(ALL, repeat=3):
        unanimous = VERDICT_OK if set(said) == {VERDICT_OK} else VERDICT_IN_PROCESS
        assert combine(said) == (VERDICT_REJECTED if VERDICT_REJECTED in said else unanimous), said


def test_without_a_cms_to_ask_the_work_goes_ahead() -> None:
    assert combine(()) == VERDICT_OK


def test_each_cms_gets_a_task_id_of_its_own_that_names_the_installation() -> None:
    settings = [Cms(url="default", version="v1.0"), Cms(url="http://a", version="v1.4")]
    ids = [task.id for task in tasks_for("prod", "op1", 0, OPERATION_KIND_REBOOT, settings)]
    assert len(set(ids)) == 2
    assert all(one.startswith("walle-prod.") for one in ids)


def test_a_v1_0_cms_gets_no_task_for_an_operation_it_does_not_know() -> None:
    settings = [Cms(url="default", version="v1.0"), Cms(url="http://a", version="v1.1")]
    assert [task.cms for task in tasks_for("prod", "op1", 0, OPERATION_KIND_PREPARE, settings)] == ["http://a"]


def test_an_ok_that_waits_long_for_another_cms_is_given_back_and_asked_for_again_later() -> None:
    """Otherwise two operations that each hold the ok of one CMS would wait for each other for ever."""
    held, other = Task(id="t-0", cms="a", created=True), Task(id="t-1", cms="b", created=True)
    held = task_after_answer(held, VERDICT_OK, "", 1000, provisional=False)
    other = task_after_answer(other, VERDICT_IN_PROCESS, "busy", 1000, provisional=False)
    assert to_give_back([held, other], 1000 + HOLD_MS - 60_000) == []
    assert to_give_back([held, other], 1000 + HOLD_MS) == [held]
    again = task_to_retry(held, 5000, 90_000)
    assert (again.id, again.created, again.not_before_ms) == ("t-0~1", False, 95_000)
    assert again.message.endswith("Wall-E asks again once the others approve, and within 2 min")
    assert task_to_retry(again, 6000, 0).id == "t-0~2"


def test_an_ok_given_back_again_and_again_is_asked_for_with_pauses_from_a_minute_to_an_hour() -> None:
    task, pauses = Task(id="t-0", cms="a", created=True, verdict=VERDICT_OK), list[tuple[int, int]]()
    for _ in range(9):
        back = Effect(Do.GIVE_BACK, task)
        soonest, latest = (changed_task(back, task, None, jitter, 0) for jitter in (0.0, 1.0))
        assert soonest is not None
        assert latest is not None
        pauses.append((soonest.not_before_ms // 1000, latest.not_before_ms // 1000))
        task = latest
    assert pauses == [(min(30 * 2**n, 1800), min(60 * 2**n, 3600)) for n in range(9)]


class Queue:
    """A CMS that from `from_s` on approves one task at a time, in order of arrival. Times in seconds."""

    def __init__(self, from_s: int = 0, tasks: Iterable[str] = ()) -> None:
        self.from_s, self.tasks, self.creations = from_s, list(tasks), 0

    def answer(self, effect: Effect, now_s: int) -> CmsAnswer:
        if effect.do is Do.CREATE:
            self.creations += 1
            self.tasks.append(effect.task.id)
        is_first = self.tasks[0] == effect.task.id and now_s >= self.from_s
        if effect.do is Do.GIVE_BACK:
            self.tasks.remove(effect.task.id)
        return CmsAnswer(VERDICT_OK if is_first else VERDICT_IN_PROCESS)


def approved_after(cms: dict[str, Queue], operations: dict[str, Operation], within_s: int) -> int:
    """Return when one of the operations has all oks, in seconds. All look at the same moments, every five seconds."""
    for now_s in range(0, within_s, 5):
        for name, effect in [(name, each) for name, one in operations.items() for each in effects(one, now_s * 1000)]:
            answer = cms[effect.task.cms].answer(effect, now_s)
            changed = changed_task(effect, effect.task, answer, 1.0, now_s * 1000)
            operations[name] = with_task(operations[name], effect.task, changed)
        if any(combine(task.verdict for task in one.task) == VERDICT_OK for one in operations.values()):
            return now_s
    raise AssertionError(f"no operation has all oks within {within_s} s")


def asking(name: str, *, created: bool = False) -> Operation:
    tasks = [Task(id=f"{name}-{cms}", cms=cms, created=created) for cms in "ab"]
    return Operation(id=name, stage=STAGE_APPROVAL, task=tasks)


@pytest.mark.parametrize("late_s", [3_000, 16_010, 36_000, 50_000])
def test_two_cms_meet_soon_after_the_slower_one_approves(late_s: int) -> None:
    """Until then the ok of the faster CMS is given back and asked for again, about once an hour."""
    cms = {"a": Queue(), "b": Queue(late_s)}
    assert late_s <= approved_after(cms, {"x": asking("x")}, late_s + 60)
    assert cms["a"].creations <= 10 + late_s // 3_600


def test_two_operations_do_not_deadlock_over_two_cmss() -> None:
    cms = {"a": Queue(tasks=["x-a", "y-a"]), "b": Queue(tasks=["y-b", "x-b"])}
    approved_after(cms, {name: asking(name, created=True) for name in "xy"}, 7_200)


def test_nothing_is_given_back_once_all_are_ok() -> None:
    tasks = [Task(id=str(i), verdict=VERDICT_OK, ok_since_ms=0) for i in range(2)]
    assert to_give_back(tasks, 10 * HOLD_MS) == []


def ask(task_id: str, *hosts: str, action: str = "reboot") -> Request:
    return Request(task_id, hosts or (f"h-{task_id}",), action, "automation")


def test_the_default_cms_lets_at_most_n_hosts_be_in_work_at_a_time() -> None:
    held = DefaultCmsTasks()
    said = [default.create(held, ask(f"t{i}"), 5).verdict for i in range(7)]
    assert said == [VERDICT_OK] * 5 + [VERDICT_IN_PROCESS] * 2


def test_the_default_cms_says_which_hosts_are_busy() -> None:
    held = DefaultCmsTasks()
    default.create(held, ask("t1"), 1)
    assert default.create(held, ask("t2"), 1).message == "1 of 1 hosts are busy: h-t1"


def test_a_place_given_back_goes_to_the_task_that_waits_longest() -> None:
    held = DefaultCmsTasks()
    for i in range(4):
        default.create(held, ask(f"t{i}"), 2)
    default.delete(held, "t1")
    assert [default.poll(held, f"t{i}", 2).verdict for i in (0, 2, 3)] == [VERDICT_OK, VERDICT_OK, VERDICT_IN_PROCESS]


def test_the_next_step_of_a_busy_host_takes_no_second_place() -> None:
    held = DefaultCmsTasks()
    default.create(held, ask("reboot", "h1"), 1)
    assert default.create(held, ask("redeploy", "h1", action="redeploy"), 1).verdict == VERDICT_OK


def test_a_task_sent_twice_is_one_and_other_content_under_its_id_is_refused() -> None:
    held = DefaultCmsTasks()
    default.create(held, ask("t1"), 5)
    default.create(held, ask("t1"), 5)
    assert len(held.task) == 1
    with pytest.raises(CmsFailure, match="different content"):
        default.create(held, ask("t1", "other-host"), 5)


def test_a_deleted_task_is_unknown() -> None:
    held = DefaultCmsTasks()
    default.create(held, ask("t1"), 5)
    default.delete(held, "t1")
    with pytest.raises(UnknownTask):
        default.poll(held, "t1", 5)


def test_running_work_declared_again_is_granted_however_many_hosts_are_busy() -> None:
    held = DefaultCmsTasks()
    default.create(held, ask("t1"), 1)
    running = Request("t2", ("h2",), "reboot", "automation", is_running=True)
    assert default.create(held, running, 1).verdict == VERDICT_OK
