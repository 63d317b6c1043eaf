"""Pages with ```console blocks: what is typed there and what is printed."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_MARK = "=== next"


def commands(page: Path) -> list[tuple[str, str]]:
    """Each command of the page with what it prints there."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    pairs = (part.partition("\n") for part in re.split(r"^\$ ", "".join(blocks), flags=re.MULTILINE)[1:])
    return [(command, printed) for command, _, printed in pairs]


def normal(text: str) -> list[str]:
    """Lines without widths of columns, versions and numbers of processes."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [re.sub(r"\b(running|version) \d+", r"\1 N", line) for line in lines]


def replaced(command: str, places: Mapping[str, str]) -> str:
    """The same command where addresses and folders are others."""
    for written, real in places.items():
        command = command.replace(written, real)
    return command


async def printed(typed: list[str], folder: Path, server: str, within_s: float) -> tuple[list[str], str]:
    """What each of these commands prints, typed into one shell at the top of the project; and all errors, as one text.

    `folder` takes the place of the home directory.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("HQ_") and k != "NANNY_CONFIG"}
    path = os.pathsep.join((str(_ROOT), str(_ROOT / "proto"), str(_ROOT / "clients")))
    errors = folder / "stderr"
    with errors.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", "\n".join(f"{command}\necho '{_MARK}'" for command in typed)),
            cwd=_ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env={**env, "PYTHONPATH": path, "HOME": str(folder), "HQ_SERVER": server},
            start_new_session=True,  # its own group, so that a failed run leaves nothing behind
        )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), within_s)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGTERM)
            await process.wait()
    *told, _ = out.decode().split(f"{_MARK}\n")
    return told, errors.read_text()
