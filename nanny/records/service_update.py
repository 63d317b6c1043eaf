"""One event being applied to the record of one service: what its handlers share."""

from __future__ import annotations

from control import Change
from nanny.automaton.service import ManagedService
from nanny.automaton.states import Current, SnapshotEvent
from nanny.automaton.step import SnapshotAutomaton
from nanny.automaton.table import State
from nanny.records import kinds
from nanny.records.history import Story
from nanny.records.services import service_of, tuple_of, write_back
from nanny.records.timeline import closed_timeline
from nannypb.v1.records_pb2 import ServiceEvent, ServiceRecord


class ServiceUpdate:
    """The event, the record that it changes, and the service as it was before."""

    def __init__(
        self, change: Change, service_id: str, event: ServiceEvent, record: ServiceRecord, story: Story
    ) -> None:
        self.change, self.service_id, self.event, self.record, self.story = change, service_id, event, record, story
        self.before = service_of(record)
        self.step = SnapshotAutomaton(passed=self._on_transition)
        self.now_ms = event.by.time.ToMilliseconds()

    def apply_service(self, service: ManagedService, message_of: str = "", message: str = "") -> None:
        """Store what the automaton made of the service, and a message for one of its snapshots."""
        write_back(self.record, service, self.now_ms)
        if (one := tuple_of(self.record, message_of)) is not None:
            one.message = message
        self._close_timelines(service)

    def _close_timelines(self, service: ManagedService) -> None:
        """Close time lines of roll-outs that were cut short: nobody works on them any more."""
        for snapshot, state in self.before.tuples.items():
            after = service.tuples.get(snapshot)
            if state.current is not Current.ACTIVATING or (after is not None and after.action == state.action):
                continue
            key = kinds.of_snapshot(self.service_id, snapshot)
            timeline = self.change.get(kinds.ROLLOUT, key)
            if timeline is not None and timeline.number == state.action:
                closed = closed_timeline(timeline, self.now_ms)
                if self.event.HasField("aborted"):
                    closed.aborted.CopyFrom(self.event.by)
                self.change.put(kinds.ROLLOUT, key, closed)

    def increment_generation(self) -> None:
        """Increment the generation that later writes to HQ carry, as a person gave an order."""
        self.record.generation += 1

    def _on_transition(self, snapshot: str, before: State, event: SnapshotEvent, after: State) -> None:
        if after is not before:
            self.story.tell(f"{before or 'none'} -> {after or 'none'} ({event})", snapshot, by_nanny=True)
