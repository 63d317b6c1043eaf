"""Where statuses are reported: to HQ, to the host agent, or nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hqpb.v1.instance_pb2 import RevisionStatus
from instancectl.reports.subject import SubjectId

# Called with the subject, HQ's reason and its message when a subject must not be reported any more.
Stopped = Callable[[SubjectId, str, str], None]


class StatusSink(Protocol):
    """Takes the status of revisions and sees to it that HQ knows it."""

    def say(self, subject: SubjectId, status: RevisionStatus) -> None:
        """Set the current status; the sink repeats it as often as HQ wants to hear it."""
        ...

    def forget(self, subject: SubjectId) -> None:
        """Stop reporting it."""
        ...

    def resume(self) -> None:
        """The wanted state changed: what HQ refused before may be accepted now. Being fenced is final."""
        ...

    async def run(self) -> None:
        """Report until cancelled."""
        ...

    async def flush(self, timeout_s: float) -> None:
        """Report all news now, once; give up after the timeout."""
        ...

    async def drain(self, period_s: float) -> None:
        """Return `period_s` after HQ has accepted the latest report; at once if nothing is reported."""
        ...

    def describe(self) -> dict[str, Any]:
        """The sink's line in `status`."""
        ...


class NoSink:
    """Reports nothing."""

    def say(self, subject: SubjectId, status: RevisionStatus) -> None:
        pass

    def forget(self, subject: SubjectId) -> None:
        pass

    def resume(self) -> None:
        pass

    async def run(self) -> None:
        pass

    async def flush(self, timeout_s: float) -> None:
        pass

    async def drain(self, period_s: float) -> None:
        pass

    def describe(self) -> dict[str, Any]:
        return {"to": "nobody"}
