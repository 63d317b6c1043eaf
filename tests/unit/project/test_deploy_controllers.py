"""Deploy files and pages of the controllers name only metrics, alerts and flags that exist."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from cms.main import cli as cms
from cms.metrics import METRICS as CMS_METRICS
from nanny.metrics import METRICS as NANNY_METRICS
from nanny.serve import serve as nanny_serve
from walle.main import cli as walle
from walle.process.metrics import METRICS as WALLE_METRICS

ROOT = Path(__file__).resolve().parents[3]


def serve_of(group: click.Group) -> click.Command:
    command = group.get_command(click.Context(group), "serve")
    assert command is not None
    return command


@dataclass(frozen=True)
class Deployed:
    """What is shipped for one controller. units: files below deploy/ that set its variables."""

    name: str
    page: str
    metrics: Collection[Any]
    serve: click.Command
    units: tuple[str, ...]

    def alerts(self) -> list[dict[str, Any]]:
        groups = yaml.safe_load((ROOT / f"deploy/prometheus/{self.name}.yml").read_text())["groups"]
        return [rule for group in groups for rule in group["rules"]]


CMS = Deployed("cms", "docs/cms.md", CMS_METRICS, serve_of(cms), ("systemd/hq-cms.service", "kubernetes/cms/cms.yaml"))
NANNY = Deployed("nanny", "docs/nanny-service.md", NANNY_METRICS, nanny_serve, ("systemd/hq-nanny.service",))
WALLE = Deployed("walle", "docs/walle.md", WALLE_METRICS, serve_of(walle), ("systemd/hq-walle.service",))
each = pytest.mark.parametrize("of", [CMS, NANNY, WALLE], ids=lambda of: of.name)


@each
def test_alerts_and_the_page_name_only_declared_metrics(of: Deployed) -> None:
    words = [*(alert["expr"] for alert in of.alerts()), (ROOT / of.page).read_text() if of is WALLE else ""]
    named = {name for text in words for name in re.findall(rf"\b{of.name}_[a-z_]+", text)}
    assert named <= {one.name for one in of.metrics}


@each
def test_every_alert_has_a_section_in_the_runbook_and_the_other_way_round(of: Deployed) -> None:
    titles = re.findall(r"^### (.+)$", (ROOT / of.page).read_text(), re.MULTILINE)
    sections = ["-".join(title.lower().split()) for title in titles]
    places = [tuple(alert["annotations"]["runbook"].split("#")) for alert in of.alerts()]
    assert {page for page, _ in places} == {of.page}
    assert {anchor for _, anchor in places} <= {*sections}
    if of is not WALLE:  # whose sections are for causes, some with several alerts
        named = [title for title in titles if re.fullmatch(rf"{of.name.title()}\w+", title)]
        assert named == [alert["alert"] for alert in of.alerts()]
        assert [anchor for _, anchor in places] == [title.lower() for title in named]


@each
def test_settings_of_the_unit_are_flags_of_the_command(of: Deployed) -> None:
    lines = (ROOT / f"deploy/systemd/{of.name}.env").read_text().splitlines()
    named = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    for path in of.units:
        named |= set(re.findall(rf"\b{of.name.upper()}_\w+", (ROOT / "deploy" / path).read_text()))
    assert named <= {option.envvar for option in of.serve.params}


def test_programs_of_executors_outlive_the_main_process_of_wall_e() -> None:
    """With systemd's default, control-group, a restart would end them, and none would be found again."""
    unit = (ROOT / "deploy" / WALLE.units[0]).read_text().splitlines()
    assert "KillMode=process" in unit


@pytest.mark.parametrize(
    "flag",
    [
        *("--pass-after", "--default-budget", "--sites", "--max-busy-hosts", "--task-issuer"),
        *("--fence", "--term", "--stop-file"),
    ],
)
def test_flags_on_the_page_of_the_cms_exist(flag: str) -> None:
    assert flag in (ROOT / CMS.page).read_text()
    assert flag in {name for option in CMS.serve.params for name in option.opts}
