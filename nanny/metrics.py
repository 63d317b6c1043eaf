"""Metrics of Nanny."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from control import Controller
from control.metrics import memory_metrics
from nanny.actions.effects import Effects
from nanny.automaton.service_state import ServiceState, service_state
from nanny.automaton.states import ACTIONS, Action
from nanny.records import kinds
from nanny.records.services import CURRENT, service_of
from nanny.world.pictures import ServiceViews
from nanny.world.writing import InstanceWriter
from nannypb.v1.records_pb2 import TupleRecord
from serving.telemetry.metrics import Declared


@dataclass(frozen=True, slots=True)
class NannyMetricSources:
    """The objects that the metrics are read from."""

    controller: Controller
    pictures: ServiceViews
    writer: InstanceWriter
    effects: Effects

    def states(self) -> dict[tuple[str, ...], float]:
        records = self.controller.records(kinds.SERVICE).values()
        found = Counter(service_state(service_of(record)) for record in records)
        return {(str(state),): float(found[state]) for state in ServiceState}

    def paused_services(self) -> float:
        return float(sum(record.HasField("paused") for record in self.controller.records(kinds.SERVICE).values()))

    def drifted_services(self) -> float:
        return float(sum(bool(record.drift) for record in self.controller.records(kinds.SERVICE).values()))

    def running(self) -> dict[tuple[str, ...], float]:
        found: Counter[str] = Counter()
        for record in self.controller.records(kinds.SERVICE).values():
            found.update(ACTIONS[CURRENT[one.current]] for one in record.snapshot if CURRENT[one.current] in ACTIONS)
        return {(str(action),): float(found[action]) for action in Action}

    def oldest_action_s(self) -> float:
        """Age of the oldest action of services that are not paused; 0: none runs. A step that holds is no action."""
        services = self.controller.records(kinds.SERVICE)
        began = [
            one.since_unix_ms
            for service_id, record in services.items()
            for one in record.snapshot
            if CURRENT[one.current] in ACTIONS and not record.HasField("paused") and not self._holds(service_id, one)
        ]
        return max(0.0, (self.controller.clock.wall_ms() - min(began)) / 1000) if began else 0.0

    def _holds(self, service_id: str, one: TupleRecord) -> bool:
        """Whether the snapshot's roll-out waits as planned: for time, for people or for a check."""
        record = self.controller.records(kinds.ACTION).get(kinds.of_snapshot(service_id, one.snapshot_id))
        if record is None or record.number != one.action or record.batch or record.steps_over >= len(record.step):
            return False
        step = record.step[record.steps_over]
        return bool(step.hold_s or step.check or (step.promote and one.promoted <= record.steps_over))

    def longest_pause_s(self) -> float:
        """How long the longest pause has lasted; 0: none is paused."""
        records = self.controller.records(kinds.SERVICE).values()
        began = [one.paused.time.ToMilliseconds() for one in records if one.HasField("paused")]
        return max(0.0, (self.controller.clock.wall_ms() - min(began)) / 1000) if began else 0.0


D = Declared[NannyMetricSources]
METRICS: Final = (
    D("gauge", "nanny_acting", "1 if this process is the leader.", lambda one: float(one.controller.is_acting)),
    D(
        "gauge",
        "nanny_open",
        "1; 0 after the store was restored, until an operator opens it.",
        lambda o: float(o.controller.is_open),
    ),
    D("gauge", "nanny_frozen", "1 if an operator froze Nanny.", lambda one: float(one.controller.frozen is not None)),
    D("gauge", "nanny_services", "Services by state.", NannyMetricSources.states, ("state",)),
    D("gauge", "nanny_services_paused", "Services whose actions are paused.", NannyMetricSources.paused_services),
    D(
        "gauge",
        "nanny_services_drifted",
        "Services whose instances in HQ differ from their targets.",
        NannyMetricSources.drifted_services,
    ),
    D("gauge", "nanny_actions", "Actions under way.", NannyMetricSources.running, ("action",)),
    D(
        "gauge",
        "nanny_oldest_action_seconds",
        "Age of the oldest action that is not paused.",
        NannyMetricSources.oldest_action_s,
    ),
    D("gauge", "nanny_longest_pause_seconds", "Age of the oldest pause.", NannyMetricSources.longest_pause_s),
    D(
        "counter",
        "nanny_actions_ended_total",
        "Actions that ended at this process.",
        lambda one: {(outcome,): float(count) for outcome, count in one.effects.ended.items()},
        ("outcome",),
    ),
    D("counter", "nanny_hq_writes_total", "Instances written to HQ.", lambda one: float(one.writer.sent)),
    D("gauge", "nanny_pictures", "Services that are followed in HQ now.", lambda one: float(len(one.pictures))),
    *memory_metrics("nanny", lambda sources: sources.controller),
)
