"""The command line of instancectl."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hqcli.exits import Exit
from tests.clients.instancectl.conftest import RunFile
from tests.clients.instancectl.supervised import ROOT, Ctl, clean_environment, instance, revision, write


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "instancectl.main", *arguments)
    return subprocess.run(command, capture_output=True, text=True, env=clean_environment(), timeout=20, check=False)


def show(ctl: Ctl, *arguments: str) -> str:
    done = run("status", "--dir", str(ctl.directory), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
async def test_status_is_a_table_and_json(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision("r1"), revision("r2", ready=False)))
    await ctl.until("r1", "ready")
    await ctl.until("r2", "installed")
    table = [line.split() for line in show(ctl).splitlines()]
    assert table[0][:4] == ["REVISION", "TARGET", "INSTALLED", "READY"]
    assert table[1][:6] == ["r1", "READY", "yes", "yes", "main", "running"]
    assert table[2][:4] == ["r2", "INSTALLED", "yes", "no:NotWantedReady"]
    found = json.loads(show(ctl, "-o", "json"))
    assert [revision["id"] for revision in found["revisions"]] == ["r1", "r2"]


def test_status_without_a_supervisor_is_unavailable(tmp_path: Path) -> None:
    done = run("status", "--dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (Exit.UNAVAILABLE, "")
    assert f"no instancectl answers at --dir {tmp_path}" in done.stderr


def test_validate_accepts_the_examples() -> None:
    for example in (ROOT / "examples" / "instancectl").glob("*.yaml"):
        assert run("validate", str(example)).returncode == 0


def test_validate_names_each_fault(tmp_path: Path) -> None:
    wanted = revision()
    wanted.file.add(name="x", url="torrent:x")
    wanted.container[0].image = "registry/x"
    done = run("validate", str(write(tmp_path / "spec", instance(wanted))))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2


def test_run_without_a_source_says_what_to_name(tmp_path: Path) -> None:
    done = run("run", "--dir", str(tmp_path))
    assert done.returncode == 2
    assert "--file FILE or --instance ID" in done.stderr


@pytest.mark.parametrize("option", ["--log-bytes", "--log-files", "--restart-first", "--restart-max"])
def test_options_that_would_fill_the_disk_or_restart_without_a_pause_are_refused(tmp_path: Path, option: str) -> None:
    wanted = str(write(tmp_path / "spec", instance(revision(ready=False))))
    done = run("run", "--file", wanted, "--dir", str(tmp_path / "i"), "--once", option, "0")
    assert done.returncode == 2
    assert f"Invalid value for '{option}': 0" in done.stderr
