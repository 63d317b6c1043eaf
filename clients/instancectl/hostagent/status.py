"""The output of `instancectl status --host-agent`: the newest report of each revision, kept, asked for and printed."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

PATH: Final = "instancectl.HostAgent/Status"
COLUMNS = ("INSTANCE", "REVISION", "INSTALLED", "READY", "REPORTED")
_PATIENCE_S: Final = 10.0
_KEPT_S: Final = 3_600.0
_MOST: Final = 10_000  # revisions; far more than a node runs
_LONGEST: Final = 253  # of an id that HQ takes
_WORDS: Final = {instance_pb2.CONDITION_STATUS_TRUE: "yes", instance_pb2.CONDITION_STATUS_FALSE: "no"}


async def ask(path: Path) -> Any:
    """The status from the host agent at this socket. Raises OSError."""
    return await asyncio.to_thread(_ask, path)


def rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line for each revision."""
    names = [column.lower() for column in COLUMNS]
    return [tuple(str(revision[name]) for name in names) for revision in found["revisions"]]


def remarks(found: dict[str, Any]) -> list[str]:
    """Return the lines that do not fit the table."""
    lines = [f"the host agent of node {found['node']}"]
    return lines + ([f"HQ: {found['trouble']}"] if found["trouble"] else [])


def is_as_wanted(found: dict[str, Any]) -> bool:
    """Whether HQ has accepted everything that supervisors reported, and there is something."""
    return bool(found["revisions"]) and all(revision["is_reported"] for revision in found["revisions"])


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _ask(path: Path) -> Any:
    connection = _SocketConnection(path)
    try:
        connection.request("POST", f"/{PATH}", b"{}", {"content-type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise OSError(f"{path} is not the socket of a host agent")
        return json.loads(body)
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"{path} is not the socket of a host agent") from error
    finally:
        connection.close()


class _Last(NamedTuple):
    """A report: when it was answered, and why it was refused (empty: it was not)."""

    at: float
    installed: str
    ready: str
    refused: str


class LatestReports:
    """The newest report of each revision, as long as it is recent; invented ids take bounded memory only."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], _Last] = {}  # the oldest is first

    def note(self, report: pb.ReportStatusRequest, refused: str, now: float) -> None:
        """Keep a report that was answered; `refused`: why, empty: it was accepted."""
        revision, key = report.revision, (report.instance_id, report.revision.id)
        if max(map(len, key)) > _LONGEST:
            return
        self._last.pop(key, None)
        self._last[key] = _Last(now, _word(revision.installed), _word(revision.ready), refused)
        self._forget(now)

    def rows(self, may: Callable[[str], bool], now: float) -> list[dict[str, Any]]:
        """Each revision of an instance that the caller may speak for, in order of their ids."""
        self._forget(now)
        return [
            {
                "instance": instance_id,
                "revision": revision_id,
                "installed": last.installed,
                "ready": last.ready,
                "reported": last.refused or f"{now - last.at:.0f} s ago",
                "is_reported": not last.refused,
            }
            for (instance_id, revision_id), last in sorted(self._last.items())
            if may(instance_id)
        ]

    def _forget(self, now: float) -> None:
        while self._last:
            oldest = next(iter(self._last))
            if len(self._last) <= _MOST and now - self._last[oldest].at < _KEPT_S:
                break
            del self._last[oldest]


def _word(condition: instance_pb2.Condition) -> str:
    return _WORDS.get(condition.status, "unknown")
