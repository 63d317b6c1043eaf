"""The recorder as a process: what it follows, what it writes, what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hqclient import Client
from recorder.archive import Archive
from recorder.decisions_api import DecisionsApi
from recorder.history_api import HistoryApi
from recorder.journal import Journal
from recorder.metrics import METRICS, RecorderMetricSources
from recorder.record_readers import RecordReaders
from recorder.servers import ServerSource
from serving.context import ServerContext, process_metrics
from serving.listeners import Addresses, Transports
from serving.telemetry.metrics import Table


@dataclass(slots=True)
class RecorderHealth:
    """The health that /livez, /readyz and grpc.health.v1 report. The past can be asked for whatever the present is."""

    journal: Journal
    leaving: bool = False

    def live(self) -> bool:
        return True

    def has_loaded(self) -> bool:
        return not self.leaving

    def staleness_s(self) -> float | None:
        return self.journal.staleness_s()

    def doubt(self) -> str:
        away = "; ".join(f"{gap.cluster}: {gap.reason}" for gap in self.journal.gaps.values())
        return self.journal.trouble or away

    def why(self) -> str:
        return "this process is shutting down" if self.leaving else ""


class RecorderProcess:
    """A process. `serve` runs until `stop` is called; a part that dies ends it with the error."""

    def __init__(
        self,
        archive: Archive,
        clients: Mapping[str, Client],
        shared: ServerContext,
        addresses: Addresses,
        grace_s: float = 5.0,
        sources: Sequence[ServerSource] = (),
    ) -> None:
        self._archive, self._clients = archive, clients
        self.journal = Journal(archive, clients, shared.clock, sources)
        self.health = RecorderHealth(self.journal)
        metrics = process_metrics(shared)
        metrics.register(Table(METRICS, RecorderMetricSources(self.journal, archive)))
        reading = archive, shared.clock, RecordReaders(shared.clock)
        self.methods = [*HistoryApi(*reading).methods(), *DecisionsApi(*reading).methods()]
        self._transports = Transports(self.methods, self.health, shared, metrics, addresses, grace_s)
        self.listening = self._transports.listening

    def stop(self) -> None:
        """Begin to shut down."""
        self._transports.stop()

    async def serve(self) -> None:
        """Listen, follow and write until stopped. Raises DirectoryInUse, OSError."""

        def leave() -> None:
            self.health.leaving = True

        self._archive.lock()
        try:
            await self._transports.serve(self.journal.run(), leave)
        finally:
            for client in self._clients.values():
                await client.close()
            self._archive.close()
