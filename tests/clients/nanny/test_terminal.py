"""What people see on a terminal, and scripts in a pipe."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from pathlib import Path

import pytest

from tests.clients.nanny.uploads import description, nanny, written
from tests.clients.process import environment
from tests.support.replicas import ReplicaProcess

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


async def on_a_terminal(*arguments: str, server: str, **more: str) -> str:
    """All that nanny writes on a terminal of its own."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nannyctl.main"),
        *arguments,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment(server), "TERM": "xterm-256color", "HOME": os.devnull, **more},
    )
    os.close(theirs)
    written_bytes, _ = await asyncio.gather(asyncio.to_thread(_all_of, ours), asyncio.wait_for(process.wait(), 30))
    return written_bytes.decode()


def _all_of(terminal: int) -> bytes:
    found = b""
    try:
        while part := os.read(terminal, 65536):
            found += part
    except OSError:  # how a terminal says that nobody writes any more
        pass
    finally:
        os.close(terminal)
    return found


@pytest.mark.long
async def test_a_terminal_gets_colours_and_bars_and_a_pipe_plain_lines(replica: ReplicaProcess, tmp_path: Path) -> None:
    file = written(tmp_path, "web.yaml", description(120, "v1"))
    coloured = await on_a_terminal("plan", "-f", file, server=replica.grpc)
    assert "\x1b[32m" in coloured
    assert "\x1b" not in await on_a_terminal("plan", "-f", file, server=replica.grpc, NO_COLOR="1")
    assert "\x1b" not in (await nanny("plan", "-f", file, server=replica.grpc)).out
    first = await on_a_terminal("upload", "-f", file, server=replica.grpc)
    assert "120/120" in first
    assert "web-0000" not in first, "on a terminal only failures are told one by one"
    assert first.splitlines()[-1].endswith("default: 120 created")
    second = written(tmp_path, "v2.yaml", description(120, "v2"))
    piped = await nanny("upload", "-f", second, server=replica.grpc)
    assert piped.err.splitlines() == [f"default: {n} of 120" for n in range(12, 121, 12)]
    assert len(piped.out.splitlines()) == 121
    assert "\x1b" not in piped.out + piped.err
