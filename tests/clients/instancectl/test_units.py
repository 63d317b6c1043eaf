"""The units of a node as they are shipped: an instance runs under a user of its own that has no rights at all."""

from __future__ import annotations

import asyncio
import configparser
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from hqclient.client import Client
from instancectl.hostagent.speakers import Speakers
from instancectl.settings import parse_speaker
from tests.clients.instancectl.hearsay import until_ready
from tests.clients.instancectl.host_agents import host_agent, short_directory
from tests.clients.instancectl.supervised import NODE, ROOT, clean_environment, instance, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually

NOBODY = 65534
NO_RIGHTS = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
)


def environment() -> dict[str, str]:
    """For any Python of this version."""
    found = clean_environment()
    return {**found, "PYTHONPATH": os.pathsep.join((found["PYTHONPATH"], sysconfig.get_path("purelib")))}


def python_of_nobody() -> str:
    """A Python that a user without rights may start, and that may start itself; empty: there is none."""
    if os.getuid():
        return ""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    code = "import grpc, subprocess, sys; sys.exit(subprocess.run([sys.executable, '-V']).returncode)"
    for python in (sys.executable, f"/usr/bin/{name}"):
        tried = subprocess.run([*NO_RIGHTS, python, "-c", code], env=environment(), capture_output=True, check=False)
        if tried.returncode == 0:
            return python
    return ""


def service(unit: str) -> dict[str, str]:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment, method-assign]
    parsed.read(ROOT / "deploy" / "systemd" / unit)
    return dict(parsed["Service"])


def speakers_allowed() -> list[str]:
    words = shlex.split(service("hq-host-agent.service")["ExecStart"])
    return [word for option, word in pairwise(words) if option == "--allow"]


def test_the_supervisor_and_its_containers_have_a_user_and_no_rights() -> None:
    found = service("instancectl@.service")
    assert found["User"] not in ("", "root", "0")
    assert (found["CapabilityBoundingSet"], found["NoNewPrivileges"]) == ("", "yes")
    assert "--file-root" not in found["ExecStart"]


def test_the_user_of_the_supervisor_may_speak_at_the_host_agent() -> None:
    user = service("instancectl@.service")["User"]
    speakers = Speakers([parse_speaker(text) for text in speakers_allowed()], own_uid=0, name=lambda _: user)
    assert speakers.may(12345, "web-1")


@asynccontextmanager
async def supervisor(python: str, socket: Path, directory: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """What the unit starts, with the same command line."""
    line = service("instancectl@.service")["ExecStart"].replace("%i", "i-1").replace("%H", NODE)
    line = line.replace("/var/lib/instances/i-1", str(directory))
    line = line.replace("/run/instancectl/host-agent.sock", str(socket))
    _, *arguments = shlex.split(line)
    with directory.with_suffix(".log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(*NO_RIGHTS, python, "-m", "instancectl.main", *arguments),
            env=environment(),
            stderr=log,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), 45)


@pytest.mark.long
async def test_an_instance_becomes_ready_under_the_shipped_units(client: Client, hq: ReplicaProcess) -> None:
    if not (python := python_of_nobody()):
        pytest.skip("needs to become another user, who may start this Python")
    await client.create(instance(revision(script="id -u > ../../user; grep CapEff /proc/self/status; exec sleep 600")))
    user = service("instancectl@.service")["User"]
    allowed = [text.replace(user, "nobody") for text in speakers_allowed()]
    with short_directory() as below:
        below.chmod(0o755)
        directory = below / "i-1"
        directory.mkdir(mode=0o700)
        os.chown(directory, NOBODY, NOBODY)
        options = [word for text in allowed for word in ("--allow", text)]
        socket = below / "agent.sock"
        async with host_agent(hq, socket, *options), supervisor(python, socket, directory):
            await until_ready(client)
            log = directory / "logs" / "r1" / "main.log"
            await eventually(lambda: "CapEff:" in log.read_text())  # it is ready before it has written
        assert (directory / "user").read_text() == f"{NOBODY}\n"
        assert "CapEff:\t0000000000000000" in log.read_text()
