"""The unit of Wall-E as it ships, started by the machine's own systemd in namespaces (decision 200)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from store.embedded import EtcdBinary

ROOT = Path(__file__).resolve().parents[2]
SYSTEMD = Path("/lib/systemd/systemd")
PYTHON = Path(f"/usr/bin/python3.{sys.version_info.minor}")  # one that a user without rights may start
# The machine: its own files below an overlay that is forgotten; /shared is the test's folder.
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
mkdir -p shared old
mount --bind $1 shared
cp shared/check.service shared/check.target $2/deploy/systemd/hq-walle.service etc/systemd/system/
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
WALLE_YAML = """
executors:
  tool:
    type: command
    repeatable: true
    argv: [sh, /etc/hq-walle/program, tool, "{host}"]
operations: {reboot: tool}
"""
PROGRAM = "echo $2 >>/var/lib/hq-walle/begun\nuntil [ -e /run/go ]; do sleep 0.1; done\necho done\n"
START = """#!/bin/sh
export PYTHONPATH=%s PYTHONDONTWRITEBYTECODE=1
exec %s -m walle.main "$@"
"""
SCRIPT = """
walle() { /opt/hq/bin/walle "$@"; }
leads() { until walle settings get | grep -q 'leader: [^n]'; do sleep 1; done; }
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
systemd-run --unit=played-etcd $ETCD --data-dir /run/etcd
systemctl start hq-walle
leads
walle projects add web
walle hosts add h1 --project web --ignore-cms
until walle hosts get h1 | grep -q 'assigned  ready'; do sleep 1; done
walle hosts report h1 UNREACHABLE --failing
until [ -s /var/lib/hq-walle/begun ]; do sleep 0.5; done
program=$(pgrep -f 'tool h1$' | sort | tr '\\n' ' ')
main=$(systemctl show -P MainPID hq-walle)
systemctl kill --kill-whom=main -s KILL hq-walle
until [ "$(systemctl show -P NRestarts hq-walle)" = 1 ]; do sleep 0.5; done
leads
[ "$(systemctl show -P MainPID hq-walle)" != $main ]; echo $? >/shared/is_same
[ "$(pgrep -f 'tool h1$' | sort | tr '\\n' ' ')" = "$program" ]; echo $? >/shared/program_ended
touch /run/go
walle hosts report h1 UNREACHABLE --fine
until walle hosts get h1 | grep -q '^before: reboot'; do sleep 1; done
walle hosts get h1 -o json >/shared/host.json
cp /var/lib/hq-walle/begun /shared/
systemctl show -p OOMPolicy,KillMode hq-walle >/shared/policies
systemctl poweroff --force --force
"""


@pytest.mark.long
@pytest.mark.timeout(420)
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="it takes root")
@pytest.mark.skipif(not SYSTEMD.exists() or not PYTHON.exists(), reason="there is no systemd, or no Python of its own")
def test_a_program_of_an_executor_outlives_a_killed_wall_e_and_is_found_again(
    tmp_path: Path, etcd_binary: EtcdBinary
) -> None:
    places = ":".join(map(str, (ROOT, ROOT / "proto", ROOT / "clients", sysconfig.get_path("purelib"))))
    files = {"check.target": TARGET, "check.service": CHECK, "walle.yaml": WALLE_YAML, "program": PROGRAM}
    files |= {"walle": START % (places, PYTHON), "check.sh": f"ETCD={etcd_binary.path}\n{SCRIPT}"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    namespaces = ("--pid", "--fork", "--kill-child", "--mount", "--uts", "--ipc", "--cgroup", "--net")
    words = ("unshare", *namespaces, "bash", "-c", BOOT, "boot", str(tmp_path), str(ROOT))
    outside = {name: value for name, value in os.environ.items() if name != "TMPDIR"}  # which is not there inside
    subprocess.run(words, env=outside, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=400)
    said = (tmp_path / "said").read_text()
    assert (tmp_path / "policies").exists(), said
    assert (tmp_path / "policies").read_text().split() == ["OOMPolicy=continue", "KillMode=process"]
    assert ((tmp_path / "is_same").read_text(), (tmp_path / "program_ended").read_text()) == ("0\n", "0\n"), said
    (repair, *_) = json.loads((tmp_path / "host.json").read_text())["host"]["history"]
    assert (tmp_path / "begun").read_text() == "h1\n", "begun once"
    assert repair["output"] == "exit code 0\ndone\n", repair
