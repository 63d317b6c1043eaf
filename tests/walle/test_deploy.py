"""Deploy files and the page speak of what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import yaml

from tests.support.certificates import Authority
from walle.healing.operation import VERIFY_MS
from walle.main import cli
from walle.process.config import load
from walle.process.metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/walle.md").read_text()


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "deploy/prometheus/walle.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_alerts_and_the_page_speak_of_metrics_that_there_are() -> None:
    named = {name for alert in alerts() for name in re.findall(r"\bwalle_[a-z_]+", alert["expr"])}
    named |= set(re.findall(r"\bwalle_[a-z_]+", PAGE))
    assert {name.removesuffix("_total") for name in named} <= {one.name for one in METRICS}


def test_every_alert_has_a_section_in_the_runbook() -> None:
    sections = {"-".join(title.lower().split()) for title in re.findall(r"^### (.+)$", PAGE, re.MULTILINE)}
    for alert in alerts():
        page, _, anchor = alert["annotations"]["runbook"].partition("#")
        assert page == "docs/walle.md"
        assert anchor in sections, anchor


def test_settings_of_the_unit_are_flags_of_the_command() -> None:
    serve = cli.get_command(click.Context(cli), "serve")
    assert serve is not None
    known = {option.envvar for option in serve.params}
    lines = (ROOT / "deploy/systemd/walle.env").read_text().splitlines()
    named = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    named |= set(re.findall(r"\bWALLE_\w+", (ROOT / "deploy/systemd/hq-walle.service").read_text()))
    assert named <= known


def test_the_example_configuration_loads() -> None:
    assert load(ROOT / "examples/walle/walle.yaml").operations


def test_the_destinations_on_the_page_load(tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(redfish:.*?)```", PAGE, re.DOTALL)
    assert found is not None
    (tmp_path / "walle.yaml").write_text(found[1])
    for name in ("bmc-password", "cms-token"):
        (tmp_path / name).write_text("secret\n")
    ca = Authority(tmp_path).cert.read_text()
    for name in ("bmc-ca.pem", "ca.pem"):
        (tmp_path / name).write_text(ca)
    listed = load(tmp_path / "walle.yaml").destinations
    assert (listed.controllers[0].password, listed.cms[0].token) == ("secret", "secret")
    assert listed.hook_at("https://hooks.example.net/services/T1") is not None


def test_the_page_says_how_long_a_step_has_to_help() -> None:
    assert f"within {VERIFY_MS // 60_000} minutes" in PAGE
