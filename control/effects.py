"""When an effect on the world may begin: a reboot, a write to HQ, anything that no transaction of the store guards.

After a pause a process may send what it decided long ago. So an effect may only begin within half a
term of sending the transaction that stored its intent, on its own clock: a successor waits for a whole term. What no
check can prevent is a pause between the last check and the call (docs/controllers.md).
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from control.errors import MayNotBegin
from control.records import Kind
from controlpb.v1 import control_pb2
from serving.clock import Clock

log = logging.getLogger(__name__)

FREEZE: Final = Kind("freeze", control_pb2.Freeze)
OPENING: Final = Kind("opening", control_pb2.Opening)
ALL: Final = "all"


class EmergencyStop:
    """Stops this process' effects at once, also without the store: by a file, or by a signal (`trip`).

    A stop by a file ends when the file is removed; one by a signal ends with the process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._tripped = ""

    def trip(self, reason: str) -> None:
        log.error("emergency stop: %s", reason)
        self._tripped = reason

    def reason(self) -> str:
        """Why nothing may begin; empty: it may. A file that cannot be checked counts as a stop, too."""
        if self._tripped or self._path is None:
            return self._tripped
        try:
            self._path.lstat()
        except OSError as error:
            is_absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
            return "" if is_absent else f"emergency stop: cannot look at {self._path}: {error.strerror}"
        return f"emergency stop: {self._path} exists"


@dataclass(frozen=True, slots=True)
class Switches:
    """Everything that prevents effects. Each function returns why; empty: nothing does."""

    stop: EmergencyStop
    frozen: Callable[[], str]
    closed: Callable[[], str]
    not_acting: Callable[[], str]
    unrecorded: Callable[[], str]

    def why_not(self, *, new: bool) -> str:
        """`new` False: for the next step of work in progress, which a freeze or a full audit log lets finish."""
        begins = (self.frozen() or self.unrecorded()) if new else ""
        return self.stop.reason() or self.not_acting() or self.closed() or begins


class EffectIntent:
    """The intent that was stored before an effect, and until when the effect may begin."""

    def __init__(
        self,
        switches: Switches,
        clock: Clock,
        sent_at: float,
        valid_s: float,
        version: int,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """interrupted: whether this process has restarted its work since, so that its next run may do this, too."""
        self._switches, self._clock, self._until = switches, clock, sent_at + valid_s
        self._interrupted = interrupted
        self.version = version

    def check(self, *, new: bool = True) -> None:
        """Call this directly before each effect, with nothing awaited in between. Raises MayNotBegin."""
        if why := self._switches.why_not(new=new):
            raise MayNotBegin(why)
        if self._interrupted():
            raise MayNotBegin("this process restarted its work: store the intent again")
        if self._clock.now() >= self._until:
            raise MayNotBegin("the intent was stored too long ago: store it again")
