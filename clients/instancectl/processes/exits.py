"""How a process ended."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

NOT_EXECUTABLE, NOT_FOUND = 126, 127


@dataclass(frozen=True, slots=True)
class Exit:
    """An exit code, a signal, or neither: the process was adopted, and only its parent is told how it ended."""

    code: int | None = None
    signal: int | None = None

    @classmethod
    def from_wait_status(cls, status: int) -> Exit:
        code = os.waitstatus_to_exitcode(status)
        return cls(code=code) if code >= 0 else cls(signal=-code)

    @property
    def succeeded(self) -> bool:
        return self.code == 0

    @property
    def reason(self) -> str:
        """Reason, one word in CamelCase."""
        if self.signal is not None:
            return "Killed"
        if self.code is None:
            return "UnknownEnd"
        return {0: "Completed", NOT_EXECUTABLE: "NotExecutable", NOT_FOUND: "NotFound"}.get(self.code, "Error")

    def __str__(self) -> str:
        if self.signal is not None:
            return f"was killed by {signal_name(self.signal)}"
        return "ended with unknown status" if self.code is None else f"exited with {self.code}"


def signal_name(number: int) -> str:
    """SIGKILL for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
