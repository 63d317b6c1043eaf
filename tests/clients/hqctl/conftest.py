"""Replicas for hqctl, one process for all tests, and hqctl called in this process: quick, and over real sockets."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from hqctl.main import cli

ROOT = Path(__file__).resolve().parents[3]
START_S = 60.0
_LISTENING = re.compile(r"listening: gRPC (\S+), HTTP (\S+)")


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[list[str]]:
        """The words of each line of output."""
        return [line.split() for line in self.out.splitlines()]


Hqctl = Callable[..., Done]


def clean_environment() -> dict[str, str]:
    """Variables without any of HQ's, so that no configuration of the developer's takes part."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HQ_", "_HQCTL", "NO_COLOR"))}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proto"), str(ROOT / "clients"))),
        "HQ_CONFIG": os.devnull,
    }


@contextmanager
def serving(log: Path, module: str, *arguments: str) -> Iterator[str]:
    """The gRPC address of a server in a process of its own, which ends with the block."""
    command = [sys.executable, "-m", module, *arguments, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink, env=clean_environment(), cwd=ROOT)
    try:
        yield _address(process, log)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        text = log.read_text(errors="replace")
        assert process.poll() is None, text
        if found := _LISTENING.search(text):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"it does not listen:\n{log.read_text(errors='replace')}")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A replica of the cluster `east` that calls nothing silent while the tests run."""
    log = tmp_path_factory.mktemp("east") / "log"
    with serving(log, "hq.main", "dev", "--store", "memory", "--cluster", "east") as address:
        yield address


@pytest.fixture(scope="session")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A replica that calls a revision silent after two seconds."""
    flags = ("--cluster", "hasty", "--liveness-timeout", "2s", "--report-interval", "500ms")
    log = tmp_path_factory.mktemp("hasty") / "log"
    with serving(log, "hq.main", "dev", "--store", "memory", *flags) as address:
        yield address


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: str) -> Iterator[str]:
    """A gateway over that replica and over a location `west` where nobody is."""
    folder = tmp_path_factory.mktemp("gateway")
    locations = {"east": {"replicas": [server]}, "west": {"replicas": ["127.0.0.1:1"]}}
    (folder / "gateway.yaml").write_text(json.dumps({"locations": locations}))
    with serving(folder / "log", "federated.main", "--config", str(folder / "gateway.yaml")) as address:
        yield address


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """`run("find", "-o", "json", stdin="", **environment)` calls hqctl in this process."""
    for name in list(os.environ):
        if name.startswith("HQ_") or name == "NO_COLOR":
            monkeypatch.delenv(name)

    def call(*arguments: str, stdin: str = "", **environment: str) -> Done:
        env = {"HQ_CONFIG": os.devnull, **environment}
        result = CliRunner().invoke(cli, list(arguments), input=stdin, env=env, prog_name="hqctl")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def hqctl(run: Callable[..., Done], server: str) -> Hqctl:
    """hqctl that asks the replica of all tests."""

    def call(*arguments: str, stdin: str = "", **environment: str) -> Done:
        return run(*arguments, stdin=stdin, **{"HQ_SERVER": server, **environment})

    return call


@pytest.fixture
def service() -> str:
    """The name of a service that no other test has."""
    return "s" + secrets.token_hex(4)


def documents(service: str, *ids: str, node: str = "node-a", extra: str = "") -> str:
    """YAML of instances of a service, each with r1 wanted READY and r0 INSTALLED."""
    revisions = "[{id: r1, target: REVISION_TARGET_READY}, {id: r0, target: REVISION_TARGET_INSTALLED}]"
    return "---\n".join(
        f"meta: {{id: {service}-{one}, serviceId: {service}, labels: {{tier: t{one}}}}}\n"
        f"spec: {{nodeName: {node}, revision: {revisions}{extra}}}\n"
        for one in ids
    )
