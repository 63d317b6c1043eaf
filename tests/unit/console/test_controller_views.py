"""What pages make of many tasks, blockers and snapshots: short enough to be read, and nothing left out."""

from __future__ import annotations

from cmspb.v1 import cms_pb2 as cpb
from console.views.disruptions import in_the_way, lacking_by_reason, task_rows
from console.views.hosts import blockers
from console.views.repairs import incidents
from console.views.snapshots import way_back
from console.views.words import clauses, short
from nannypb.v1 import service_pb2 as npb
from wallepb.v1 import host_pb2 as hpb
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as wpb


def _task(id_: str, group: str = "") -> cpb.TaskState:
    made = cpb.TaskState(status=cpb.TASK_STATUS_IN_PROCESS)
    made.task.id, made.task.group_id = id_, group
    made.task.host.append(f"host-of-{id_}")
    return made


def test_tasks_that_are_decided_together_are_one_line() -> None:
    rows = task_rows([_task("a", "g"), _task("b"), _task("c", "g"), _task("g")])
    assert [(row.id, row.what, row.others) for row in rows] == [
        ("a", "2 hosts", 1),
        ("b", "host-of-b", 0),
        ("g", "host-of-g", 0),
    ]


def test_instances_not_ready_for_one_reason_stand_together() -> None:
    budget = cpb.BudgetState()
    for number, reason in enumerate(("HeartbeatTimeout: no report for 16 s", "HeartbeatTimeout: for 17 s", "")):
        budget.not_ready.add(standing="down", reason=reason).instance.id = f"web-{number}"
    found = [(reason, [one.instance.id for one in those]) for reason, those in lacking_by_reason(budget)]
    assert found == [("down, heartbeat timeout", ["web-0", "web-1"]), ("down", ["web-2"])]


def test_a_blocker_is_shown_once_for_all_its_hosts() -> None:
    work = ppb.Scenario(stage=ppb.SCENARIO_STAGE_ASKING)
    for number in range(3):
        task = work.host.add(name=f"h{number}").task.add(id=f"t{number}", cms="http://cms")
        task.verdict, task.message = hpb.VERDICT_IN_PROCESS, "web has no room"
    work.host.add(name="h3").by_hand.append("default")
    work.host.add(name="h4").task.add(verdict=hpb.VERDICT_OK)
    assert [(one.message, one.hosts, one.task) for one in blockers(work)] == [
        ("web has no room", ["h0", "h1", "h2"], "t0"),
        ("it cannot be asked: the owners of these hosts agree by hand", ["h3"], ""),
    ]
    work.stage = ppb.SCENARIO_STAGE_WORKING
    assert blockers(work) == []


def test_a_rack_and_its_switch_with_the_same_hosts_are_one_incident() -> None:
    hosts = []
    for number in range(4):
        host = wpb.GetHostResponse().host
        host.name, host.location.dc, host.location.rack, host.location.switch = f"h{number}", "dc", "r1", "s1"
        host.check.add(name="hq", failing=number < 3)
        if number < 2:
            host.operation.check, host.operation.kind = "hq", hpb.OPERATION_KIND_REBOOT
            host.operation.stage = hpb.STAGE_APPROVAL
        hosts.append(wpb.GetHostResponse(host=host))
    what = "3 of 4 hosts fail together: no repair begins"
    [both, other] = incidents([f"rack dc/r1: {what}", f"switch dc/s1: {what}", f"rack dc/r2: {what}"], hosts)
    assert both.title == f"rack dc/r1 and switch dc/s1: {what}"
    assert both.href == "/hosts?rack=r1"
    assert both.asked == "2 reboots were requested before this was seen; no more begin."
    assert (other.title, other.href, other.asked) == (f"rack dc/r2: {what}", "/hosts", "")


def test_the_way_back_leads_to_the_snapshot_active_before() -> None:
    service = npb.Service()
    for snapshot, target in (("new", npb.TARGET_ACTIVE), ("bad", npb.TARGET_PREPARED), ("old", npb.TARGET_PREPARED)):
        service.snapshot.add(snapshot_id=snapshot, target=target)
    told = ("target ACTIVE", "new"), ("target ACTIVE", "bad"), ("ACTIVATING -> ACTIVE (done)", "old")
    story = [npb.HistoryEntry(what=what, snapshot_id=one) for what, one in told]
    assert way_back(service, story) == "old"  # the bad one was ordered, and never became active
    service.snapshot[0].target = npb.TARGET_PREPARED  # stopped: nothing runs that one could go back from
    assert way_back(service, story) == ""


def test_long_texts_are_split_at_clauses_and_names_cut() -> None:
    assert clauses("a; b; c") == ["a", "b", "c"]
    assert clauses("") == []
    assert short("r2024-11") == "r2024-11"
    assert short("603e18fd636bb426") == "603e18fd636b"
    assert len(short("a-name-that-is-far-too-long-for-a-table")) == 25


def test_a_budget_that_can_never_allow_the_work_is_set_apart_from_one_full_now() -> None:
    why = cpb.WhyTaskResponse()
    why.budget.add(name="default:web", total=10, floor=9, available=10, needs=2, blocks=True)
    why.budget.add(name="shop", total=10, floor=8, available=9, needs=2, blocks=True)
    assert in_the_way(why).never == ["web"]
