"""What does the work of an operation, and finds out whether it took place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from wallepb.v1.host_pb2 import Host


class ExecutorFailure(Exception):
    """The work failed, or could not be begun. Whether it takes place may be unknown: `look` tells."""


class Progress(StrEnum):
    """What the world shows of work that may have been begun."""

    DONE = "done"
    RUNNING = "running"
    NOT_BEGUN = "not begun"  # it may be begun (again)
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Seen:
    """Progress, with what the executor printed or answered."""

    progress: Progress
    output: str = ""


class Executor(Protocol):
    """All methods raise ExecutorFailure and may be called again at any time. `host.operation` says what is wanted.

    Attributes:
        name: as configured; stored with the intent.
    """

    name: str

    async def before(self, host: Host) -> str:
        """What the machine shows now and will show otherwise after the work: a boot id; empty: nothing does."""

    async def begin(self, host: Host) -> str:
        """Begin the work; returns a handle to ask about it, which is stored. Called only when `look` may be asked."""

    async def look(self, host: Host, age_s: float) -> Seen:
        """Whether work that was begun, or may have been begun by a process that died, took place.

        `age_s`: how long ago the intent was stored. No handle in it: whether it was begun is not known.
        """


class Nothing:
    """For operations that take no work of ours: a host is only taken into use or out of it. Done when it is begun."""

    name: str = "none"

    async def before(self, host: Host) -> str:
        return ""

    async def begin(self, host: Host) -> str:
        return "none"

    async def look(self, host: Host, age_s: float) -> Seen:
        return Seen(Progress.DONE)
