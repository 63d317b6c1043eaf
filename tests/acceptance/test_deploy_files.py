"""deploy/: every setting in a file is one of its command, and all that this machine can check is checked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from cms.main import cli as cms
from console.main import cli as hq_console
from federated.main import cli as hq_federated
from gateways.main import cli as hq_gateway
from hq.main import cli as hq
from instancectl.main import cli as instancectl
from recorder.main import cli as hq_recorder

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = sorted((DEPLOY / "kubernetes").rglob("*.yaml"))


def settings(command: click.Command) -> set[str]:
    """Environment variables of a command and its subcommands."""
    own = {p.envvar for p in command.params if isinstance(p.envvar, str)}
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return own.union(*(settings(each) for each in below))


COMMANDS = (hq, hq_federated, instancectl, hq_console, hq_gateway, hq_recorder, cms)
SCRIPT = {"HQ_CMS", "HQ_GROUP", "HQ_NODE", "HQ_REBOOT_STATE", "HQ_TOKEN"}  # what fleetlock/hq-reboot itself reads
KNOWN = {"HQ_SERVER", "HQ_RECORDER", "HQ_WALLE"}.union(SCRIPT, *map(settings, COMMANDS))


def test_settings_in_deploy_files_are_settings_of_the_commands() -> None:
    named = {
        (path.relative_to(DEPLOY).as_posix(), name)
        for path in DEPLOY.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
        for name in re.findall(r"\bHQ_[A-Z_]+\b", path.read_text())
    }
    assert {(path, name) for path, name in named if name not in KNOWN} == set()


def test_servers_callers_and_etcd_each_have_their_own_ca_file() -> None:
    kinds = {"ETCD_CA": "etcd-ca.crt", "CLIENT_CA": "client-ca.crt"}
    kinds |= dict.fromkeys(("HQ_CA", "SERVER_CA", "LOCATION_CA"), "server-ca.crt")
    named = set()
    for path in (*MANIFESTS, *(DEPLOY / "systemd").glob("*.env")):
        for setting, file in re.findall(r"([A-Z_]+_CA)(?:=|, value: )[\w./-]*/([\w.-]+)", path.read_text()):
            (kind,) = [kind for kind in kinds if setting.endswith(kind)]
            assert file == kinds[kind], (path, setting)
            named.add(kind)
    assert named == set(kinds)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.relative_to(DEPLOY).as_posix())
def test_every_yaml_file_is_well_formed(path: Path) -> None:
    assert all(yaml.safe_load_all(path.read_text()))


def objects(kind: str) -> list[dict[str, Any]]:
    found = [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]
    return [each for each in found if each.get("kind") == kind]


def test_probes_ask_the_ports_and_paths_that_hq_serves() -> None:
    containers = [c for each in objects("Deployment") for c in each["spec"]["template"]["spec"]["containers"]]
    assert len(containers) == 8
    for container in containers:
        probes = [container[name]["httpGet"] for name in ("readinessProbe", "livenessProbe")]
        assert [(probe["path"], probe["port"]) for probe in probes] == [("/readyz", "http"), ("/livez", "http")]
        values = {each["name"].split("_")[-1]: each["value"] for each in container["env"]}
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        assert "http" in ports
        assert all(values[name.upper()] == f"0.0.0.0:{port}" for name, port in ports.items() if name != "dns-tcp")


def test_the_containerfile_names_only_files_and_commands_that_exist() -> None:
    root, text = DEPLOY.parent, (DEPLOY / "container" / "Containerfile").read_text()
    taken = [*re.findall(r"^COPY (?!--)(\S+)", text, re.MULTILINE), *re.findall(r"-r (\S+)", text)]
    assert len(taken) == 8
    assert all((root / name).exists() for name in taken)
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    assert set(re.findall(r"[\w-]+", re.findall(r"--entrypoint ([^.]*)\.", text)[0])) | {"hq"} == set(scripts)
    left_out = (DEPLOY / "container" / "Containerfile.dockerignore").read_text().split()
    assert not {"requirements", "proto", "README.md", "pyproject.toml"} & set(left_out)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
@pytest.mark.parametrize(
    "overlay", ["locations/east", "locations/north", "locations/west", "federated", "cms", "nanny", "walle", "console"]
)
def test_kustomize_builds_every_overlay(overlay: str) -> None:
    built = subprocess.run(
        ["kubectl", "kustomize", DEPLOY / "kubernetes" / overlay], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    if overlay.startswith("locations/"):
        assert {"name": "HQ_CLUSTER", "value": Path(overlay).name} in next(
            each["spec"]["template"]["spec"]["containers"][0]["env"]
            for each in yaml.safe_load_all(built.stdout)
            if each["kind"] == "Deployment"
        )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_every_unit(unit: Path) -> None:
    name = unit.name.replace("@", "@web-1")
    done = subprocess.run(
        ["systemd-analyze", "verify", unit.with_name(name) if "@" in name else unit],
        capture_output=True,
        text=True,
        check=False,
    )
    # /opt/hq is where a host has it; this machine need not.
    complaints = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert complaints == []


def test_no_unit_waits_for_other_machines_when_it_is_started() -> None:
    """With Type=notify, `systemctl enable --now hq-etcd` fails on the first of three: there is no majority yet."""
    types = {unit.name: re.findall(r"^Type=(.*)$", unit.read_text(), re.MULTILINE) for unit in UNITS}
    assert {name: found for name, found in types.items() if found not in (["exec"], ["oneshot"])} == {}


@pytest.mark.skipif(
    shutil.which("systemd-sysusers") is None or os.geteuid() != 0, reason="there is no systemd-sysusers, or no root"
)
def test_systemd_makes_the_users_that_units_name(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    words = ("systemd-sysusers", f"--root={tmp_path}", str(DEPLOY / "systemd" / "hq.sysusers"))
    assert "not a valid" not in subprocess.run(words, capture_output=True, text=True, check=False).stderr
    there = {line.partition(":")[0] for line in (tmp_path / "etc" / "passwd").read_text().splitlines()}
    named = {name for unit in UNITS for name in re.findall(r"^User=(\S+)", unit.read_text(), re.MULTILINE)}
    assert named == there
