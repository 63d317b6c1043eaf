"""The interface that does the work of an operation, and finds out whether it took place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from wallepb.v1.host_pb2 import Host


class ExecutorFailure(Exception):
    """The work failed, or could not be begun. Whether it took place may be unknown: `poll` finds out."""


class Unfit(ExecutorFailure):
    """The configuration, or what is known of the host, does not allow the work; the message says how to mend that."""


class WorkProgress(StrEnum):
    """The visible state of work that may have been begun."""

    DONE = "done"
    RUNNING = "running"
    NOT_BEGUN = "not begun"  # it may be begun (again)
    FAILED = "failed"
    UNKNOWN = "unknown"  # nothing will show whether it took place: only the check that asked for it can


@dataclass(frozen=True, slots=True)
class PollResult:
    """Progress, with what the executor printed or answered."""

    progress: WorkProgress
    output: str = ""


class Executor(Protocol):
    """All methods raise ExecutorFailure and may be called again at any time. `host.operation` is the work to do.

    Attributes:
        name: as configured; stored with the intent.
    """

    name: str

    async def progress_marker(self, host: Host) -> str:
        """Something that the work will change on the machine, e.g. its boot id; empty: there is nothing."""

    async def begin(self, host: Host) -> str:
        """Begin the work; returns a handle for `poll`, which is stored. Called only if `poll` can be used."""

    async def poll(self, host: Host, age_s: float) -> PollResult:
        """Whether work took place that was begun, or may have been begun by a process that died.

        `age_s`: how long ago the intent was stored. Without a handle it is unknown whether it was begun.
        """


class NoOp:
    """For operations without work of ours: a host is only taken into use or out of it. Done when it is begun."""

    name: str = "none"

    async def progress_marker(self, host: Host) -> str:
        return ""

    async def begin(self, host: Host) -> str:
        return "none"

    async def poll(self, host: Host, age_s: float) -> PollResult:
        return PollResult(WorkProgress.DONE)
