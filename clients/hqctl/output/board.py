"""What a live table shows of a watch: instances as they are, those not ready first; the last changes. No I/O."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from hqclient import watch_items
from hqclient.watch_items import Shown
from hqctl.output.lines import Lines
from hqctl.output.rows import Columns, spans_clusters
from hqctl.words import plural, truth
from hqpb.v1 import instance_pb2

CHANGES_SHOWN = 6


class Board:
    """Follows a watch item by item."""

    def __init__(self) -> None:
        self._shown = Shown()
        self._lines = Lines(snapshot=False)
        self._silent: set[str] = set()  # a front's locations
        self._state = "reading"
        self.changes: deque[tuple[str, str, str]] = deque(maxlen=CHANGES_SHOWN)

    def took(self, item: watch_items.WatchItem, clock: str) -> None:
        """Something came; `clock` is when, as text."""
        self.changes.extend((clock, kind, text) for kind, text in self._lines.of(item) if kind != "synced")
        self._shown.took(item)
        match item:
            case watch_items.Resync():
                self._state = "reloading"
            case watch_items.Interrupted():
                self._state = "NO CONNECTION, data may be stale"
            case watch_items.Synced() | watch_items.Changes() | watch_items.Bookmark():
                self._silent -= {source.cluster for source in item.sources}
                self._silent |= {source.cluster for source in item.sources if source.error}
                self._state = self._completeness()

    def title(self) -> str:
        """How many there are, how many of them are ready, and whether that is still true."""
        ready = sum(truth(i.status.ready) == "yes" for i in self._shown.instances.values())
        return f"{ready} of {plural(len(self._shown.instances), 'instance')} ready, {self._state}"

    def table(self, room: int, now_s: float | None = None) -> tuple[Sequence[str], list[list[str]], str]:
        """Names of columns, as many rows as there is room for, and what is said of those left out."""
        instances = list(self._shown.instances.values())
        columns = Columns(cluster=spans_clusters(instances, ()), live=True)
        ordered = sorted(instances, key=lambda i: (truth(i.status.ready) == "yes", i.meta.id, i.meta.cluster))
        shown, rest = ordered[:room], ordered[room:]
        left_out = f"… {len(rest)} more, {self._readiness(rest)}" if rest else ""
        now_s = time.time() if now_s is None else now_s
        return columns.names, [columns.row(instance, now_s) for instance in shown], left_out

    def _completeness(self) -> str:
        if self._silent:
            return f"{', '.join(sorted(self._silent)).upper()} UNREACHABLE (may be stale)"
        return "up to date" if self._shown.is_whole else f"reading {', '.join(self._shown.missing)}"

    def _readiness(self, instances: Sequence[instance_pb2.Instance]) -> str:
        unready = sum(truth(i.status.ready) != "yes" for i in instances)
        if unready == len(instances):
            return "none of them ready"
        return f"{unready} of them not ready" if unready else "all ready"
