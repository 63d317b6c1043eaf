"""Deploy files and pages speak of what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from nanny.metrics import METRICS
from nanny.serve import serve

ROOT = Path(__file__).resolve().parents[2]


def _alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "deploy/prometheus/nanny.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_alerts_speak_of_metrics_that_there_are() -> None:
    named = {name for alert in _alerts() for name in re.findall(r"\bnanny_[a-z_]+", alert["expr"])}
    assert named <= {one.name for one in METRICS}


def test_every_alert_has_a_section_in_the_runbook_and_the_other_way_round() -> None:
    sections = re.findall(r"^### (Nanny\w+)$", (ROOT / "docs/nanny-service.md").read_text(), re.MULTILINE)
    assert sections == [alert["alert"] for alert in _alerts()]
    for alert in _alerts():
        assert alert["annotations"]["runbook"] == f"docs/nanny-service.md#{alert['alert'].lower()}"


def test_settings_of_the_unit_are_flags_of_the_command() -> None:
    known = {option.envvar for option in serve.params}
    lines = (ROOT / "deploy/systemd/nanny.env").read_text().splitlines()
    named = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    named |= set(re.findall(r"\bNANNY_\w+", (ROOT / "deploy/systemd/hq-nanny.service").read_text()))
    assert named <= known
