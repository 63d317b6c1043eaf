"""What supervisors said last, and what HQ said to it: for `instancectl status --host-agent`, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

_KEPT_S: Final = 3_600.0
_WORDS: Final = {instance_pb2.CONDITION_STATUS_TRUE: "yes", instance_pb2.CONDITION_STATUS_FALSE: "no"}


class _Last(NamedTuple):
    """A report: when it was answered, and how; empty: it was taken."""

    at: float
    installed: str
    ready: str
    refused: str


class Heard:
    """The newest report of each revision."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], _Last] = {}

    def note(self, report: pb.ReportStatusRequest, refused: str, now: float) -> None:
        """A report was answered."""
        revision = report.revision
        words = (_word(revision.installed), _word(revision.ready))
        self._last[report.instance_id, revision.id] = _Last(now, *words, refused)

    def rows(self, may: Callable[[str], bool], now: float) -> list[dict[str, Any]]:
        """Each revision of an instance that the caller may speak for, in order of their ids."""
        self._last = {key: last for key, last in self._last.items() if now - last.at < _KEPT_S}
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


def _word(condition: instance_pb2.Condition) -> str:
    return _WORDS.get(condition.status, "unknown")
