"""Everything about security of one process, kept up to date with its files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from serving.auth.audit import Audit
from serving.auth.gate import Gate
from serving.auth.tls import ServerTls
from serving.auth.watched import WatchedFiles

_REREAD_S: Final = 1.0

Reread = tuple[WatchedFiles[Any], Callable[[], None]]
"""A file, and what to do when it says something else."""


class Security(Collector):
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
        self.audit.close()

    def refresh(self) -> None:
        """Read again what has changed; end streams whose time is over."""
        for file, use in self._files:
            if file.reread():
                use()
        if self.gate is not None:
            self.gate.end_leases()

    def note(self) -> str:
        """What an operator should know, in a sentence; empty: nothing."""
        faults = [f"--{file.name} as it is now is not in force: {file.fault}" for file, _ in self._files if file.fault]
        if self.audit.fault:
            faults.append(f"the audit log cannot be written, orders are refused: {self.audit.fault}")
        return "; ".join(faults)

    def collect(self) -> Iterator[Metric]:
        broken = GaugeMetricFamily(
            "hq_security_file_fault", "1 if a file is not in force as it is now.", labels=("file",)
        )
        for file, _ in self._files:
            broken.add_metric((file.name,), float(bool(file.fault)))
        yield broken
        yield GaugeMetricFamily(
            "hq_audit_fault", "1 if the audit log cannot be written.", float(bool(self.audit.fault))
        )
        yield CounterMetricFamily("hq_audit_lines", "Lines written to the audit log.", self.audit.lines)
        yield CounterMetricFamily("hq_audit_lines_lost", "Lines that could not be written.", self.audit.lost)
        if self.tls is not None:
            text = "When the server's certificate in force expires, Unix time."
            yield GaugeMetricFamily("hq_tls_certificate_expires_seconds", text, self.tls.expires_at)
        if self.gate is not None:
            denied = CounterMetricFamily("hq_denied", "Calls that were not let in.", labels=("reason",))
            for reason in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
                denied.add_metric((reason,), self.gate.denied[reason])
            yield denied


def _nothing() -> None:
    """TLS asks its files at each handshake."""
