"""The page about limits and credits, sentence by sentence."""

from __future__ import annotations

import pytest

from tests.support.walle.fuses import DAY, HOUR, Panel
from walle.fuses.admission import AutomaticAction
from walle.fuses.fuse import Automation
from walle.fuses.limits import DEAD, DNS_FIXES, GLOBAL_NAMES, BadLimit, format_limit, parse_limit, parse_pair
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_MAINTENANCE,
    HOST_STATE_PROBATION,
    OPERATION_KIND_CHANGE_DISK,
    OPERATION_KIND_CHANGE_MEMORY,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_PROFILE,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OPERATION_KIND_REPAIR_LINK,
)


@pytest.fixture
def panel() -> Panel:
    return Panel()


def test_healing_and_dns_are_separate_automations(panel: Panel) -> None:
    panel.trip_dns()
    assert panel.is_off(Automation.DNS)
    assert panel.reboot("h1")
    panel = Panel()
    panel.trip_healing()
    assert panel.is_off(Automation.HEALING)
    assert panel.fix_dns("h1")


def test_too_many_automatic_actions_blow_the_fuse_and_everything_automatic_stops(panel: Panel) -> None:
    panel.trip_healing()
    panel.advance(10 * DAY)
    assert not panel.reboot("much-later")
    assert not panel.act(AutomaticAction("other", "disk", OPERATION_KIND_CHANGE_DISK, HOST_STATE_ASSIGNED))


def test_a_person_switches_the_automation_on_again(panel: Panel) -> None:
    panel.trip_healing()
    panel.switch_on()
    assert panel.reboot("h99")


def test_limits_exist_in_the_project_and_in_all_of_walle() -> None:
    panel = Panel(limits={"UNREACHABLE": ["1d:100"]}, global_limits={"max_rebooted_hosts": ["1d:3"]})
    assert [panel.reboot(f"h{i}") for i in range(4)] == [True, True, True, False]
    assert panel.tripped == ["global"]
    assert not panel.is_off(Automation.HEALING)  # the project's own switch is on


def test_a_limit_of_a_check_bounds_only_its_own_firings() -> None:
    panel = Panel(limits={"ssh": ["1d:1"]})
    assert panel.reboot("h1", check="ssh")
    assert panel.reboot("h2", check="UNREACHABLE")
    assert not panel.reboot("h3", check="ssh")


def test_checks_of_a_projects_own_scheme_can_have_limits_too() -> None:
    panel = Panel(limits={"smart": ["1d:1"]})
    change = [AutomaticAction(f"h{i}", "smart", OPERATION_KIND_CHANGE_DISK, HOST_STATE_ASSIGNED) for i in range(2)]
    assert [panel.act(one) for one in change] == [True, False]


def test_limits_as_the_command_line_writes_them() -> None:
    """--dns-fixes 1d:5 --ssh 2h:5 -o smart 1d:10"""
    panel = Panel(limits={DNS_FIXES: ["1d:5"], "ssh": ["2h:5"], "smart": ["1d:10"]})
    assert sum(panel.reboot(f"h{i}", check="ssh") for i in range(6)) == 5
    assert sum(panel.fix_dns(f"h{i}") for i in range(6)) == 5


def test_dns_is_limited_by_the_hosts_whose_records_were_fixed() -> None:
    panel = Panel(limits={DNS_FIXES: ["1d:2"]})
    assert panel.fix_dns("h1")
    assert panel.fix_dns("h1")  # the same host
    assert panel.fix_dns("h2")
    assert not panel.fix_dns("h3")


def test_hosts_that_went_dead_have_a_limit_of_their_own() -> None:
    panel = Panel(limits={DEAD: ["1d:2"]})
    assert [panel.die(f"h{i}") for i in range(3)] == [True, True, False]
    assert panel.is_off(Automation.HEALING)


def test_each_of_several_pairs_of_period_and_count_is_checked() -> None:
    panel = Panel(limits={"UNREACHABLE": ["2h:2", "1d:3"]})
    assert panel.reboot("h1")
    assert panel.reboot("h2")
    panel.advance(2 * HOUR)
    assert panel.reboot("h3")  # 2h: one; 1d: three
    panel.advance(2 * HOUR)
    assert not panel.reboot("h4")  # 2h: one, but 1d: four


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86400)])
def test_periods_are_a_number_and_s_m_h_or_d(text: str, seconds: int) -> None:
    assert parse_pair(f"{text}:7").period_s == seconds
    assert format_limit(parse_limit([f"{text}:7"])) == f"{text}:7"


@pytest.mark.parametrize(
    "text", ["1d", "1w:5", "d:5", "1d:", "1d:-1", "0s:5", "1.5h:3", " 1d:5", "1d:1001", "1d:٣", "91d:1"]
)
def test_a_malformed_pair_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadLimit, match=r"for example 2h|1d:10"):
        parse_pair(text)


def test_a_period_said_twice_is_refused() -> None:
    with pytest.raises(BadLimit, match="twice"):
        parse_limit(["24h:5", "1d:10"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (OPERATION_KIND_REBOOT, "max_rebooted_hosts"),
        (OPERATION_KIND_PROFILE, "max_profiled_hosts"),
        (OPERATION_KIND_REDEPLOY, "max_redeployed_hosts"),
        (OPERATION_KIND_CHANGE_MEMORY, "max_memory_changes"),
        (OPERATION_KIND_CHANGE_DISK, "max_disk_changes"),
        (OPERATION_KIND_REPAIR_LINK, "max_link_repairs"),
        (OPERATION_KIND_DNS_FIX, "max_dns_fixes"),
        (None, "max_dead_hosts"),
    ],
)
def test_each_global_limit_bounds_one_kind_of_action(kind: int, name: str) -> None:
    panel = Panel(global_limits={name: ["1d:1"]})
    assert name in GLOBAL_NAMES
    first, second = (AutomaticAction(host, "any", kind, HOST_STATE_ASSIGNED) for host in ("h1", "h2"))  # type: ignore[arg-type]
    assert panel.act(first)
    assert not panel.act(second)
    assert panel.tripped == ["global"]


@pytest.mark.parametrize("state", [HOST_STATE_MAINTENANCE, HOST_STATE_PROBATION])
def test_hosts_in_maintenance_and_probation_use_no_limits(state: int) -> None:
    panel = Panel()
    assert all(panel.reboot(f"h{i}", state=state) for i in range(50))
    assert sum(panel.reboot(f"a{i}") for i in range(11)) == 10


def test_probation_hosts_are_healed_without_a_limit_while_the_automation_is_on(panel: Panel) -> None:
    assert all(panel.reboot(f"h{i}", state=HOST_STATE_PROBATION) for i in range(1000))
    panel.trip_healing()
    assert not panel.reboot("h1001", state=HOST_STATE_PROBATION)


def test_by_default_ten_firings_of_each_check_pass_in_a_day(panel: Panel) -> None:
    for check in ("UNREACHABLE", "ssh"):
        assert all(panel.reboot(f"{check}{i}", check=check) for i in range(10))
    assert not panel.reboot("the-eleventh")


def test_the_window_of_a_limit_excludes_its_beginning(panel: Panel) -> None:
    assert all(panel.reboot(f"h{i}") for i in range(10))
    panel.advance(DAY - 1)
    before = Panel.like(panel)
    assert not before.reboot("h10")
    panel.advance(1)
    assert panel.reboot("h10")


def test_switching_on_resets_the_counters(panel: Panel) -> None:
    panel.trip_healing()
    panel.switch_on()
    assert sum(panel.reboot(f"again{i}") for i in range(11)) == 10


def test_switching_on_an_automation_that_is_on_resets_no_counter(panel: Panel) -> None:
    for i in range(10):
        panel.reboot(f"h{i}")
        panel.switch_on()
    assert not panel.reboot("h10")


def test_switching_healing_on_leaves_the_counters_of_dns() -> None:
    panel = Panel(limits={DNS_FIXES: ["1d:1"]})
    panel.fix_dns("h1")
    panel.trip_healing()
    panel.switch_on()
    assert not panel.fix_dns("h2")


def test_switching_on_records_who_why_and_what_was_reset(panel: Panel) -> None:
    panel.trip_healing()
    panel.switch_on(by="alice", reason="rack 7 has power again")
    newest, tripped = panel.project.switching
    assert (newest.by, newest.reason, newest.off, newest.marks_cleared) == (
        "alice",
        "rack 7 has power again",
        False,
        10,
    )
    assert (tripped.by, tripped.off) == ("automation", True)
    assert "UNREACHABLE 1d:10" in tripped.reason


def test_during_their_time_credits_let_more_through_than_the_limit(panel: Panel) -> None:
    """projects automation enable --credit-time 1h --unreachable 100 --ssh 100"""
    panel.trip_healing()
    panel.switch_on(credits_={"UNREACHABLE": 100, "ssh": 100}, credit_s=HOUR)
    assert all(panel.reboot(f"h{i}") for i in range(100))
    assert all(panel.reboot(f"s{i}", check="ssh") for i in range(100))


def test_after_the_credits_are_spent_the_limits_hold(panel: Panel) -> None:
    panel.switch_on(credits_={"UNREACHABLE": 100}, credit_s=HOUR)
    assert sum(panel.reboot(f"h{i}") for i in range(120)) == 110  # what credits paid for is not in the window


def test_after_the_time_of_the_credits_the_limits_hold(panel: Panel) -> None:
    panel.switch_on(credits_={"UNREACHABLE": 100}, credit_s=HOUR)
    assert all(panel.reboot(f"h{i}") for i in range(50))
    panel.advance(HOUR)
    assert sum(panel.reboot(f"later{i}") for i in range(20)) == 10


def test_credits_are_used_before_the_limit(panel: Panel) -> None:
    panel.switch_on(credits_={"UNREACHABLE": 1}, credit_s=HOUR)
    panel.reboot("h1")
    assert [(m.host, m.by_credit) for m in panel.project.mark] == [("h1", True)]


def test_a_new_grant_replaces_the_old_one(panel: Panel) -> None:
    panel.switch_on(credits_={"UNREACHABLE": 100}, credit_s=HOUR)
    panel.switch_on(credits_={"UNREACHABLE": 1}, credit_s=HOUR)
    assert sum(panel.reboot(f"h{i}") for i in range(20)) == 11


def test_credits_never_lift_a_global_limit() -> None:
    panel = Panel(global_limits={"max_rebooted_hosts": ["1d:5"]})
    panel.switch_on(credits_={"UNREACHABLE": 100}, credit_s=HOUR)
    assert sum(panel.reboot(f"h{i}") for i in range(10)) == 5
    assert panel.project.credit[0].left == 95  # what the global limit refused cost nothing


def test_limits_count_work_that_begins_and_not_work_under_way(panel: Panel) -> None:
    """A few redeploys a day that never end do not trip the fuse: how many run at a time is up to the CMS."""
    for day in range(30):
        assert all(panel.reboot(f"day{day}-{i}") for i in range(5))
        panel.advance(DAY)


def test_a_wrong_wall_clock_resets_no_counter(panel: Panel) -> None:
    assert all(panel.reboot(f"h{i}") for i in range(10))
    panel.wall_jumps(30 * DAY)
    assert not panel.reboot("h10")
