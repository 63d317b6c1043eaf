"""The alert rules and the dashboard name only declared metrics, and every alert has its runbook."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from federated import monitoring as of_gateway
from gateways.consul import metrics as of_consul
from gateways.dns import metrics as of_dns
from gateways.picture import metrics as of_picture
from gateways.xds import metrics as of_xds
from hq.api import metrics as of_replica
from hqapi import prometheus_sd
from serving.auth import security
from serving.telemetry import process, traffic

ROOT = Path(__file__).resolve().parents[3]
PROMETHEUS = ROOT / "deploy" / "prometheus"
TABLES = (
    *(of_replica.METRICS, of_gateway.METRICS, prometheus_sd.METRICS, traffic.METRICS, security.METRICS),
    *(of_picture.METRICS, of_dns.METRICS, of_consul.METRICS, of_xds.METRICS),
    *(process.METRICS, process.LOOP_LAG_METRICS, process.LOG_METRICS),
)
DECLARED = {one.name for table in TABLES for one in table}


def _alerts() -> list[dict[str, str]]:
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _unknown(expressions: Iterable[str]) -> set[str]:
    named = {name for text in expressions for name in re.findall(r"\bhq_[a-z_]+", text)}
    return {name for name in named if re.sub(r"_(bucket|sum|count)$", "", name) not in DECLARED}


def test_alerts_name_only_declared_metrics() -> None:
    assert _unknown(alert["expr"] for alert in _alerts()) == set()


def test_the_dashboard_names_only_declared_metrics() -> None:
    panels = json.loads((ROOT / "deploy" / "grafana" / "hq.json").read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert len(expressions) > 15
    assert _unknown(expressions) == set()


def test_every_alert_has_a_section_in_the_runbook_and_the_other_way_round() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    sections = re.findall(r"^### (Hq\w+)$", page, re.MULTILINE)
    assert sections == [alert["alert"] for alert in _alerts()]
    for alert in _alerts():
        assert alert["annotations"]["runbook"] == f"docs/operations.md#{alert['alert'].lower()}"  # type: ignore[index]


@pytest.mark.parametrize(
    "arguments",
    [
        *(("check", "rules", f"{name}.yml") for name in ("alerts", "cms", "nanny", "walle")),
        ("test", "rules", "alerts_test.yml"),
        ("check", "config", "hq.yml"),
    ],
    ids=" ".join,
)
def test_promtool_accepts_the_rules_and_configuration(arguments: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool (Debian: apt-get install prometheus)")
    done = subprocess.run([promtool, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
