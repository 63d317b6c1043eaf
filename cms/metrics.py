"""Metrics of a CMS, read from its parts at each scrape."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from cms.desk import CmsController
from cms.ledger.limits import DomainLimits
from cms.ledger.states import State
from cms.wire.site import WireApi
from control.metrics import memory_metrics
from serving.auth.watched_files import WatchedFiles
from serving.telemetry.metrics import Declared


@dataclass(frozen=True, slots=True)
class CmsMetricSources:
    """The objects that the metrics are read from."""

    desk: CmsController
    wire: WireApi
    sites: WatchedFiles[DomainLimits] | None = None


def _tasks(measured: CmsMetricSources) -> dict[tuple[str, ...], float]:
    counts = Counter(task.state for task in measured.desk.book.tasks.values())
    return {(state.value,): counts[state] for state in State if state is not State.ENDED}


def _oldest_wait_s(measured: CmsMetricSources) -> float:
    waiting = [task.since for task in measured.desk.book.tasks.values() if task.state is State.WAITING]
    return measured.desk.clock.now() - min(waiting) if waiting else 0.0


D = Declared[CmsMetricSources]
METRICS: Final = (
    D("gauge", "cms_tasks", "Tasks, by state.", _tasks, ("state",)),
    D("gauge", "cms_oldest_wait_seconds", "For how long the oldest waiting task has waited.", _oldest_wait_s),
    D(
        "gauge",
        "cms_tasks_overdue",
        "Tasks whose work lasts longer than work of its kind should.",
        lambda m: len(m.desk.book.overdue(m.desk.clock.now())),
    ),
    D("gauge", "cms_acting", "1 if this process decides.", lambda m: float(m.desk.controller.is_acting)),
    D(
        "gauge",
        "cms_closed",
        "1 if nothing is granted: frozen, stopped, or a new epoch that was not opened.",
        lambda m: float(bool(m.desk.why_closed())),
    ),
    D("counter", "cms_decisions_total", "Decisions that this process stored.", lambda m: m.desk.decisions),
    D(
        "counter",
        "cms_grants_total",
        "Tasks that this process granted, provisionally or for good.",
        lambda m: m.desk.grants,
    ),
    D(
        "gauge",
        "cms_location_certain",
        "1 if what is known of a location can be relied on.",
        lambda m: {(name,): float(not one.doubt()) for name, one in m.desk.locations.by_name.items()},
        ("location",),
    ),
    D(
        "gauge",
        "cms_location_instances",
        "Instances of a location.",
        lambda m: {(name,): one.instances for name, one in m.desk.locations.by_name.items()},
        ("location",),
    ),
    D(
        "counter",
        "cms_location_fences_total",
        "Times that a location proved that all it acknowledged is known here.",
        lambda m: {(name,): one.fences for name, one in m.desk.locations.by_name.items()},
        ("location",),
    ),
    D(
        "gauge",
        "cms_budget_margin",
        "Instances that a budget has available above its floor; negative: below it.",
        lambda m: {(name,): t.available - t.floor for name, t in m.desk.book.picture.tallies.items() if t.total},
        ("budget",),
    ),
    D(
        "gauge",
        "cms_sites_fault",
        "1 if the current --sites file cannot be loaded; its previous contents remain in force.",
        lambda m: float(m.sites is not None and bool(m.sites.fault)),
    ),
    D(
        "counter",
        "cms_wire_answers_total",
        "Responses of the wire API.",
        lambda m: {(code,): count for code, count in m.wire.answers.items()},
        ("code",),
    ),
    *memory_metrics("cms", lambda measured: measured.desk.controller),
)
