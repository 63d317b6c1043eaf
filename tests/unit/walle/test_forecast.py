"""The forecast of what switching automation on would do."""

from __future__ import annotations

from tests.support.walle.fuses import HOUR, Panel
from walle.fuses.admission import AutomaticAction, WaitingHosts, forecast
from walle.fuses.fuse import Automation
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, HOST_STATE_PROBATION, OPERATION_KIND_REBOOT
from wallepb.v1.project_pb2 import Credit


def reboots(count: int, check: str = "UNREACHABLE", state: int = HOST_STATE_ASSIGNED) -> list[AutomaticAction]:
    return [AutomaticAction(f"{check}{i}", check, OPERATION_KIND_REBOOT, state) for i in range(count)]  # type: ignore[arg-type]


def told(panel: Panel, actions: list[AutomaticAction], **credits_: int) -> list[WaitingHosts]:
    given = [Credit(counter=name, left=left) for name, left in credits_.items()]
    return forecast(panel.fuses(), actions, Automation.HEALING, given, panel.now.ms)


def test_a_forecast_has_the_waiting_hosts_the_limit_that_would_trip_and_the_credits_needed() -> None:
    first = told(Panel(), reboots(140))[0]
    assert str(first) == (
        "UNREACHABLE: 140 hosts wait, the limit is 1d:10: the fuse would trip at once; credits needed: 130"
    )


def test_with_the_credits_of_the_forecast_all_hosts_pass() -> None:
    panel = Panel()
    needed = told(panel, reboots(140))[0].credit_needed
    assert not any(w.trips for w in told(panel, reboots(140), UNREACHABLE=needed))
    panel.switch_on(credits_={"UNREACHABLE": needed}, credit_s=HOUR)
    assert all(panel.act(one) for one in reboots(140))


def test_with_one_credit_less_than_forecast_the_fuse_trips() -> None:
    panel = Panel()
    needed = told(panel, reboots(140))[0].credit_needed - 1
    assert told(panel, reboots(140), UNREACHABLE=needed)[0].trips
    panel.switch_on(credits_={"UNREACHABLE": needed}, credit_s=HOUR)
    assert not all(panel.act(one) for one in reboots(140))


def test_a_global_limit_that_would_trip_is_named_without_an_offer_of_credit() -> None:
    panel = Panel(limits={"UNREACHABLE": ["1d:100"]}, global_limits={"max_rebooted_hosts": ["1d:20"]})
    assert "credits do not raise a global limit" in str(told(panel, reboots(21))[0])


def test_a_forecast_counts_what_others_used_of_a_global_limit() -> None:
    panel = Panel({"UNREACHABLE": ["1d:100"], "ssh": ["1d:100"]}, {"max_rebooted_hosts": ["1d:20"]})
    for one in reboots(15, "ssh"):
        panel.act(one)
    assert [w.passes for w in told(panel, reboots(6)) if w.is_global] == [5]


def test_a_forecast_leaves_out_probation_hosts() -> None:
    assert told(Panel(), reboots(500, state=HOST_STATE_PROBATION)) == []


def test_while_automation_is_on_a_forecast_counts_what_was_used_already() -> None:
    panel = Panel()
    for one in reboots(4, "ssh"):
        panel.act(one)
    more = [AutomaticAction(f"new{i}", "ssh", OPERATION_KIND_REBOOT, HOST_STATE_ASSIGNED) for i in range(7)]
    assert told(panel, more)[0].passes == 6
