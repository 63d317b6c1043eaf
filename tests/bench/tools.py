"""The C tools that make the load, and what to install where one is missing."""

from __future__ import annotations

import re
import shutil
import subprocess

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
