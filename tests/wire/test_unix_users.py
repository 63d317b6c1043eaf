"""At a Unix socket, limits per peer are limits per user: no user takes the places of the others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from serving.limiting.admission import Admission
from serving.transport.server import Server
from tests.wire.limited import limited
from tests.wire.raw_http import post

FEW = 3
_NOBODY = 65534
_FLOOD = """
import os, socket, sys
os.setuid(%d)
held = [socket.socket(socket.AF_UNIX) for _ in range(%d)]
for one in held:
    one.connect(sys.argv[1])
    one.sendall(b"GET / HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n")
    one.recv(1)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
async def path(http_server: Server) -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hq-") as name:
        Path(name).chmod(0o755)
        path = Path(name) / "s"
        await http_server.listen(f"unix:{path}")
        path.chmod(0o666)
        yield path


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
@limited(max_connections=2 * FEW, max_connections_per_peer=FEW)
async def test_connections_of_one_user_leave_room_for_those_of_others(path: Path, admission: Admission) -> None:
    flood = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _FLOOD % (_NOBODY, FEW), str(path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert flood.stdout is not None
        assert await flood.stdout.readline() == b"held\n"
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(post(b'{"id":"web-1"}'))
        assert b" 200 " in await reader.readline()
        writer.close()
        assert admission.connections_of.held_by(f"unix:uid={_NOBODY}") == FEW
    finally:
        flood.terminate()
        await flood.wait()
