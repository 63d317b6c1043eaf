"""Machines of an installation, each a place of its own on this one: files, users, host name, network.

The caller runs in namespaces that are its own (`in_namespaces`), and is one more machine on the same network: that of
the operators. `ssh` there reaches the others. Everything goes with the caller, however it ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
NETWORK: Final = "10.0"  # as the page has it: 10.0.0.1, ...
OPERATORS: Final = "10.0.255.254"
_OWN: Final = ("etc", "var", "run", "opt", "root", "usr/local/bin")
_OWN_OF_OPERATORS: Final = ("etc/systemd/system", "var/log", "run")
_TOOLS: Final = ("unshare", "nsenter", "setpriv", "ip", "systemd-sysusers")
_SSH: Final = f"""#!{sys.executable}
# ssh [-o OPTION]... root@MACHINE COMMAND: MACHINE is a name or an address.
import os, pathlib, sys
while sys.argv[1] == "-o":
    del sys.argv[1:3]
machine = sys.argv[1].removeprefix("root@")
pid = pathlib.Path("HOLDERS", machine).read_text()
os.chdir("/")
environment = {{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}}
command = ["nsenter", "--target", pid, "--mount", "--uts", "--net", "sh", "-c", " ".join(sys.argv[2:])]
os.execvpe("nsenter", command, environment)
"""


_SYSTEMCTL: Final = f'#!/bin/sh\nexec {sys.executable} -I {ROOT}/tests/support/played_systemctl.py "$@"\n'


class CannotPlay(Exception):
    """This machine does not allow it; says why."""


def in_namespaces(command: list[str]) -> list[str]:
    """The command line that runs another one where machines can be played. Raises CannotPlay."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise CannotPlay(f"there is no {' and no '.join(missing)}")
    if os.geteuid() != 0:
        raise CannotPlay("it takes root, for users of services")
    unshare = ["unshare", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    trial = "ip link add br0 type bridge && ip link add v0 type veth peer name v1"
    tried = subprocess.run([*unshare, "sh", "-c", trial], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise CannotPlay(tried.stderr.strip())
    return [*unshare, *command]


class PlayedMachines:
    """All of them, and the network between."""

    def __init__(self, folder: Path, etcd: Path) -> None:
        """`folder`: where their files go; `etcd`: the program that is their /usr/bin/etcd."""
        self._folder, self._etcd = folder, etcd
        self._holders: dict[str, subprocess.Popen[bytes]] = {}
        self.tools = folder / "tools"
        for name in ("tools", "holders", "machines"):
            (folder / name).mkdir()
        for name, text in (("ssh", _SSH.replace("HOLDERS", str(folder / "holders"))), ("systemctl", _SYSTEMCTL)):
            (self.tools / name).write_text(text)
            (self.tools / name).chmod(0o755)
        for part in _OWN_OF_OPERATORS:
            (folder / "operators" / part).mkdir(parents=True)
            _do("mount", "--bind", str(folder / "operators" / part), f"/{part}")
        _do("mount", "--bind", str(self.tools), "/usr/local/bin")  # on the PATH of services
        _do("ip", "link", "set", "lo", "up")
        _do("ip", "link", "add", "br0", "type", "bridge")
        _do("ip", "address", "add", f"{OPERATORS}/16", "dev", "br0")
        _do("ip", "link", "set", "br0", "up")

    def add(self, name: str, address: str) -> None:
        """Switch a machine on: with an operating system, HQ in /opt/hq and etcd, and nothing of ours else."""
        root = self._folder / "machines" / name
        for part in _OWN:
            (root / part).mkdir(parents=True, exist_ok=True)
        shutil.copytree("/etc", root / "etc", symlinks=True, dirs_exist_ok=True)
        (root / "opt/hq").mkdir()
        shutil.copy2(self.tools / "systemctl", root / "usr/local/bin/systemctl")
        python = Path(sys.base_prefix).resolve()
        mounts = [f"mount --bind {root}/{part} /{part}" for part in _OWN]
        if python.is_relative_to("/root"):
            # Users of services may not look into root's own home.
            mounts[_OWN.index("root")] = (
                f"mkdir -p {root}/python {root}/root/{python.relative_to('/root')} && "
                f"mount --bind {python} {root}/python && mount --rbind {root}/root /root && "
                f"mount --bind {root}/python {python}"
            )
        script = [
            "set -e",
            *mounts,
            f"mount --bind {Path(sys.prefix)} /opt/hq",
            f"mount --bind {self._etcd} /usr/bin/etcd" if Path("/usr/bin/etcd").exists() else ":",
            f"hostname {name}",
            "ip link set lo up",
            f"touch {root}/is-on",
            "exec sleep infinity",
        ]
        hold = ["unshare", "--mount", "--propagation", "private", "--uts", "--net", "sh", "-c", "\n".join(script)]
        holder = subprocess.Popen(hold, stdin=subprocess.DEVNULL)
        self._holders[name] = holder
        _wait_for(root / "is-on", holder)
        for known in (name, address):
            (self._folder / "holders" / known).write_text(str(holder.pid))
        self._plug_in(name, address)

    def _plug_in(self, name: str, address: str) -> None:
        device, pid = f"to-{name}", self._holders[name].pid
        _do("ip", "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _do("ip", "link", "set", device, "master", "br0")
        _do("ip", "link", "set", device, "up")
        inside = ("nsenter", "--target", str(pid), "--net")
        _do(*inside, "ip", "address", "add", f"{address}/16", "dev", "eth0")
        _do(*inside, "ip", "link", "set", "eth0", "up")

    def unplug(self, name: str) -> None:
        """Cut the machine off: nobody gets an answer, or a reset."""
        _do("ip", "link", "set", f"to-{name}", "down")

    def replug(self, name: str) -> None:
        _do("ip", "link", "set", f"to-{name}", "up")

    def end(self) -> None:
        """Switch all off."""
        for holder in self._holders.values():
            holder.kill()
            holder.wait()

    def log(self, name: str, unit: str) -> str:
        """What a unit said."""
        path = self._folder / "machines" / name / "var/log/journal" / f"{unit}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def path(self, name: str, path: str) -> Path:
        """A file of a machine."""
        return self._folder / "machines" / name / path.lstrip("/")


def _wait_for(file: Path, holder: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 20.0
    while not file.exists():
        if holder.poll() is not None or time.monotonic() > ends:
            raise CannotPlay(f"{file.parent.name} did not come up")
        time.sleep(0.01)


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotPlay(f"{' '.join(command)}: {done.stderr.strip()}")
