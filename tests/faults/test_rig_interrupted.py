"""However a run ends, it leaves no process behind, and touches none that it did not start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.places import NoNamespaces, rig_command
from tests.support.etcd import binary_of
from tests.support.sample_instances import eventually

_ROOT = Path(__file__).resolve().parents[2]
EVERYBODY = 11  # three members with a guard each, three replicas, a witness and a gateway
HOLDERS = 6  # of a namespace for each member and each replica

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
    pytest.mark.timeout(180),
]


def descendants(pid: int) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            yield int(path.parent.name)
            yield from descendants(int(path.parent.name))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "flags"),
    [(signal.SIGTERM, []), (signal.SIGKILL, []), (signal.SIGKILL, ["--namespaces"])],
    ids=("interrupted", "killed", "killed in namespaces"),
)
async def test_an_interrupted_run_leaves_no_process_behind(
    number: signal.Signals, flags: list[str], tmp_path: Path
) -> None:
    binary_of("3.5")
    if flags:
        try:
            rig_command([])
        except NoNamespaces as error:
            pytest.skip(f"no network namespaces on this machine: {error}")
    everybody = EVERYBODY + (HOLDERS if flags else 0)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "proto"), str(_ROOT / "clients"))),
    }
    command = [sys.executable, "-m", "tests.rig", "faults", "--duration", "60s", "--seed", "1"]
    command += ["--out", str(tmp_path), *flags]
    with (tmp_path / "rig.log").open("wb") as log:
        rig = subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=log, stderr=log)
    started: set[int] = set()
    try:
        await eventually(lambda: len(set(descendants(rig.pid))) >= everybody, timeout_s=60, what="everybody")
        started = set(descendants(rig.pid))
        rig.send_signal(number)
        await eventually(lambda: rig.poll() is not None, timeout_s=60, what="the end of the rig")
        assert rig.returncode == (2 if number is signal.SIGTERM else -signal.SIGKILL)
        await eventually(lambda: not any(map(is_alive, started)), what="the end of what it started")
    finally:
        for pid in {rig.pid, *started}:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        rig.wait()
