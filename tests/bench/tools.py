"""The tools that make the load, in C and Go, and what to install where one is missing."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

GRPC_GO = "v1.84.0"
_CONSUL_API = "v1.34.0"
NO_GO = f"go is not installed, or cannot have google.golang.org/grpc {GRPC_GO}"
_PACKAGES = {"h2load": "nghttp2-client", "wrk": "wrk"}  # as Debian and Ubuntu call them


class ToolsMissing(Exception):
    """A load generator is not installed; the message says how to get it."""


def check() -> dict[str, str]:
    """Version by tool.

    Raises:
        ToolsMissing: one is not on PATH.
    """
    missing = [tool for tool in _PACKAGES if shutil.which(tool) is None]
    if missing:
        packages = " ".join(_PACKAGES[tool] for tool in missing)
        raise ToolsMissing(f"{' and '.join(missing)} not found on PATH: install the Debian package(s) {packages}")
    return {tool: _version(tool) for tool in _PACKAGES}


def _version(tool: str) -> str:
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=30, check=False)
    found = re.search(r"\d+\.\d+[\w.]*", said.stdout + said.stderr)
    return found[0] if found else "unknown"


async def go_program(name: str, directory: Path) -> Path | None:
    """A program of `go/`, compiled in a directory that is made for it; None: that cannot be done here.

    It may import our own client and Consul's.
    """
    if shutil.which("go") is None:
        return None
    directory.mkdir()
    shutil.copy(Path(__file__).parent / "go" / f"{name}.go", directory / "main.go")
    ours = Path(__file__).parents[2] / "clients" / "go"
    uses = f"-require=example.com/hq@v0.0.0 -replace=example.com/hq={ours}"
    uses += f" -require=github.com/hashicorp/consul/api@{_CONSUL_API}"
    for step in (
        "mod init bench",
        f"mod edit {uses}",
        f"get google.golang.org/grpc@{GRPC_GO}",
        "mod tidy",
        f"build -o {name} .",
    ):
        process = await asyncio.create_subprocess_exec(
            "go", *step.split(), cwd=directory, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        if await process.wait():
            return None
    return directory / name
