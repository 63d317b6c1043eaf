"""docs/gateways.md names flags, files and metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gateways.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "gateways.md").read_text()


def test_flags_of_the_page_are_flags_of_a_gateway() -> None:
    known = "".join(CliRunner().invoke(cli, [kind, "--help"]).output for kind in ("dns", "consul", "xds"))
    commands = "\n".join(line for line in PAGE.splitlines() if "dnsmasq" not in line and "hqctl" not in line)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", commands))
    assert {flag for flag in named if flag not in known} == set()


def test_files_of_the_page_exist_and_can_be_read() -> None:
    for name in re.findall(r"examples/gateways/[a-z./-]*[a-z]", PAGE):
        assert (ROOT / name).exists(), name
    json.loads((ROOT / "examples/gateways/bootstrap.json").read_text())
    ids = [one["meta"]["id"] for one in yaml.safe_load_all((ROOT / "examples/gateways/web.yaml").read_text())]
    assert ids == ["web-1", "web-2"]


def test_metrics_of_the_page_are_in_the_reference() -> None:
    reference = (ROOT / "docs" / "metrics.md").read_text()
    assert {name for name in re.findall(r"`(hq_\w+)`", PAGE) if name not in reference} == set()


@pytest.mark.parametrize("kind", ["dns", "consul", "xds"])
def test_every_flag_has_a_variable_and_a_help_text(kind: str) -> None:
    command = cli.commands[kind]
    for option in command.params:
        assert option.envvar or option.name in ("help", "version"), option.name
        assert getattr(option, "hidden", False) or getattr(option, "help", "x"), option.name


def test_gateways_listen_on_loopback_unless_told_otherwise() -> None:
    for command in (cli.commands[kind] for kind in ("dns", "consul", "xds")):
        addresses = [option.default for option in command.params if option.name in ("dns", "grpc", "http")]
        assert addresses
        assert all(str(address).startswith("127.0.0.1:") for address in addresses)


def test_only_the_gateway_that_serves_grpc_has_an_address_for_callers_with_certificates() -> None:
    found = [kind for kind, one in cli.commands.items() if any(option.name == "grpc_mtls" for option in one.params)]
    assert found == ["xds"]


def test_units_set_only_variables_of_flags_that_exist() -> None:
    for kind in ("dns", "consul", "xds"):
        known = {option.envvar for option in cli.commands[kind].params}
        lines = (ROOT / "deploy" / "systemd" / f"gateway-{kind}.env").read_text().splitlines()
        assert {line.partition("=")[0] for line in lines if line and not line.startswith("#")} <= known
