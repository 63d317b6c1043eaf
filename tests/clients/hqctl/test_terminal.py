"""hqctl on a terminal of its own: colours, widths, questions, the live table."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.clients.hqctl.conftest import Hqctl, clean_environment, documents

ESCAPE = "\x1b["
PATIENCE_S = 40.0


class Terminal:
    """A program on a pseudo terminal, and everything that it has shown."""

    def __init__(self, columns: int, server: str, *arguments: str, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hqctl.main", "--server", server, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**clean_environment(), "TERM": "xterm-256color", **environment},
            close_fds=True,
        )
        os.close(theirs)
        self.shown = ""

    def until(self, pattern: str) -> None:
        """Read until it has shown something."""
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.shown):
            assert self._read(deadline), f"{pattern!r} is not in {self.shown!r}"

    def end(self) -> int:
        """Read until it ends; the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE_S)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            return False
        self.shown += chunk.decode(errors="replace")
        return bool(chunk)


@contextmanager
def terminal(columns: int, server: str, *arguments: str, **environment: str) -> Iterator[Terminal]:
    one = Terminal(columns, server, *arguments, **environment)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture(autouse=True)
def two(hqctl: Hqctl, service: str) -> None:
    text = documents(service, "1", "2", node="node-with-a-name-that-is-rather-long.rack-17.example.com")
    hqctl("apply", "-f", "-", stdin=text)
    hqctl("report", f"{service}-1", "r1", "--ready")


def test_a_wide_table_takes_one_line_per_row_on_a_narrow_terminal_and_has_colours(server: str, service: str) -> None:
    with terminal(80, server, "find", service, "-o", "wide") as one:
        assert one.end() == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", one.shown).splitlines()
    assert len(lines) == 3
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].startswith(f"{service}-1 ")  # what gets copied is whole
    assert ESCAPE in one.shown


def test_no_color_is_heeded(server: str, service: str) -> None:
    with terminal(80, server, "status", NO_COLOR="1") as one:
        assert one.end() in (0, 1)  # with or without a problem
    assert ESCAPE not in one.shown
    assert all(len(line) <= 80 for line in one.shown.splitlines())


def test_deleting_several_asks_first(server: str, service: str, hqctl: Hqctl) -> None:
    with terminal(80, server, "delete", f"{service}-1", f"{service}-2") as one:
        one.until("Delete")
        one.type("n\n")
        assert one.end() == 1
    assert f"2 instances: {service}-1, {service}-2" in one.shown
    assert hqctl("find", service, "-o", "name").out.count("\n") == 2


def test_a_watch_is_a_table_that_is_kept_up_to_date(server: str, service: str, hqctl: Hqctl) -> None:
    with terminal(100, server, "watch", service) as one:
        one.until("1 of 2 instances ready, up to date")
        hqctl("report", f"{service}-2", "r1", "--ready")
        one.until("2 of 2 instances ready")
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 130
    assert "unknown>yes" in one.shown
