"""Deploy files and pages speak of what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from cms.main import cli
from cms.metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]


def _alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "deploy/prometheus/cms.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_alerts_speak_of_metrics_that_there_are() -> None:
    named = {name for alert in _alerts() for name in re.findall(r"\bcms_[a-z_]+", alert["expr"])}
    assert named <= {one.name for one in METRICS}


def test_every_alert_has_a_section_in_the_runbook_and_the_other_way_round() -> None:
    sections = re.findall(r"^### (Cms\w+)$", (ROOT / "docs/cms.md").read_text(), re.MULTILINE)
    assert sections == [alert["alert"] for alert in _alerts()]
    for alert in _alerts():
        assert alert["annotations"]["runbook"] == f"docs/cms.md#{alert['alert'].lower()}"


def test_settings_of_the_unit_are_flags_of_the_command() -> None:
    serve = cli.commands["serve"]
    known = {option.envvar for option in serve.params}
    lines = (ROOT / "deploy/systemd/cms.env").read_text().splitlines()
    named = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    for path in ("systemd/hq-cms.service", "kubernetes/cms/cms.yaml"):
        named |= set(re.findall(r"\bCMS_\w+", (ROOT / "deploy" / path).read_text()))
    assert named <= known


def test_flags_that_the_page_names_are_there() -> None:
    words = (ROOT / "docs/cms.md").read_text()
    flags = {name for option in cli.commands["serve"].params for name in option.opts}
    for flag in (
        "--pass-after",
        "--default-budget",
        "--sites",
        "--max-busy-hosts",
        "--task-issuer",
        "--fence",
        "--term",
        "--stop-file",
    ):
        assert flag in words
        assert flag in flags
