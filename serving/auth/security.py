"""Everything about security of one process, kept up to date with its files."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

from serving.auth.audit import Audit
from serving.auth.gate import DENIALS, Gate
from serving.auth.tls import ServerTls
from serving.auth.watched import WatchedFiles
from serving.telemetry.metrics import Declared

_REREAD_S: Final = 1.0
_MARK_EVERY_S: Final = 300.0

Reread = tuple[WatchedFiles[Any], Callable[[], None]]
"""A file, and what to do when it says something else."""


class Security:
    """The gate that calls pass, TLS of the transports, and the files that both live by.

    Attributes:
        gate: None: nobody is asked who they are.
        tls: None: plain text.
    """

    def __init__(self, gate: Gate | None, tls: ServerTls | None, audit: Audit, files: list[Reread]) -> None:
        self.gate, self.tls, self.audit = gate, tls, audit
        self._files = [*files, *((file, _nothing) for file in (tls.files if tls else ()))]

    async def keep(self) -> None:
        """Follow the files and the clock until cancelled."""
        while True:
            await asyncio.sleep(_REREAD_S)
            self.refresh()

    def close(self) -> None:
        """The process ends."""
        if self.gate is not None:
            self.gate.denials.tell_rest(all_of_it=True)
        self.audit.close()

    def refresh(self) -> None:
        """Read again what has changed; end streams whose time is over."""
        for file, use in self._files:
            if file.reread():
                use()
        if self.gate is not None:
            self.gate.end_leases()
            self.gate.denials.tell_rest()
        self.audit.tell(_MARK_EVERY_S)

    def note(self) -> str:
        """What an operator should know, in a sentence; empty: nothing. Anybody may read it: why stands in the log."""
        faults = [f"--{file.name} was changed but not loaded, see the log" for file, _ in self._files if file.fault]
        if self.audit.fault:
            faults.append("the audit log cannot be written, orders are refused, see the log")
        return "; ".join(faults)

    def file_faults(self) -> dict[tuple[str, ...], float]:
        """By flag: 1 for a file that is not in force as it is now."""
        return {(file.name,): float(bool(file.fault)) for file, _ in self._files}

    def denied(self) -> dict[tuple[str, ...], float]:
        """Calls that were, by the code that they got."""
        counted = self.gate.denied if self.gate is not None else {}
        return {(code,): counted.get(code, 0) for code in DENIALS}

    def certificate_expires_at(self) -> float:
        """Unix time in seconds; NaN: there is no TLS."""
        return math.nan if self.tls is None else self.tls.expires_at


def _nothing() -> None:
    """TLS asks its files at each handshake."""


_FILE_TEXT: Final = "1 if a changed security file could not be loaded and the previous contents remain in force."
METRICS: Final[tuple[Declared[Security], ...]] = (
    Declared(
        "counter",
        "hq_denied_total",
        "Calls rejected by authentication or authorization, by code.",
        Security.denied,
        ("code",),
    ),
    Declared("gauge", "hq_security_file_fault", _FILE_TEXT, Security.file_faults, ("file",)),
    Declared(
        "gauge",
        "hq_tls_certificate_expires_seconds",
        "When the server certificate in use expires, Unix time; NaN without TLS.",
        Security.certificate_expires_at,
    ),
    Declared("counter", "hq_audit_lines_total", "Lines written to the audit log.", lambda s: s.audit.lines),
    Declared(
        "counter", "hq_audit_lines_lost_total", "Audit log lines that could not be written.", lambda s: s.audit.lost
    ),
    Declared(
        "gauge",
        "hq_audit_sequence",
        "Sequence number of the last line of the audit log, kept across restarts; for `hq audit verify --expect`.",
        lambda s: s.audit.chain.sequence,
    ),
    Declared("gauge", "hq_audit_fault", "1 if the audit log cannot be written.", lambda s: float(bool(s.audit.fault))),
)
