"""Metrics of the recorder; read from it at each scrape."""

from __future__ import annotations

from typing import Final, NamedTuple

from recorder.archive import Archive
from recorder.journal import Journal
from serving.telemetry.metrics import Declared


class RecorderMetricSources(NamedTuple):
    """The objects that the metrics are read from."""

    journal: Journal
    archive: Archive


def _open_gaps(subject: RecorderMetricSources) -> dict[tuple[str, ...], float]:
    return {(name,): float(name in subject.journal.gaps) for name in subject.journal.locations}


D = Declared[RecorderMetricSources]
METRICS: Final = (
    D("gauge", "hq_recorder_instances", "Instances that are followed.", lambda subject: subject.journal.instances),
    D(
        "counter",
        "hq_recorder_changes_total",
        "Changes that were written.",
        lambda subject: subject.journal.written_rows,
    ),
    D("gauge", "hq_recorder_bytes", "Size of the record on disk.", lambda subject: subject.archive.size()),
    D("gauge", "hq_recorder_gap", "1 while nothing is heard from a location.", _open_gaps, ("location",)),
    D(
        "gauge",
        "hq_recorder_stopped",
        "1 while nothing can be written, as on a full disk.",
        lambda subject: float(bool(subject.journal.trouble)),
    ),
)
