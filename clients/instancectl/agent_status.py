"""What `instancectl status --host-agent` shows: what supervisors of this node said last, and what HQ said to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from pathlib import Path
from typing import Any, Final

PATH: Final = "instancectl.HostAgent/Status"
COLUMNS = ("INSTANCE", "REVISION", "INSTALLED", "READY", "REPORTED")
_PATIENCE_S: Final = 10.0


async def ask(path: Path) -> Any:
    """What the host agent at this socket says. Raises OSError."""
    return await asyncio.to_thread(_ask, path)


def rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line for each revision."""
    names = [column.lower() for column in COLUMNS]
    return [tuple(str(revision[name]) for name in names) for revision in found["revisions"]]


def remarks(found: dict[str, Any]) -> list[str]:
    """What does not fit the table."""
    lines = [f"the host agent of node {found['node']}"]
    return lines + ([f"HQ: {found['trouble']}"] if found["trouble"] else [])


def is_reported(found: dict[str, Any]) -> bool:
    """HQ has taken everything that supervisors said, and there is something."""
    return bool(found["revisions"]) and all(revision["is_reported"] for revision in found["revisions"])


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _ask(path: Path) -> Any:
    connection = _Connection(path)
    try:
        connection.request("POST", f"/{PATH}", b"{}", {"content-type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise OSError(f"{path} is no host agent")
        return json.loads(body)
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"{path} is no host agent") from error
    finally:
        connection.close()
