"""Where the processes of a rig live: all on the loopback, or each member and each replica in a network namespace.

The rig moves into a namespace of its own first (`rig_command`), and every place is joined to that one by a pair of veth
devices. Nothing of it is known to the machine: it goes with the last process inside, however the rig ends. Between any
two processes there still is a proxy, which lives with the rig; a cable drops packets below TCP besides, and nobody gets
a reset.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
_GATES = "10.77.0.1"  # where all proxies listen: reached from every place
_CUT, _LOCAL = "50", "100"  # ranks of routing rules: what is cut is looked up before what is ours
_TRIAL = "ip link add trial0 type veth peer name trial1 && ip rule add iif trial0 blackhole"


class NoNamespaces(Exception):
    """The machine does not allow them; says why."""


class Cable:
    """Between a place and the rig. Either way can drop all packets, silently."""

    def __init__(self, device: str, inside: tuple[str, ...]) -> None:
        self._drop_sent = ("ip", "rule", "{}", "pref", _CUT, "iif", device, "blackhole")
        self._drop_received = (*inside, "ip", "rule", "{}", "pref", _CUT, "iif", "eth0", "blackhole")

    def drop(self, *, sent: bool, received: bool) -> None:
        """Nothing that the place sends arrives, or nothing arrives there, until `heal` with the same words."""
        self._change("add", sent, received)

    def heal(self, *, sent: bool, received: bool) -> None:
        self._change("del", sent, received)

    def _change(self, word: str, sent: bool, received: bool) -> None:
        for wanted, command in ((sent, self._drop_sent), (received, self._drop_received)):
            if wanted:
                _do(*(word if each == "{}" else each for each in command))


@dataclass(frozen=True, slots=True)
class Place:
    """Where one process lives.

    Attributes:
        host: the address that it listens at.
        enter: the words before a command line that make it run there.
        cable: what joins it to the rig; None on the loopback.
    """

    host: str = LOOPBACK
    enter: tuple[str, ...] = ()
    cable: Cable | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """One for each member and each replica. `gates`: the address that the rig's proxies listen at."""

    members: tuple[Place, ...]
    replicas: tuple[Place, ...]
    gates: str = LOOPBACK

    @property
    def are_apart(self) -> bool:
        """Whether there are cables."""
        return self.gates != LOOPBACK


def on_the_loopback(size: int) -> Places:
    """Everybody at one address."""
    return Places((Place(),) * size, (Place(),) * size)


def rig_command(command: list[str]) -> list[str]:
    """The command line that runs another one in a namespace of its own. Raises NoNamespaces."""
    missing = [tool for tool in ("unshare", "nsenter", "setpriv", "ip") if shutil.which(tool) is None]
    if missing:
        raise NoNamespaces(f"there is no {' and no '.join(missing)}")
    unshare = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    tried = subprocess.run([*unshare, "sh", "-c", _TRIAL], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise NoNamespaces(tried.stderr.strip())
    return [*unshare, *command]


@contextmanager
def apart(size: int) -> Iterator[Places]:
    """Places for members and replicas. The caller runs in a namespace that is its own (`rig_command`)."""
    _do("ip", "link", "set", "lo", "up")
    _do("ip", "address", "add", f"{_GATES}/32", "dev", "lo")
    _rank_rules()
    holders: list[subprocess.Popen[bytes]] = []
    try:
        made = [_new_place(number, holders) for number in range(1, 2 * size + 1)]
        yield Places(tuple(made[:size]), tuple(made[size:]), _GATES)
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def _new_place(number: int, holders: list[subprocess.Popen[bytes]]) -> Place:
    """A namespace lives as long as a process in it: this one goes with the rig, whatever ends it."""
    hold = ("unshare", "--net", "setpriv", "--pdeathsig", signal.SIGKILL.name.removeprefix("SIG"), "sleep", "infinity")
    holder = subprocess.Popen(hold)
    holders.append(holder)
    _wait_until_apart(holder.pid)
    inside = ("nsenter", f"--net=/proc/{holder.pid}/ns/net")
    device, here, there = f"place{number}", f"10.77.{number}.1", f"10.77.{number}.2"
    _do("ip", "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
    _do("ip", "address", "add", f"{here}/30", "dev", device)
    _do("ip", "link", "set", device, "up")
    _do(*inside, "ip", "link", "set", "lo", "up")
    _do(*inside, "ip", "address", "add", f"{there}/30", "dev", "eth0")
    _do(*inside, "ip", "link", "set", "eth0", "up")
    _do(*inside, "ip", "route", "add", "default", "via", here)
    _rank_rules(*inside)
    return Place(there, inside, Cable(device, inside))


def _wait_until_apart(pid: int) -> None:
    ours = Path("/proc/self/ns/net").readlink()
    ends = time.monotonic() + 10.0
    while Path(f"/proc/{pid}/ns/net").readlink() == ours:
        if time.monotonic() > ends:
            raise NoNamespaces("unshare does not come to an end")
        time.sleep(0.01)


def _rank_rules(*inside: str) -> None:
    """By default what is for this machine is looked up first of all, and no rule could drop it."""
    _do(*inside, "ip", "rule", "add", "pref", _LOCAL, "lookup", "local")
    _do(*inside, "ip", "rule", "del", "pref", "0")


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNamespaces(f"{' '.join(command)}: {done.stderr.strip()}")
