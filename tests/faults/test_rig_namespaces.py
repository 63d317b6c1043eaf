"""Members and replicas in network namespaces: packets get lost below TCP; where that is not allowed the rig says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig.places import NoNamespaces, rig_command

_ROOT = Path(__file__).resolve().parents[2]
_ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "proto"), str(_ROOT / "clients")))}

pytestmark = pytest.mark.timeout(120)


def output_of(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**_ENVIRONMENT, **environment}
    return subprocess.run(command, cwd=_ROOT, env=env, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.long
def test_a_cable_drops_either_way_without_a_reset_and_what_was_lost_arrives_later() -> None:
    try:
        command = rig_command([sys.executable, "-m", "tests.support.unplugged_cable"])
    except NoNamespaces as error:
        pytest.skip(f"no network namespaces on this machine: {error}")
    devices = sorted(Path("/sys/class/net").iterdir())
    done = output_of(command)
    assert done.stdout.splitlines() == [
        "whole: True",
        *("sent dropped: False", "sent healed: True"),
        *("received dropped: False", "received healed: True"),
        *("both dropped: False", "both healed: True"),
    ], done.stderr
    assert sorted(Path("/sys/class/net").iterdir()) == devices


@pytest.mark.long
def test_a_machine_without_namespaces_is_told_so_in_words(tmp_path: Path) -> None:
    rig = [sys.executable, "-m", "tests.rig", "faults", "--namespaces", "--duration", "5s", "--out", str(tmp_path)]
    done = output_of(rig, PATH=str(tmp_path))  # a machine without iproute2 and util-linux
    assert done.returncode == 2
    assert "no network namespaces on this machine (there is no unshare and no nsenter" in done.stderr
    assert "leave --namespaces out" in done.stderr
    assert not (tmp_path / "etcd").exists()
