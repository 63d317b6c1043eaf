"""A program: imports what our commands import, and forks a process for each that is asked for on its socket.

A fork by `os.fork` would be this process's child, not the test's: nobody there could wait for it. So it is cloned with
the same parent as this process has, and Python is told of it as `os.fork` would.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import platform
import runpy
import signal
import socket
import sys
from typing import Any

_PACKAGES = ("hq", "cms", "nanny", "federated", "console", "gateways")
_COMMANDS = ("hqctl", "instancectl", "nannyctl", "wallectl")
_CLONE_PARENT = 0x8000
_SYS_CLONE = {"x86_64": 56, "aarch64": 220}


def import_all() -> None:
    """What the commands import; not their `main`, which is run anew each time."""
    for package in (*_PACKAGES, *_COMMANDS):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for package in (*_PACKAGES, *_COMMANDS):
        sys.modules.pop(f"{package}.main", None)


def fork() -> int:
    """As os.fork, but the child is one of our parent."""
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    pid: int = python.syscall(_SYS_CLONE[platform.machine()], _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid:
        python.PyOS_AfterFork_Parent()
    else:
        python.PyOS_AfterFork_Child()
    return pid


def answer(to: socket.socket) -> dict[str, Any]:
    """Fork for each request; returns in the child, with what was asked for. Ends when nobody can ask any more."""
    while True:
        raw, files, _, _ = socket.recv_fds(to, 1 << 20, 3)
        if not raw:
            os._exit(0)
        pid = fork()
        if not pid:
            to.close()
            for standard, file in enumerate(files):
                os.dup2(file, standard)
                if file > 2:
                    os.close(file)
            asked: dict[str, Any] = json.loads(raw)
            return asked
        to.send(str(pid).encode())
        for file in files:
            os.close(file)


def become(asked: dict[str, Any]) -> None:
    """Take over what a new process would have got."""
    if asked["session"]:
        os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = asked["argv"]
    is_unbuffered = bool(asked["env"].get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty(), write_through=is_unbuffered)
    sys.stderr = sys.__stderr__ = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    import_all()
    gc.collect()
    gc.freeze()
    asking = socket.socket(fileno=int(sys.argv[1]))
    asking.send(b"ready")
    become(answer(asking))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
