"""hqctl as a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """How a process ended and what it wrote."""

    code: int
    out: str
    err: str


def environment(server: str = "", root: Path = ROOT) -> dict[str, str]:
    """Variables for a child that finds the code of a source tree and, if named, a server."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(root), str(root / "proto"), str(root / "clients"))),
        "HQ_SERVER": server,
    }


async def hqctl(server: str, *arguments: str, stdin: str = "") -> Outcome:
    """Run hqctl to its end."""
    return await command("hqctl.main", *arguments, server=server, stdin=stdin)


async def command(module: str, *arguments: str, server: str = "", stdin: str = "", root: Path = ROOT) -> Outcome:
    """Run one of our commands, of this version or from the source tree of another one, to its end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(server, root),
        cwd=root,
    )
    return await ended(process, stdin.encode())


async def ended(process: asyncio.subprocess.Process, stdin: bytes | None = None) -> Outcome:
    """How it ended; it is killed if that takes a minute and a half. `stdin` None: it has none."""
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), 90)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Outcome(process.returncode, out.decode(), (err or b"").decode())
