"""docs/production.md, run as it stands, on played machines; and what an installation has to bear."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.played_machines import ROOT, CannotPlay, in_namespaces

WALK = "tests/acceptance/production_walk.py"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_installation_is_made_started_used_renewed_and_bears_the_loss_of_a_machine() -> None:
    pytest_of_the_walk = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "",
        "-x",
        WALK,
    ]
    try:
        command = in_namespaces(pytest_of_the_walk)
    except CannotPlay as error:
        pytest.skip(f"no machines can be played on this one: {error}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HQ_", "PYTEST_"))}
    path = os.pathsep.join(str(ROOT / part) for part in ("", "proto", "clients"))
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_a_reader_tries_the_page_on_one_machine() -> None:
    """By the command that `make machines` runs."""
    try:
        in_namespaces([])
    except CannotPlay as error:
        pytest.skip(f"no machines can be played on this one: {error}")
    typed = "for n in 1 2 3 11; do ssh root@10.0.0.$n hostname; done; ssh root@hq-1 /usr/bin/etcd --version; exit 7\n"
    words = [sys.executable, "-m", "tests.support.played_shell"]
    shell = {**os.environ, "SHELL": "/bin/sh"}
    done = subprocess.run(
        words, cwd=ROOT, env=shell, input=typed, capture_output=True, text=True, check=False, timeout=120
    )
    lines = done.stdout.splitlines()
    assert (lines[1:5], done.returncode) == (["hq-1", "hq-2", "hq-3", "node-1"], 7), done.stderr
    assert lines[5].startswith("etcd Version:")
