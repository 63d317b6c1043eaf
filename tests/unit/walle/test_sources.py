"""Where checks come from, and the configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hqpb.v1.instance_pb2 import (
    CONDITION_STATUS_FALSE,
    CONDITION_STATUS_TRUE,
    CONDITION_STATUS_UNKNOWN,
    Condition,
    Instance,
    InstanceSpec,
)
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


def test_an_alert_without_a_host_is_reported_and_not_refused() -> None:
    reports_, nameless = checks_of([Alert(status="firing", labels={"alertname": "EtcdSlow"})])
    assert reports_ == []
    assert nameless == ["an alert without a host: {'alertname': 'EtcdSlow'}"]


TRUE, FALSE, UNKNOWN = CONDITION_STATUS_TRUE, CONDITION_STATUS_FALSE, CONDITION_STATUS_UNKNOWN


def an_agent(node: str, status: int, reason: str = "") -> Instance:
    """An instance on `node`, with what HQ says of its agent."""
    instance = Instance()
    instance.spec.node_name = node
    instance.status.agent.CopyFrom(Condition(status=status, reason=reason))  # type: ignore[arg-type]
    return instance


HEARD = an_agent("n1", TRUE)
SILENT = an_agent("n1", FALSE, "HeartbeatTimeout")
NEVER = an_agent("n1", FALSE, "NeverReported")
REFUSED = an_agent("n1", FALSE, "ReportsRefused")
BEGINNING = an_agent("n1", UNKNOWN)
OLDER_HQ = Instance(spec=InstanceSpec(node_name="n1"))


@pytest.mark.parametrize(
    ("agents", "is_failing"),
    [
        ([SILENT], True),
        ([SILENT, SILENT, NEVER, BEGINNING], True),
        ([SILENT, HEARD], False),
        ([SILENT, REFUSED], False),
        ([HEARD, NEVER], False),
        ([NEVER], None),
        ([BEGINNING], None),
        ([OLDER_HQ], None),
    ],
    ids=[
        "silent",
        "silent, and others that never began",
        "one is heard",
        "one is refused by HQ itself",
        "one is heard, another never began",
        "none ever began",
        "none has begun yet",
        "an HQ that does not say",
    ],
)
def test_a_node_is_unreachable_if_an_agent_is_silent_and_no_other_is_heard(
    agents: list[Instance], is_failing: bool | None
) -> None:
    found = {one.host: one.check[0].failing for one in reports([*agents, an_agent("n2", TRUE)])}
    assert found.get("n1") is is_failing
    assert found["n2"] is False


def test_a_node_under_planned_work_may_be_reachable_but_never_unreachable() -> None:
    agents = [SILENT, an_agent("n2", TRUE)]
    assert {one.host: one.check[0].failing for one in reports(agents, {"n1", "n2"})} == {"n2": False}


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
        (
            "executors: {a: {type: command, argv: ['{host}', a]}}",
            r"executors.a.argv\[0\]: the program must not be a val",
        ),
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
        (
            "executors: {a: {type: dns, server: ns.example, zone: a}}",
            "executors.a.server: 'ns.example' is no IP address",
        ),
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
        ("agent_checks: disk", "agent_checks: write a list"),
        ("operations: {reboot: a}", "operations.reboot: executor 'a' is not defined"),
        ("operations: {explode: a}", "operations.explode: not one of"),
        ("smtp: {host: mail}", "smtp.sender: is missing"),
        ("smtp: {host: mail, sender: a, port: mail}", "smtp.port: 'mail' is not a whole number"),
        ("smtp: {host: mail, sender: a, user: a}", "smtp.password_file: is missing"),
        ("redfish: [{match: 10.7.0.0/16, password_file: walle.yaml}]", r"redfish\[0\].user: is missing"),
        ("executors: {a: {type: dns, server: 10.0.0.1, zone: a, key_name: k}}", "executors.a.key_file: is missing"),
        ("smtp: {host: mail, sender: a, ca_file: walle.yaml}", "smtp.ca_file: "),
        ("notifications: {loud: [a]}", "notifications.loud: write info"),
        ("notifications: {error: ['https://a/b']}", "notifications.error: https://a/b: no entry of `notify`"),
        ("hosts: {}", "hosts: unknown setting"),
        ("a: [", "not valid YAML"),
        ("automation: {}\nautomation: {}", "duplicate key"),
    ],
)
def test_faults_of_the_file_are_named_with_their_field(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "walle.yaml").write_text(text)
    with pytest.raises(BadConfig, match=why):
        load(tmp_path / "walle.yaml")
