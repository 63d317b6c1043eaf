"""Processes of our commands without the second that each takes to import the tree: forked from one that has.

`python -m hqctl.main …` is forked, with the same arguments, variables, folder and files, by a process that has imported
what our commands import (`warm_process.py`). The child is a child of the test's process, as it would be otherwise, so
`subprocess` and asyncio wait for it and kill it as usual. Started otherwise are: the first ones, until the warm process
is ready; whatever is asked for more than that (other Python variables, `pass_fds`); and all in `make test-long`.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_PATH = [str(_ROOT), str(_ROOT / "proto"), str(_ROOT / "clients")]
# Not walle: it must set a variable before anybody imports grpc.
_WARM_MODULES = {
    f"{package}.main"
    for package in (
        *("hq", "cms", "nanny", "federated", "console", "gateways"),
        *("hqctl", "instancectl", "nannyctl", "wallectl"),
    )
}
_COLD = subprocess.Popen._execute_child  # type: ignore[attr-defined]
_NAMES = inspect.signature(_COLD)


class _WarmProcess:
    """The process that forks, started by the first who asks."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False

    def is_ready(self) -> bool:
        if self._socket is None:
            self._start()
        elif not self._is_ready:
            with contextlib.suppress(BlockingIOError):
                self._is_ready = self._socket.recv(16, socket.MSG_DONTWAIT) == b"ready"
        return self._is_ready

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(_ROOT / "tests/support/warm_process.py"), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_PATH)},
            )

    def fork(self, request: dict[str, Any], files: list[int]) -> int:
        """The id of the new process. `files`: its standard input, output and errors."""
        assert self._socket is not None
        socket.send_fds(self._socket, [json.dumps(request).encode()], files)
        return int(self._socket.recv(16))

    def end(self) -> None:
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.wait()


_WARM = _WarmProcess()


def _execute_child(self: Any, *given: Any) -> None:
    asked = _NAMES.bind(self, *given).arguments
    if not _can_be_warm(asked) or not _WARM.is_ready():
        _COLD(self, *given)
        return
    environ = os.environ if asked["env"] is None else asked["env"]
    request = {
        "argv": list(map(os.fspath, asked["args"]))[2:],
        "env": dict(environ),
        "cwd": os.fspath(asked["cwd"] or Path.cwd()),
        "session": bool(asked["start_new_session"]),
    }
    theirs = [asked["p2cread"], asked["c2pwrite"], asked["errwrite"]]
    self.pid = _WARM.fork(request, [file if file != -1 else standard for standard, file in enumerate(theirs)])
    self._child_created = True
    ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
    self._close_pipe_fds(*(asked[end] for end in ends))


def _can_be_warm(asked: dict[str, Any]) -> bool:
    args, environ = asked["args"], os.environ if asked["env"] is None else asked["env"]
    if isinstance(args, (str, bytes)) or list(args[:2]) != [sys.executable, "-m"] or asked["shell"]:
        return False
    special = ("preexec_fn", "pass_fds", "gid", "gids", "uid")
    if any(asked[name] for name in special) or asked["umask"] != -1 or asked["process_group"] != -1:
        return False
    if str(args[2]) not in _WARM_MODULES:
        return False
    theirs = {name: value for name, value in environ.items() if name.startswith("PYTHON")}
    path = [str(Path(part)) for part in theirs.pop("PYTHONPATH", "").split(os.pathsep)]
    return path[: len(_PATH)] == _PATH and theirs.items() <= os.environ.items()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("markexpr") == "not long":
        subprocess.Popen._execute_child = _execute_child  # type: ignore[attr-defined]


def pytest_unconfigure() -> None:
    subprocess.Popen._execute_child = _COLD  # type: ignore[attr-defined]
    _WARM.end()
