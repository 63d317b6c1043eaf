"""The table of switch maintenance: its promises hold on every path through it."""

from __future__ import annotations

import pytest

from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from walle.approval.tasks import task_after_answer, task_after_loss
from walle.healing.operation import LEFT_TO_COLLECTOR_MS
from walle.maintenance import (
    ASK_MS,
    OVER,
    TABLE,
    WORK_MS,
    ScenarioEvent,
    advance,
    event_by_time,
    event_now,
    scenario_host,
)
from walle.work.book import HOST, SCENARIO
from walle.work.scenarios import settle_scenario
from wallepb.v1.host_pb2 import (
    HOST_STATE_MAINTENANCE,
    HOST_STATUS_DEAD,
    VERDICT_IN_PROCESS,
    VERDICT_OK,
    VERDICT_REJECTED,
    Host,
    Task,
    Verdict,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_SWITCH_MAINTENANCE,
    SCENARIO_STAGE_ASKING,
    SCENARIO_STAGE_CONFIRMING,
    SCENARIO_STAGE_FINISHED,
    SCENARIO_STAGE_PAUSED,
    SCENARIO_STAGE_REFUSED,
    SCENARIO_STAGE_RETURNING,
    SCENARIO_STAGE_UNSPECIFIED,
    SCENARIO_STAGE_WORKING,
    Cms,
    Scenario,
    ScenarioHost,
    ScenarioStage,
)


def a_scenario(stage: ScenarioStage = SCENARIO_STAGE_ASKING, *tasks: Task) -> Scenario:
    return Scenario(id="s", stage=stage, since_ms=NOW_MS, group_id="g", host=[ScenarioHost(name="h1", task=tasks)])


def reachable() -> dict[ScenarioStage, set[ScenarioStage]]:
    """Every stage, and where it can lead by one event."""
    leads: dict[ScenarioStage, set[ScenarioStage]] = {}
    todo = [a_scenario()]
    while todo:
        scenario = todo.pop()
        events = [event for stage, event in TABLE if stage == scenario.stage]
        after = [advance(scenario, event, NOW_MS) for event in events]
        known = leads.setdefault(scenario.stage, set())
        todo += [one for one in after if one.stage not in known]
        known |= {one.stage for one in after}
    return leads


def test_every_stage_can_be_reached_and_only_final_stages_lead_nowhere() -> None:
    leads = reachable()
    assert set(leads) == set(ScenarioStage.values()) - {SCENARIO_STAGE_UNSPECIFIED}
    assert all(not leads[stage] for stage in OVER)
    assert all(leads[stage] for stage in set(leads) - OVER)


def test_a_scenario_ends_only_after_everything_was_given_back() -> None:
    for stage, after in reachable().items():
        if after & OVER:
            assert stage == SCENARIO_STAGE_RETURNING


def test_the_work_begins_only_after_a_confirmation() -> None:
    assert {stage for stage, after in reachable().items() if SCENARIO_STAGE_WORKING in after} == {
        SCENARIO_STAGE_CONFIRMING,
        SCENARIO_STAGE_PAUSED,  # of work in waves, whose operations are confirmed one by one
    }


def test_a_scenario_can_be_stopped_at_every_stage_before_it_is_given_back() -> None:
    stoppable = {stage for stage, event in TABLE if event is ScenarioEvent.CANCEL}
    stages = (SCENARIO_STAGE_ASKING, SCENARIO_STAGE_CONFIRMING, SCENARIO_STAGE_WORKING, SCENARIO_STAGE_PAUSED)
    assert stoppable == set(stages)


def test_after_thirty_minutes_without_all_approvals_the_work_is_refused() -> None:
    scenario = a_scenario(SCENARIO_STAGE_ASKING, Task(id="t", created=True, verdict=VERDICT_IN_PROCESS))
    assert event_now(scenario, NOW_MS + ASK_MS - 1) is None
    assert event_now(scenario, NOW_MS + ASK_MS) is ScenarioEvent.TOO_LATE
    assert advance(scenario, ScenarioEvent.TOO_LATE, NOW_MS).ending == SCENARIO_STAGE_REFUSED


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("opens_h", "others", "forbidden_h"),
    [
        (3, [], 3.5),
        (3, [VERDICT_IN_PROCESS], 3.5),
        (3, [VERDICT_OK], 0.5),  # that CMS would hold the hosts for hours
        (25, [], 0.5),  # nothing would heal them for a day
    ],
)
def test_the_thirty_minutes_begin_when_the_calendar_of_a_cms_opens(
    opens_h: float, others: list[Verdict], forbidden_h: float
) -> None:
    waits = Task(id="t", created=True, verdict=VERDICT_IN_PROCESS, opens_ms=NOW_MS + int(opens_h * HOUR_MS))
    others_tasks = [Task(id=f"o{n}", created=True, verdict=verdict) for n, verdict in enumerate(others)]
    scenario = a_scenario(SCENARIO_STAGE_ASKING, waits, *others_tasks)
    at_ms = NOW_MS + int(forbidden_h * HOUR_MS)
    assert event_now(scenario, at_ms - 1) is None
    assert event_now(scenario, at_ms) is ScenarioEvent.TOO_LATE


def test_after_a_calendar_has_opened_other_oks_are_waited_for() -> None:
    opened = Task(id="t", created=True, verdict=VERDICT_OK, opens_ms=NOW_MS + 3 * HOUR_MS)
    other = Task(id="o", created=True, verdict=VERDICT_IN_PROCESS)
    assert event_now(a_scenario(SCENARIO_STAGE_ASKING, opened, other), NOW_MS + 3 * HOUR_MS + ASK_MS - 1) is None


def test_a_cms_that_loses_a_task_while_its_calendar_is_closed_does_not_end_the_wait() -> None:
    waits = Task(id="t", created=True, verdict=VERDICT_IN_PROCESS, opens_ms=NOW_MS + 3 * HOUR_MS)
    scenario = a_scenario(SCENARIO_STAGE_ASKING, task_after_loss(waits))
    assert event_now(scenario, NOW_MS + 2 * HOUR_MS) is None
    assert event_now(scenario, NOW_MS + 3 * HOUR_MS + ASK_MS) is ScenarioEvent.TOO_LATE


def test_the_time_when_a_calendar_opens_is_stored_once_and_is_now_after_an_early_opening() -> None:
    def answer(task: Task, opens_in_s: int, now_ms: int) -> Task:
        return task_after_answer(task, VERDICT_IN_PROCESS, "", now_ms, provisional=False, opens_in_s=opens_in_s)

    first = answer(Task(id="t"), 600, NOW_MS)
    assert first.opens_ms == NOW_MS + 600_000
    assert answer(first, 595, NOW_MS + 4_200) == first
    assert answer(first, 0, NOW_MS + 60_000).opens_ms == NOW_MS + 60_000
    assert answer(first, 0, NOW_MS + 900_000).opens_ms == NOW_MS + 600_000
    assert answer(first, 3600, NOW_MS).opens_ms == NOW_MS + HOUR_MS


def test_a_withdrawn_ok_gives_no_more_time() -> None:
    scenario = advance(a_scenario(), ScenarioEvent.ALL_OK, NOW_MS + 1000)
    assert advance(scenario, ScenarioEvent.WITHDRAWN, NOW_MS + 2000).since_ms == NOW_MS


def test_an_hour_after_the_confirmation_the_hosts_go_back() -> None:
    scenario = a_scenario(SCENARIO_STAGE_WORKING)
    assert event_by_time(scenario, NOW_MS + WORK_MS - 1) is None
    assert event_by_time(scenario, NOW_MS + WORK_MS) is ScenarioEvent.HOUR_OVER
    assert advance(scenario, ScenarioEvent.HOUR_OVER, NOW_MS).ending == SCENARIO_STAGE_FINISHED


def test_hosts_are_released_even_if_a_cms_does_not_delete_their_tasks() -> None:
    """The garbage collector deletes the tasks later; the scenario must not keep them."""
    book, scenario = DictBook(), a_scenario(SCENARIO_STAGE_RETURNING, Task(id="t", cms="http://a", created=True))
    scenario.ending, scenario.kind = SCENARIO_STAGE_FINISHED, SCENARIO_KIND_SWITCH_MAINTENANCE
    host = a_host("h1")
    host.scenario = "s"
    book.put(HOST, "h1", host)
    book.put(SCENARIO, "s", scenario)
    settle_scenario(book, "s", at(NOW_MS + LEFT_TO_COLLECTOR_MS - 1))
    assert (book.get(SCENARIO, "s") or Scenario()).stage == SCENARIO_STAGE_RETURNING
    settle_scenario(book, "s", at(NOW_MS + LEFT_TO_COLLECTOR_MS))
    over = book.get(SCENARIO, "s") or Scenario()
    assert over.stage == SCENARIO_STAGE_FINISHED
    assert not over.host[0].task
    assert "tasks at http://a could not be deleted" in over.message
    assert not (book.get(HOST, "h1") or Host()).scenario


def test_one_rejection_ends_a_scenario() -> None:
    tasks = (Task(id="a", created=True, verdict=VERDICT_OK), Task(id="b", created=True, verdict=VERDICT_REJECTED))
    assert event_now(a_scenario(SCENARIO_STAGE_ASKING, *tasks), NOW_MS) is ScenarioEvent.REJECTED


@pytest.mark.parametrize(
    "host", [a_host("h1", state=HOST_STATE_MAINTENANCE), a_host("h1", status=HOST_STATUS_DEAD)], ids=["busy", "dead"]
)
def test_hosts_that_are_not_assigned_and_ready_need_no_approval(host: Host) -> None:
    project = a_project(Cms(url="http://a", version="v1.4"))
    assert not scenario_host("i", a_scenario(), host, project, 0).task


def test_approval_by_hand_is_needed_from_older_cmss_and_the_default_one() -> None:
    project = a_project(Cms(url="default", version="v1.0"), Cms(url="http://a", version="v1.4"))
    wanted = scenario_host("i", a_scenario(), a_host("h1"), project, 3)
    assert [task.cms for task in wanted.task] == ["http://a"]
    assert list(wanted.by_hand) == ["default"]
    assert wanted.task[0].id == "walle-i.g-3-1"
