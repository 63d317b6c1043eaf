"""The unit of Wall-E as it ships, started by the machine's own systemd in namespaces (decision 200)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.embedded import EtcdBinary

ROOT = Path(__file__).resolve().parents[2]
SYSTEMD = Path("/lib/systemd/systemd")
PYTHON = Path(f"/usr/bin/python3.{sys.version_info.minor}")  # one that a user without rights may start
# The machine: its own files below an overlay that is forgotten; /shared is the test's folder. Whatever else it needs is
# bound outside of /tmp, which is empty there, and a third one for the unit.
BOOT = """
set -e
root=$(mktemp -d)
mount --make-rprivate /
mount -t tmpfs tmpfs $root
mkdir $root/upper $root/work $root/root
mount -t overlay overlay -o lowerdir=/,upperdir=$root/upper,workdir=$root/work $root/root
cd $root/root
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs tmpfs sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mkdir -p shared tree packages old
mount --bind $1 shared
mount --bind $2 tree
mount --bind $3 packages
touch etcd
mount --bind $4 etcd
cp shared/check.service shared/check.target tree/deploy/systemd/hq-walle.service etc/systemd/system/
mkdir etc/systemd/system/hq-walle.service.d
cp shared/output.conf etc/systemd/system/hq-walle.service.d/
ip link set lo up
pivot_root . old
umount -l old
container=other exec /lib/systemd/systemd --system --unit=check.target </dev/null
"""
TARGET = "[Unit]\nWants=check.service\nDefaultDependencies=no\n"
CHECK = """[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/bash -x /shared/check.sh
StandardOutput=file:/shared/said
StandardError=file:/shared/said
"""
OUTPUT = "[Service]\nStandardOutput=append:/shared/log\nStandardError=append:/shared/log\n"  # no journal runs
WALLE_YAML = """
executors:
  tool:
    type: command
    repeatable: true
    argv: [sh, /etc/hq-walle/program, tool, "{host}"]
operations: {reboot: tool}
"""
PROGRAM = "echo $2 >>/var/lib/hq-walle/begun\nuntil [ -e /run/go ]; do sleep 0.1; done\necho done\n"
START = f"""#!/bin/sh
export PYTHONPATH=/tree:/tree/proto:/tree/clients:/packages PYTHONDONTWRITEBYTECODE=1
exec {PYTHON} -m walle.main "$@"
"""
SCRIPT = """
wait_until() {
    local ends=$((SECONDS + 60))
    until "$@"; do
        if [ $SECONDS -gt $ends ]; then
            echo "$*" >/shared/waited_for
            systemctl poweroff --force --force
        fi
        sleep 0.2
    done
}
walle() { /opt/hq/bin/walle "$@"; }
wall_e_leads() { walle settings get | grep -q 'leader: [^n]'; }
host_is() { walle hosts get h1 | grep -q "$1"; }
program_began() { [ -s /var/lib/hq-walle/begun ]; }
wall_e_is_restarted() { [ "$(systemctl show -P NRestarts hq-walle)" = 1 ]; }
useradd --system --no-create-home hq-walle
mkdir -p /opt/hq/bin /etc/hq-walle
cp /shared/walle /opt/hq/bin/
chmod 755 /opt/hq/bin/walle
cp /shared/walle.yaml /shared/program /etc/hq-walle/
cat >/etc/hq-walle/walle.env <<ENV
WALLE_ETCD=127.0.0.1:2379
WALLE_CONFIG=/etc/hq-walle/walle.yaml
WALLE_SETTLE=1s
ENV
systemd-run --unit=played-etcd /etcd --data-dir /run/etcd
systemctl start hq-walle
wait_until wall_e_leads
walle projects add web
walle hosts add h1 --project web --ignore-cms
wait_until host_is 'assigned  ready'
walle hosts report h1 UNREACHABLE --failing
wait_until program_began
program=$(pgrep -f 'tool h1$' | sort | tr '\\n' ' ')
main=$(systemctl show -P MainPID hq-walle)
systemctl kill --kill-whom=main -s KILL hq-walle
wait_until wall_e_is_restarted
wait_until wall_e_leads
[ "$(systemctl show -P MainPID hq-walle)" != $main ]; echo $? >/shared/is_same
[ "$(pgrep -f 'tool h1$' | sort | tr '\\n' ' ')" = "$program" ]; echo $? >/shared/program_ended
touch /run/go
walle hosts report h1 UNREACHABLE --fine
wait_until host_is '^before: reboot'
walle hosts get h1 -o json >/shared/host.json
cp /var/lib/hq-walle/begun /shared/
systemctl show -p OOMPolicy,KillMode hq-walle >/shared/policies
systemctl poweroff --force --force
"""


@contextmanager
def own_cgroup() -> Iterator[Path]:
    """A group of its own: leftovers of another machine, or one beside it, would be taken for its own units."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    root = next(Path(where) for _, where, kind, *_ in mounts if kind == "cgroup2")
    own = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    group = root / own.removeprefix("0::/") / f"played-machine-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        (group / "cgroup.kill").write_text("1")
        ends = time.monotonic() + 10
        while "populated 1" in (group / "cgroup.events").read_text() and time.monotonic() < ends:
            time.sleep(0.05)
        for folder, *_ in os.walk(group, topdown=False):
            Path(folder).rmdir()


def run_machine(files: dict[str, str], shared: Path, etcd: Path) -> str:
    """Run a machine until it is off; what it said, if it did not get to its end."""
    for name, text in files.items():
        (shared / name).write_text(text)
    namespaces = ("--pid", "--fork", "--kill-child", "--mount", "--uts", "--ipc", "--cgroup", "--net")
    places = map(str, (shared, ROOT, sysconfig.get_path("purelib"), etcd))
    outside = {name: value for name, value in os.environ.items() if name != "TMPDIR"}  # which is not there inside
    with own_cgroup() as group:
        enter = f'echo $$ >{group}/cgroup.procs && exec unshare {" ".join(namespaces)} bash -c "$@"'
        words = ("bash", "-c", enter, "enter", BOOT, "boot", *places)
        told = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        try:
            booted = subprocess.run(words, env=outside, check=False, timeout=200, **told).stdout  # type: ignore[call-overload]
        except subprocess.TimeoutExpired as error:
            booted = f"not off within 200 s; {error.stdout!r}"
    if (shared / "policies").exists():
        return ""
    names = [name for name in ("waited_for", "said", "log") if (shared / name).exists()]
    ends = {name: (shared / name).read_text()[-3_000:] for name in names}
    return "\n".join(f"--- {name}\n{text}" for name, text in {"boot": booted, **ends}.items())


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="it takes root")
@pytest.mark.skipif(not SYSTEMD.exists() or not PYTHON.exists(), reason="there is no systemd, or no Python of its own")
def test_a_program_of_an_executor_outlives_a_killed_wall_e_and_is_found_again(
    tmp_path: Path, etcd_binary: EtcdBinary
) -> None:
    files = {"check.target": TARGET, "check.service": CHECK, "check.sh": SCRIPT, "walle": START}
    files |= {"walle.yaml": WALLE_YAML, "program": PROGRAM, "output.conf": OUTPUT}
    assert run_machine(files, tmp_path, etcd_binary.path) == ""
    assert (tmp_path / "policies").read_text().split() == ["OOMPolicy=continue", "KillMode=process"]
    assert ((tmp_path / "is_same").read_text(), (tmp_path / "program_ended").read_text()) == ("0\n", "0\n")
    (repair, *_) = json.loads((tmp_path / "host.json").read_text())["host"]["history"]
    assert (tmp_path / "begun").read_text() == "h1\n", "begun once"
    assert repair["output"] == "exit code 0\ndone\n", repair
