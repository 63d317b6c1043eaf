"""What supervisors said last, and what HQ said to it: for `instancectl status --host-agent`, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

_KEPT_S: Final = 3_600.0
_MOST: Final = 10_000  # revisions; far more than a node runs
_LONGEST: Final = 253  # of an id that HQ takes
_WORDS: Final = {instance_pb2.CONDITION_STATUS_TRUE: "yes", instance_pb2.CONDITION_STATUS_FALSE: "no"}


class _Last(NamedTuple):
    """A report: when it was answered, and how; empty: it was taken."""

    at: float
    installed: str
    ready: str
    refused: str


class Heard:
    """The newest report of each revision, as long as it is new; whoever makes up ids takes a bounded memory."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], _Last] = {}  # the oldest is first

    def note(self, report: pb.ReportStatusRequest, refused: str, now: float) -> None:
        """A report was answered."""
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
