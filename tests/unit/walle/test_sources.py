"""Where checks come from, and the configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hqpb.v1.instance_pb2 import CONDITION_STATUS_FALSE, CONDITION_STATUS_TRUE, Instance
from hqpb.v1.service_pb2 import EPOCH_TRUST_DOUBTED, GuardState, Source
from walle.checks import checks_of, reports, why_not_believed
from walle.process.config import load
from walle.process.fields import BadConfig
from wallepb.v1.service_pb2 import Alert


@pytest.mark.parametrize(
    ("labels", "host", "check"),
    [
        ({"host": "h1", "check": "ssh", "alertname": "SshDown"}, "h1", "ssh"),
        ({"instance": "h1:9100", "alertname": "ssh"}, "h1", "ssh"),
        ({"instance": "h1", "alertname": "ssh"}, "h1", "ssh"),
        ({"instance": "[2001:db8::1]:9100", "alertname": "ssh"}, "2001:db8::1", "ssh"),
        ({"instance": "2001:db8::1", "alertname": "ssh"}, "2001:db8::1", "ssh"),
    ],
)
def test_an_alerts_labels_name_host_and_check(labels: dict[str, str], host: str, check: str) -> None:
    (report,), nameless = checks_of([Alert(status="firing", labels=labels)])
    assert (report.host, report.check[0].name, report.check[0].failing) == (host, check, True)
    assert nameless == []


def test_a_resolved_alert_ends_the_check() -> None:
    (report,), _ = checks_of([Alert(status="resolved", labels={"host": "h1", "check": "ssh"})])
    assert not report.check[0].failing


def test_an_alert_about_no_host_is_answered_not_refused() -> None:
    reports_, nameless = checks_of([Alert(status="firing", labels={"alertname": "EtcdSlow"})])
    assert reports_ == []
    assert nameless == ["an alert without a host: {'alertname': 'EtcdSlow'}"]


def an_instance(node: str, *expired: bool) -> Instance:
    instance = Instance()
    instance.spec.node_name = node
    for number, is_expired in enumerate(expired):
        revision = instance.status.revision.add(id=f"r{number}")
        revision.ready.status = CONDITION_STATUS_FALSE if is_expired else CONDITION_STATUS_TRUE
        revision.ready.reason = "HeartbeatTimeout" if is_expired else "Ready"
    return instance


def test_a_node_is_unreachable_when_all_of_its_agents_are_silent() -> None:
    found = reports(
        [an_instance("n1", True), an_instance("n1", True), an_instance("n2", True), an_instance("n2", False)]
    )
    assert {one.host: one.check[0].failing for one in found} == {"n1": True, "n2": False}


NOW_S, TIMEOUT_S = 1_000_000, 600


def an_agent(node: str, heard_s: int, *reasons: str, expired_s: int = 0) -> Instance:
    """Last heard at a time; one revision per reason. What was ready expires, ten minutes later if no time is given."""
    instance = Instance()
    instance.spec.node_name = node
    instance.status.last_heartbeat_time.seconds = heard_s
    for number, reason in enumerate(reasons):
        ready = instance.status.revision.add(id=f"r{number}").ready
        ready.status = CONDITION_STATUS_TRUE if reason == "Ready" else CONDITION_STATUS_FALSE
        ready.reason = reason
        if reason == "HeartbeatTimeout":
            ready.receipt.silence.seconds = TIMEOUT_S
            ready.last_transition_time.seconds = expired_s or heard_s + TIMEOUT_S
    return instance


DEAD_S = NOW_S - 1200  # when the node was heard last
EXPIRED = an_agent("n1", DEAD_S, "HeartbeatTimeout")


@pytest.mark.parametrize(
    ("agents", "is_failing"),
    [
        ([an_agent("n1", DEAD_S, "HeartbeatTimeout", "NotWantedReady")], True),
        ([EXPIRED, an_agent("n1", DEAD_S + 170, "NotWantedReady")], True),
        ([EXPIRED, an_agent("n1", DEAD_S - 99_999, "CrashLoop")], True),
        ([EXPIRED, an_agent("n1", NOW_S - 170, "NotWantedReady")], False),
        ([EXPIRED, an_agent("n1", NOW_S - 599, "CrashLoop")], False),
        ([EXPIRED, an_agent("n1", DEAD_S, "ReportsRefused")], False),
        ([an_agent("n1", NOW_S - 100, "HeartbeatTimeout", "NotWantedReady", expired_s=DEAD_S)], False),
        ([an_agent("n1", NOW_S - 170, "NotWantedReady")], False),
        ([an_agent("n1", DEAD_S, "CrashLoop")], None),
    ],
    ids=[
        "an installed revision beside the expired one",
        "an instance whose revision is not wanted",
        "an instance that was never ready",
        "an agent that reports though nothing is ready",
        "an agent that was late once",
        "an agent whose reports HQ refuses",
        "an agent that has reported since it expired",
        "agents of which none was ready, heard",
        "agents of which none was ready, not heard",
    ],
)
def test_a_node_is_unreachable_once_an_agent_expired_and_no_other_is_heard(
    agents: list[Instance], is_failing: bool | None
) -> None:
    other = an_agent("n2", NOW_S, "Ready")
    found = {one.host: one.check[0].failing for one in reports([*agents, other])}
    assert found.get("n1") is is_failing
    assert found["n2"] is False


def test_while_nobody_in_a_location_is_heard_no_agent_grows_older() -> None:
    """Its times stand still: HQ itself may be cut off."""
    agents = [EXPIRED, an_agent("n1", DEAD_S + 170, "NotWantedReady")]
    assert {one.host: one.check[0].failing for one in reports(agents)} == {"n1": False}


def test_a_node_under_planned_work_is_not_unreachable_but_may_be_heard() -> None:
    agents = [EXPIRED, an_agent("n2", NOW_S, "Ready")]
    assert {one.host: one.check[0].failing for one in reports(agents, {"n1", "n2"})} == {"n2": False}


def test_of_a_node_that_never_reported_nothing_is_said() -> None:
    assert reports([an_instance("n1")]) == []


@pytest.mark.parametrize(
    ("source", "guard", "why"),
    [
        (Source(), GuardState(holding=True, verdict="40 % are silent"), "guard is holding"),
        (Source(stale=True, replica="r1"), GuardState(), "stale"),
        (Source(error="no etcd"), GuardState(), "stale"),
        (Source(trust=EPOCH_TRUST_DOUBTED), GuardState(), "in doubt"),
        (Source(), GuardState(), ""),
    ],
)
def test_silence_is_not_believed_while_hq_may_be_its_reason(source: Source, guard: GuardState, why: str) -> None:
    assert why in why_not_believed([source], guard)
    assert bool(why) == bool(why_not_believed([source], guard))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("automation: {max_rebooted_host: 1d:5}", "automation.max_rebooted_host: not one of"),
        ("automation: {max_rebooted_hosts: [1w:5]}", "automation.max_rebooted_hosts: '1w:5'|'1w' is not"),
        ("executors: {a: {type: ssh}}", "executors.a.type: write one of"),
        ("executors: {a: {type: command}}", "executors.a.argv: is missing"),
        ("executors: {a: {type: command, argv: reboot}}", "executors.a.argv: write a list of texts"),
        ("executors: {a: {type: command, argv: []}}", "executors.a.argv: write a list of texts"),
        ("executors: {a: {type: command, argv: [sleep, 5]}}", r"executors.a.argv\[1\]: 5 is not a text"),
        ("executors: {a: {type: command, argv: [a, '-H{host}']}}", r"executors.a.argv\[1\]: {host} must be an arg"),
        ("executors: {a: {type: command, argv: [a, '{hosts}']}}", r"executors.a.argv\[1\]: {hosts} is not one of"),
        ("executors: {a: {type: command, argv: [a], timeout_s: soon}}", "executors.a.timeout_s: 'soon' is not a num"),
        ("executors: {a: {type: command, argv: [a], timeout_s: 0}}", "executors.a.timeout_s: 0 is not a number"),
        ("executors: {a: {type: command, argv: [a], timeout_s: .nan}}", "executors.a.timeout_s: nan is not a number"),
        ("executors: {a: {type: command, argv: [a], timeout_s: true}}", "executors.a.timeout_s: True is not a num"),
        ("executors: {a: {type: command, argv: [a], repeatable: 1}}", "executors.a.repeatable: 1 is neither"),
        ("executors: {a: {type: command, argv: [a], timeout: 5}}", "executors.a.timeout: unknown setting"),
        ("executors: {a: {type: command, argv: [a, '{bmc}']}}", "executors.a: .*write `redfish: "),
        ("executors: {a: {type: none, argv: [a]}}", "executors.a.argv: unknown setting"),
        ("executors: {a: {type: redfish}}", "executors.a: .*write `redfish: "),
        ("executors: {a: {type: redfish, user: admin}}", "executors.a.user: .*write `redfish: .* instead"),
        ("executors: {a: {type: redfish, password_file: f}}", "executors.a.password_file: .*write `redfish: "),
        ("executors: {a: {type: redfish, url: '{bmc}'}}", "executors.a.url: 'x' is not a valid URL"),
        ("executors: {a: {type: redfish, url: 'https://{node}'}}", "executors.a.url: {node} is not one of"),
        ("executors: {a: {type: webhook, url: 7}}", "executors.a.url: 7 is not a text"),
        ("executors: {a: {type: webhook, url: 'https://a', token: x}}", "executors.a.token: unknown setting"),
        ("executors: {a: {type: webhook, url: 'https://a', token_file: none}}", "executors.a.token_file: No such"),
        ("executors: {a: {type: dns, server: 10.0.0.1, zone: a, port: '53'}}", "executors.a.port: '53' is not a whole"),
        ("executors: {a: {type: dns, server: 10.0.0.1, zone: a, port: 70000}}", "executors.a.port: 70000 is not one"),
        ("executors: {a: {type: dns, server: 10.0.0.1, zone: 'a..b'}}", "executors.a: "),
        ("redfish: {match: 10.7.0.0/16}", "redfish: write a list"),
        ("redfish: [{user: admin}]", r"redfish\[0\].match: is missing"),
        ("redfish: [{match: 10.7.*}]", r"redfish\[0\].match: '10.7.\*' is not a valid"),
        ("redfish: [{match: 10.7.0.1/16}]", r"redfish\[0\].match: .*host bits set"),
        ("redfish: [{match: 10.7.0.0/16, password_file: none}]", r"redfish\[0\].password_file: No such file"),
        ("redfish: [{match: 10.7.0.0/16, ca_file: walle.yaml}]", r"redfish\[0\].ca_file: "),
        ("redfish: [{match: 10.7.0.0/16, nodes: prod}]", r"redfish\[0\].nodes: write a list"),
        ("cms: [{url: cms.example.net}]", r"cms\[0\].url: 'cms.example.net' is not a valid URL"),
        ("cms: [{url: 'https://a', tvm_app_id: 7}]", r"cms\[0\].tvm_app_id: 7 is not a text"),
        ("cms_tokens: {prod: token}", "cms_tokens: .*write `cms: "),
        ("notify: [{url: 'https://a/?token=x'}]", r"notify\[0\].url: .*a query does not belong"),
        ("operations: {reboot: a}", "operations.reboot: executor 'a' is not defined"),
        ("operations: {explode: a}", "operations.explode: not one of"),
        ("smtp: {host: mail}", "smtp.sender: is missing"),
        ("smtp: {host: mail, sender: a, port: mail}", "smtp.port: 'mail' is not a whole number"),
        ("notifications: {loud: [a]}", "notifications.loud: write info"),
        ("notifications: {error: ['https://a/b']}", "notifications.error: https://a/b: no entry of `notify`"),
        ("hosts: {}", "hosts: unknown setting"),
        ("a: [", "not valid YAML"),
        ("automation: {}\nautomation: {}", "duplicate key"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "walle.yaml").write_text(text)
    with pytest.raises(BadConfig, match=why):
        load(tmp_path / "walle.yaml")
