"""What is done about a host: schemes, settling, states, and racks that fail as one."""

from __future__ import annotations

import pytest

from tests.support.walle.hosts import NOW_MS, a_host, a_project, repaired
from walle.fuses.fuse import Automation
from walle.healing.decision import AGAIN_WITHIN_MS, SETTLE_MS, decide
from walle.healing.incidents import BadBounds, Incidents, check_bounds
from walle.healing.scheme import BadScheme, check_scheme
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_FREE,
    HOST_STATE_MAINTENANCE,
    HOST_STATE_PROBATION,
    HOST_STATUS_DEAD,
    HOST_STATUS_MANUAL,
    HOST_STATUS_READY,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_PREPARE,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OUTCOME_CANCELLED,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_REJECTED,
    Host,
    OperationKind,
    Outcome,
)
from wallepb.v1.project_pb2 import IncidentBounds, Scheme

REBOOT, REDEPLOY = OPERATION_KIND_REBOOT, OPERATION_KIND_REDEPLOY


def decided(host: Host, incidents: Incidents | None = None, now_ms: int = NOW_MS) -> str:
    return str(decide(host, a_project(), incidents or Incidents(), now_ms))


def test_an_unreachable_host_is_rebooted_first() -> None:
    assert decided(a_host("h1", "UNREACHABLE")) == "h1: reboot, since UNREACHABLE fails"


def test_of_several_failing_checks_the_most_important_one_is_acted_on() -> None:
    assert decided(a_host("h1", "dns", "disk", "UNREACHABLE")).startswith("h1: reboot")


def test_a_check_in_no_scheme_causes_nothing() -> None:
    assert decided(a_host("h1", "fan-noise")) == "h1: nothing to do"


@pytest.mark.parametrize(
    ("last_step", "last_kind", "outcome", "expected"),
    [
        (0, REBOOT, OUTCOME_FAILED, "redeploy"),
        (0, REBOOT, OUTCOME_DONE, "redeploy"),  # it helped, but not for a day
        (0, REBOOT, OUTCOME_CANCELLED, "reboot"),
        (1, REDEPLOY, OUTCOME_FAILED, "declare it dead"),
        (0, REBOOT, OUTCOME_REJECTED, "declare it dead"),
    ],
)
def test_the_next_step_follows_from_how_the_last_one_ended(
    last_step: int, last_kind: OperationKind, outcome: Outcome, expected: str
) -> None:
    host = repaired(a_host("h1", "UNREACHABLE"), "UNREACHABLE", last_step, last_kind, outcome, NOW_MS - 1000)
    assert decided(host).startswith(f"h1: {expected}")


def test_a_check_that_was_fine_for_a_day_begins_at_the_first_step_again() -> None:
    host = repaired(a_host("h1", "ssh"), "ssh", 1, REDEPLOY, OUTCOME_DONE, NOW_MS - AGAIN_WITHIN_MS)
    assert decided(host).startswith("h1: reboot")


def test_a_host_is_never_given_up_for_its_dns() -> None:
    host = repaired(a_host("h1", "dns"), "dns", 0, OPERATION_KIND_DNS_FIX, OUTCOME_FAILED, NOW_MS - 1000)
    decision = decide(host, a_project(), Incidents(), NOW_MS, lane=Automation.DNS)
    assert str(decision).startswith("h1: dns-fix")


def test_a_projects_own_scheme_comes_before_walles() -> None:
    project = a_project()
    project.scheme.append(Scheme(check="UNREACHABLE", step=[REDEPLOY]))
    step = decide(a_host("h1", "UNREACHABLE"), project, Incidents(), NOW_MS).step
    assert step is not None
    assert step.kind == REDEPLOY


@pytest.mark.parametrize(
    ("scheme", "why"),
    [
        ([Scheme(check="", step=[REBOOT])], "empty or named twice"),
        ([Scheme(check="a", step=[REBOOT])] * 2, "empty or named twice"),
        ([Scheme(check="a", step=[OPERATION_KIND_PREPARE])], "prepare is not a repair"),
        ([Scheme(check="a", step=[OPERATION_KIND_DNS_FIX, REBOOT])], "must be the only step"),
    ],
)
def test_an_invalid_scheme_is_refused(scheme: list[Scheme], why: str) -> None:
    with pytest.raises(BadScheme, match=why):
        check_scheme(scheme)


def test_a_check_must_fail_for_a_while_before_it_counts() -> None:
    host = a_host("h1", "ssh", since_ms=NOW_MS - SETTLE_MS + 1)
    assert "not now: failing for 299 s, counts from 300 s" in decided(host)
    assert "not now" not in decided(host, now_ms=NOW_MS + 1)


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (a_host("h1", "ssh", state=HOST_STATE_FREE), "state free"),
        (a_host("h1", "ssh", state=HOST_STATE_MAINTENANCE), "state maintenance"),
        (a_host("h1", "ssh", status=HOST_STATUS_DEAD), "status dead"),
        (a_host("h1", "ssh", status=HOST_STATUS_MANUAL), "status manual"),
    ],
)
def test_hosts_out_of_use_or_under_other_work_are_left_alone_with_the_reason(host: Host, why: str) -> None:
    assert f"not now: {why}" in decided(host)


@pytest.mark.parametrize("state", [HOST_STATE_ASSIGNED, HOST_STATE_PROBATION])
def test_hosts_in_use_and_on_probation_are_healed(state: int) -> None:
    assert "not now" not in decided(a_host("h1", "ssh", state=state))  # type: ignore[arg-type]


def test_failing_checks_of_a_host_in_a_scenario_cause_no_repair() -> None:
    host = a_host("h1", "ssh")
    host.scenario = "switch-1"
    assert "not now: scenario switch-1" in decided(host)


def rack(failing: int, total: int, **where: str) -> list[Host]:
    return [a_host(f"h{i}", *(["UNREACHABLE"] if i < failing else []), **where) for i in range(total)]  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["rack", "switch"])
def test_when_most_hosts_of_a_rack_or_switch_fail_it_is_one_incident_and_no_host_is_touched(kind: str) -> None:
    incidents, hosts = Incidents(), rack(21, 40, **{kind: "r7"})
    assert [str(one) for one in incidents.observe(hosts, NOW_MS)] == [
        f"{kind} r7: 21 of 40 hosts fail together: no repair begins"
    ]
    assert f"not now: incident: {kind} r7" in decided(hosts[0], incidents)
    assert incidents.observe(hosts, NOW_MS + 1) == []  # it is said once


def test_half_of_a_rack_failing_is_no_incident() -> None:
    incidents, hosts = Incidents(), rack(20, 40, rack="r7")
    assert incidents.observe(hosts, NOW_MS) == []


def test_checks_in_no_scheme_of_the_project_make_no_incident() -> None:
    """Otherwise alerts about the load of three hosts would stop a repair in their rack."""
    hosts = [a_host("h0", "ssh", rack="r7"), *(a_host(f"h{i}", "cpu", rack="r7") for i in range(1, 4))]
    incidents = Incidents()
    assert incidents.observe(hosts, NOW_MS) == []
    assert "not now" not in decided(hosts[0], incidents, NOW_MS)
    own = a_project()
    own.scheme.add(check="cpu", step=[OPERATION_KIND_REBOOT])
    assert len(Incidents(project={"web": own}.get).observe(hosts, NOW_MS)) == 1


def test_each_project_sets_for_its_own_hosts_when_a_failing_rack_is_an_incident() -> None:
    wary, other = a_project(), a_project()
    wary.incidents.CopyFrom(IncidentBounds(min_hosts=2, begins_percent=10, ends_percent=5))
    other.id = "db"
    hosts = rack(2, 10, rack="r7")
    hosts[1].project = other.id
    incidents = Incidents(project={"web": wary, "db": other}.get)
    incidents.observe(hosts, NOW_MS)
    assert "incident: rack r7: 2 of 10 hosts fail together" in decided(hosts[0], incidents)
    assert "not now" not in decided(hosts[1], incidents)
    hosts[1].check[0].failing = False
    incidents.observe(hosts, NOW_MS)
    assert "incident: rack r7: 1 of 10" in decided(hosts[0], incidents), "10 % are more than 5 %"
    wary.incidents.ends_percent = 10  # who changes the bounds has them at once
    incidents.observe(hosts, NOW_MS)
    assert "incident" not in decided(hosts[0], incidents)


@pytest.mark.parametrize(
    ("failing", "bounds"), [(30, IncidentBounds(ends_percent=40)), (12, IncidentBounds(min_hosts=20))]
)
def test_changed_bounds_do_not_skip_the_settle_time(failing: int, bounds: IncidentBounds) -> None:
    """The incident ends at once or later by the new bounds; either way hosts then get the full settle time."""
    project = a_project()
    incidents = Incidents(project={"web": project}.get)
    incidents.observe(rack(40, 40, rack="r7"), NOW_MS)
    project.incidents.CopyFrom(bounds)
    hosts = rack(failing, 40, rack="r7")
    assert incidents.observe(hosts, NOW_MS) == []
    assert incidents.incident_of(hosts[0]), "it has not begun under these bounds, and lasts until they let it end"
    hosts = rack(10, 40, rack="r7")
    incidents.observe(hosts, NOW_MS + 1000)
    assert not incidents.open
    project.incidents.Clear()
    incidents.observe(hosts, NOW_MS + 2000)
    assert "not now: failing for 1 s" in decided(hosts[0], incidents, NOW_MS + 2000)
    assert "not now" not in decided(hosts[0], incidents, NOW_MS + 1000 + SETTLE_MS)


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        (IncidentBounds(min_hosts=1), "incidents.min_hosts: 1"),
        (IncidentBounds(begins_percent=100), "incidents.begins_percent: 100"),
        (IncidentBounds(ends_percent=60), "incidents.ends_percent: 60 is more than begins_percent, 50"),
    ],
)
def test_bounds_under_which_no_incident_could_begin_or_end_are_refused(bounds: IncidentBounds, why: str) -> None:
    with pytest.raises(BadBounds, match=why):
        check_bounds(bounds)
    check_bounds(IncidentBounds(begins_percent=99))


def test_two_failing_hosts_are_no_incident() -> None:
    assert Incidents().observe(rack(2, 2, rack="r7"), NOW_MS) == []


def test_hosts_that_have_just_begun_to_fail_count_for_an_incident() -> None:
    """Otherwise the first host of a dying rack would be rebooted before the others have failed for long enough."""
    hosts = rack(3, 4, rack="r7")
    for host in hosts[1:]:
        for check in host.check:
            check.since_ms = NOW_MS
    assert len(Incidents().observe(hosts, NOW_MS)) == 1


def test_dead_hosts_do_not_count_for_an_incident_of_the_healthy_ones() -> None:
    dead = [a_host(f"d{i}", "UNREACHABLE", rack="r7", status=HOST_STATUS_DEAD) for i in range(38)]
    assert Incidents().observe([*dead, *rack(1, 2, rack="r7")], NOW_MS) == []


def test_an_incident_lasts_until_three_quarters_are_back_and_the_rest_gets_time_to_start() -> None:
    incidents = Incidents()
    incidents.observe(rack(40, 40, rack="r7"), NOW_MS)
    incidents.observe(rack(11, 40, rack="r7"), NOW_MS + 1000)
    assert incidents.open
    hosts = rack(10, 40, rack="r7")
    incidents.observe(hosts, NOW_MS + 2000)
    assert not incidents.open
    assert "not now: failing for 0 s" in decided(hosts[0], incidents, NOW_MS + 2000)
    assert "not now" not in decided(hosts[0], incidents, NOW_MS + 2000 + SETTLE_MS)


def test_a_process_that_has_just_started_begins_no_repair_for_a_while() -> None:
    incidents = Incidents(watched_since_ms=NOW_MS)
    assert "not now" in decided(a_host("h1", "ssh", status=HOST_STATUS_READY), incidents)
