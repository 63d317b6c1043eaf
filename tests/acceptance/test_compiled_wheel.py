"""A wheel with the compiled transport: built as the container is, installed apart, it serves."""

from __future__ import annotations

import re
import subprocess
import sysconfig
import time
import urllib.request
from pathlib import Path

import pytest

from tools.check_packages import environment
from tools.packages import build


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_compiled_wheel_serves_by_its_compiled_transport(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVING_COMPILE", "1")
    client, server = build(tmp_path / "dist")
    assert "py3-none-any" in client.name
    assert "py3-none-any" not in server.name
    scripts, packages = environment(tmp_path / "server", client, server)
    (packages / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n")
    log = tmp_path / "log"
    addresses = "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [scripts / "hq", "dev", "--store", "memory", *addresses], stdout=sink, stderr=sink, cwd=tmp_path
        )
    try:
        address = listening(log)
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            [told] = re.findall(rb"^hq_build_info\{.*$", answer.read(), re.MULTILINE)
        assert b'transport="compiled"' in told
    finally:
        process.terminate()
        process.wait(timeout=20)


def listening(log: Path) -> str:
    """The address for HTTP, once it is told."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if found := re.search(r"listening: gRPC \S+, HTTP ([\d.:]+)", log.read_text()):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text())
