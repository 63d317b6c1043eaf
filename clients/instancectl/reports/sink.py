"""Where statuses go: to HQ, to the host agent, or nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hqpb.v1.instance_pb2 import RevisionStatus
from instancectl.reports.subject import SubjectId

# Called with the subject, HQ's reason and its sentence when a subject must not be reported any more.
Stopped = Callable[[SubjectId, str, str], None]


class Sink(Protocol):
    """Takes the status of revisions and sees to it that HQ knows it."""

    def say(self, subject: SubjectId, status: RevisionStatus) -> None:
        """This is so now; repeated by the sink as often as HQ wants to hear it."""
        ...

    def forget(self, subject: SubjectId) -> None:
        """Nothing is to be said of it any more."""
        ...

    def resume(self) -> None:
        """The wanted state changed: what HQ refused before may be right now. Being fenced is for good."""
        ...

    async def run(self) -> None:
        """Report until cancelled."""
        ...

    async def flush(self, timeout_s: float) -> None:
        """Say all news now, once; give up after the time."""
        ...

    async def drain(self, period_s: float) -> None:
        """Return `period_s` after HQ has accepted what was said last; at once if nobody is told."""
        ...

    def describe(self) -> dict[str, Any]:
        """For `status`."""
        ...


class NoSink:
    """Nobody is told."""

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
