"""status, why, events, top, guard, planned work: what an operator asks at three in the morning."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from hqctl.commands import explaining
from hqctl.output import rows
from tests.clients.deeds import hang
from tests.clients.fake_hq import FakeReplica
from tests.clients.hqctl.conftest import Done, Hqctl, documents, serving

PATIENCE_S = 40.0


@pytest.fixture
def nervous(run: Callable[..., Done], hasty: str) -> Hqctl:
    """hqctl at the replica that calls a revision silent after two seconds."""

    def call(*arguments: str, stdin: str = "") -> Done:
        return run(*arguments, stdin=stdin, HQ_SERVER=hasty)

    return call


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:g} s in vain: {what}"
        time.sleep(0.2)


@pytest.fixture
def fallen(nervous: Hqctl, service: str) -> str:
    """An instance whose agent reported once and was then silent for too long."""
    name = f"{service}-1"
    nervous("apply", "-f", "-", stdin=documents(service, "1", node="node-x"))
    nervous("report", name, "r1", "--ready")
    until(lambda: "expiry" in nervous("events", name).out, "the silent revision is expired")
    return name


@pytest.mark.long
def test_the_flag_silent_finds_and_deletes_only_instances_with_a_silent_agent(nervous: Hqctl, service: str) -> None:
    lost, heard = f"{service}-lost", f"{service}-heard"
    for name in ("lost", "heard"):
        nervous("apply", "-f", "-", stdin=documents(service, name, node=f"node-{service}-{name}"))
    nervous("suspend", f"node-{service}-heard", "--for", "5m", "--reason", "it stays heard, however slow this test is")
    for name in (lost, heard):
        nervous("report", name, "r1", "--ready")
    until(lambda: nervous("find", service, "--silent", "-o", "name").out != "", "one is silent")
    assert nervous("find", service, "--silent", "-o", "name").lines == [[lost]]
    assert nervous("delete", "--service", service, "--silent", "--yes").out == f"{lost} deleted\n"
    (left,) = json.loads(nervous("find", service, "-o", "json").out)["items"]
    assert (left["meta"]["id"], left["status"]["agent"]["status"]) == (heard, "CONDITION_STATUS_TRUE")
    nervous("resume", f"node-{service}-heard")


@pytest.mark.long
def test_why_tells_the_cause_since_when_and_what_to_do_next(nervous: Hqctl, fallen: str) -> None:
    story = nervous("why", fallen).out
    verdict, *rest = story.splitlines()
    assert verdict.startswith(f"{fallen} has been NOT READY since ")
    assert "no report for" in story
    assert any(line.startswith("  next: Is the agent alive, and does it reach HQ from node-x?") for line in rest)
    assert "What happened:" in rest
    assert "marked not ready by" in story


def test_a_clock_that_was_set_back_does_not_make_old_reports_look_new(
    hqctl: Hqctl, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{service}-1"
    hqctl("apply", "-f", "-", stdin=documents(service, "1"))
    hqctl("report", name, "r1", "--ready")
    an_hour_late = SimpleNamespace(time=lambda: time.time() - 3600)
    for module in (rows, explaining):  # in hqctl alone: gRPC would take its deadlines for passed
        monkeypatch.setattr(module, "time", an_hour_late)
    (row,) = hqctl("find", service, "--no-headers").lines
    assert row[-1].startswith(("ahead:59m", "ahead:1h"))
    story = hqctl("why", name).out
    assert "ahead of this machine's clock)." in story.splitlines()[0]
    (heard,) = [line for line in story.splitlines() if "last report   " in line]
    assert heard.split()[3] == "ago,", "what the replica measured itself is told as it is"


@pytest.mark.long
def test_an_expiry_is_an_event_with_its_receipt_and_so_is_the_recovery(nervous: Hqctl, fallen: str) -> None:
    (event,) = json.loads(nervous("events", fallen, "-o", "json").out)["items"]
    assert event["condition"]["receipt"]["decidedBy"]
    nervous("report", fallen, "r1", "--ready")
    # Newest first; silent once more for two seconds, it may be expired again already.
    *_, newest, oldest = nervous("events", fallen, "--no-headers", "--limit", "9").lines
    assert (newest[1], oldest[1]) == ("recovery", "expiry")
    assert oldest[2:5] == [fallen, "r1", "node-x"]
    assert "silent" in oldest


@pytest.mark.long
def test_status_counts_the_expiries_and_names_the_way_to_them(nervous: Hqctl, fallen: str) -> None:
    done = nervous("status")
    assert done.out.startswith("hasty: ")
    assert "in the last hour, on" in done.out
    assert "next: `hqctl events` shows them" in done.out


def test_status_asks_each_server_by_itself(run: Callable[..., Done], server: str) -> None:
    done = run("--server", server, "--server", "127.0.0.1:1", "status")
    assert done.code == 1, "there is a problem"
    assert " PROBLEM" in done.out.splitlines()[0]
    assert "! 127.0.0.1:1 does not respond" in done.out
    answers = {line[0]: line[3] for line in done.lines if line and line[0] in (server, "127.0.0.1:1")}
    assert answers == {server: "ok", "127.0.0.1:1": "silent"}


@pytest.mark.long
def test_status_exits_with_0_if_all_is_well_and_with_1_if_many_are_not_ready(
    run: Callable[..., Done], service: str, tmp_path: Path
) -> None:
    with serving(tmp_path / "log", "hq.main", "dev", "--store", "memory", "--cluster", "fresh") as fresh:
        assert run("--server", fresh, "status").code == 0
        run("--server", fresh, "apply", "-f", "-", stdin=documents(service, "1", "2", "3"))
        run("--server", fresh, "report", f"{service}-1", "r1", "--ready")
        run("--server", fresh, "report", f"{service}-2", "r1", "--not-ready")
        done = run("--server", fresh, "status")
    assert done.code == 1
    assert done.out.startswith("fresh: 1 PROBLEM, 1 of 3 instances ready")
    assert f"! 2 of 3 instances not ready (1 of them never reported): {service} 2 of 3." in done.out


def test_describe_prints_the_explanation_and_the_instance(hqctl: Hqctl, service: str) -> None:
    name = f"{service}-1"
    hqctl("apply", "-f", "-", stdin=documents(service, "1"))
    done = hqctl("describe", name)
    assert done.code == 0, done.err
    assert done.out.startswith(f"{name} has not been reported yet")
    _, _, instance = done.out.partition("\nInstance:\n")
    assert yaml.safe_load(instance)["meta"]["labels"] == {"tier": "t1"}
    both = json.loads(hqctl("describe", name, "-o", "json").out)
    assert both["instance"]["meta"] == both["explanation"]["meta"]
    assert hqctl("describe", f"{service}-9").code == 3


def test_the_service_that_was_probably_meant_is_named(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1"))
    wrong = service[:-2] + service[-1] + service[-2] + "x"
    for command in ("find", "count", "top", "get --service"):
        done = hqctl(*command.split(), wrong)
        assert done.code == 0
        assert f"no service {wrong!r}: did you mean {service!r}" in done.err
    assert "did you mean" not in hqctl("find", service, "--node", "elsewhere").err
    assert hqctl("find", "unlike-anything").err.splitlines()[-1] == "no service 'unlike-anything'."


def test_status_without_any_server_is_unavailable(run: Callable[..., Done]) -> None:
    done = run("--server", "127.0.0.1:1", "status")
    assert done.code == 5
    assert "no server responds" in done.err


def test_status_in_json_has_findings_and_facts(hqctl: Hqctl) -> None:
    answer = json.loads(hqctl("status", "-o", "json").out)
    assert {"findings", "instances", "servers", "replicas", "members", "guard"} <= set(answer)
    assert answer["members"][0]["endpoint"] == "memory"


@pytest.mark.long
def test_the_guard_is_forced_and_released_on_record(nervous: Hqctl) -> None:
    forced = nervous("guard", "force", "--for", "1m", "--reason", "a switch is replaced", "--by", "night shift")
    assert forced.code == 0
    assert "night shift" in nervous("status").out
    shown = nervous("guard", "status").out
    assert "a switch is replaced" in shown
    nervous("guard", "release", "--for", "1s", "--reason", "done")


def test_a_node_is_suspended_listed_and_resumed(hqctl: Hqctl, service: str) -> None:
    node = f"node-{service}"
    assert hqctl("suspend", node, "--for", "30m", "--reason", "new disk").code == 0
    rows = {line[0]: line for line in hqctl("suspensions").lines}
    assert rows[node][2].startswith(("29m", "30m"))
    assert f"planned work on {node} until" in hqctl("status").out
    assert hqctl("resume", node).code == 0
    assert hqctl("resume", node).code == 3


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (("suspend", "node-a", "--for", "30d", "--reason", "disk"), "--for"),
        (("suspend", "node-a", "--for", "1m", "--reason", "x" * 2000), "--reason"),
        (("suspend", "node a", "--for", "1m", "--reason", "disk"), "NODE"),
        (("guard", "force", "--for", "30d", "--reason", "switch"), "--for"),
        (("guard", "release", "--reason", "switch", "--by", "a\nb"), "--by"),
    ],
)
def test_a_faulty_order_is_refused_by_the_flag_that_was_typed(
    hqctl: Hqctl, command: tuple[str, ...], flag: str
) -> None:
    done = hqctl(*command)
    assert done.code == 1
    assert done.err.startswith(f"hqctl: {flag}: ")


@pytest.mark.long
async def test_an_order_with_an_unknown_outcome_names_the_command_that_shows_it(
    run: Callable[..., Done], replicas: list[FakeReplica]
) -> None:
    replicas[0].order("SuspendNode", hang)
    command = ("suspend", "node-a", "--for", "1m", "--reason", "disk", "--timeout", "4s")
    done = await asyncio.to_thread(run, *command, "--server", replicas[0].address)
    assert done.code == 6
    assert "check with `hqctl suspensions`" in done.err


def test_a_node_without_instances_is_suspended_with_a_warning(hqctl: Hqctl, service: str) -> None:
    node = f"node-{service}"
    done = hqctl("suspend", node, "--for", "1m", "--reason", "a slip")
    assert done.code == 0
    assert f"no instance is on {node}" in done.err
    hqctl("resume", node)
    hqctl("apply", "-f", "-", stdin=documents(service, "1", node=node))
    assert hqctl("suspend", node, "--for", "1m", "--reason", "disk").err == ""
    hqctl("resume", node)


def test_top_shows_size_readiness_and_churn_of_services(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1", "2", "3"))
    hqctl("report", f"{service}-1", "r1", "--ready")
    done = hqctl("top", service, "--since", "1h")
    assert done.lines[0] == [
        "SERVICE",
        "INSTANCES",
        "READY",
        "NOT-READY",
        "UNKNOWN",
        *("SHARE", "SPEC-CHANGES/1h", "READY-CHANGES/1h"),
    ]
    assert done.lines[1] == [service, "3", "1", "0", "2", "33%", "3", "1"]


def test_an_empty_quarantine_is_told_on_stderr(hqctl: Hqctl) -> None:
    done = hqctl("quarantine")
    assert (done.code, done.out, done.err) == (0, "", "Nothing is in quarantine.\n")


def test_counts_by_node_are_a_list_in_json(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1", "2"))
    items = json.loads(hqctl("count", service, "--by", "node", "-o", "json").out)["items"]
    assert items == [{"key": "node-a", "total": 2, "ready": 0, "unknown": 2, "notWanted": 0}]


def test_a_count_of_no_instances_is_zero(hqctl: Hqctl, service: str) -> None:
    assert json.loads(hqctl("count", service, "-o", "json").out)["items"] == [
        {"total": 0, "ready": 0, "unknown": 0, "notWanted": 0}
    ]
    assert hqctl("count", service, "-o", "jsonpath={.items[0].ready}").out.strip() == "0"
    assert hqctl("count", service, "--no-headers").lines == [["0", "0", "0", "0"]]


def test_an_instance_that_never_reported_is_shown_as_unknown_not_as_not_ready(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1", "2", "3", "4"))
    hqctl("report", f"{service}-1", "r1", "--ready")
    hqctl("report", f"{service}-2", "r1", "--not-ready")
    assert hqctl("count", service, "--no-headers").lines == [["4", "1", "1", "2"]]
    by_revision = {row[0]: row[1:] for row in hqctl("count", service, "--by", "revision", "--no-headers").lines}
    assert by_revision == {"r0": ["4", "0", "0", "4"], "r1": ["4", "1", "1", "2"]}


def test_secrets_that_are_not_their_services_own_are_listed(hqctl: Hqctl, service: str) -> None:
    ids = {"own": service, "below": f"{service}/db", "foreign": "mail/db", "dots": f"{service}/../mail"}
    made = [{"name": name, "provider": "vault", "id": id_, "environmentVariable": "X"} for name, id_ in ids.items()]
    spec = {"nodeName": "node-a", "revision": [{"id": "r1", "target": "REVISION_TARGET_CREATED", "secret": made}]}
    instance = {"meta": {"id": f"{service}-1", "serviceId": service}, "spec": spec}
    assert hqctl("apply", "-f", "-", stdin=json.dumps(instance)).code == 0
    done = hqctl("secrets", "audit", service)
    assert done.lines[1:] == [
        [service, f"{service}-1", "r1", "foreign", "vault:mail/db"],
        [service, f"{service}-1", "r1", "dots", f"vault:{service}/../mail"],
    ]
    items = json.loads(hqctl("secrets", "audit", service, "-o", "json").out)["items"]
    assert [item["name"] for item in items] == ["foreign", "dots"]
    assert hqctl("secrets", "audit", "no-such-service").err == "All services name their own secrets only.\n"
