"""Time lines of roll-outs: stored with what their actions store, and ended with them."""

from __future__ import annotations

from typing import Final

from control import Change, Controller
from nanny.actions import reports
from nanny.actions.subject import ServiceContext
from nanny.automaton.service import RunningAction
from nanny.automaton.states import Action
from nanny.records import kinds
from nanny.records.timeline import Testimony, ended_timeline, timeline_after
from nanny.snapshots.wanted import READY, target_of
from nannypb.v1.records_pb2 import ActionRecord, InstanceKey

_MOST_FAILING: Final = 20


class RolloutTimelines:
    """The time lines that the acting process keeps."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._records = controller.records(kinds.ROLLOUT)

    def note(self, change: Change, subject: ServiceContext, running: RunningAction, action: ActionRecord) -> bool:
        """Put what is new of a roll-out into the change; return whether anything is. A repair has no time line."""
        if running.action is not Action.ACTIVATE or not running.number:
            return False
        key = kinds.of_snapshot(subject.id, running.snapshot)
        before = self._records.get(key)
        testimony = self._testimony(subject, running.snapshot)
        after = timeline_after(before, action, testimony, self._controller.clock.wall_ms())
        if before == after:
            return False
        change.get(kinds.ROLLOUT, key)
        change.put(kinds.ROLLOUT, key, after)
        return True

    async def end(self, subject: ServiceContext, running: RunningAction, *, is_failed: bool) -> None:
        """End the time line of a roll-out, once."""
        change = self._controller.change()
        key = kinds.of_snapshot(subject.id, running.snapshot)
        before = change.get(kinds.ROLLOUT, key)
        if before is None or before.number != running.number or before.end_unix_ms:
            return
        failing = self._failing(subject, running.snapshot) if is_failed else []
        testimony = self._testimony(subject, running.snapshot)
        after = ended_timeline(before, failing, testimony, self._controller.clock.wall_ms())
        change.put(kinds.ROLLOUT, key, after)
        await change.commit()

    async def drop(self, subject: ServiceContext) -> None:
        """Forget time lines of snapshots that have no state any more."""
        for snapshot in set(subject.record.known) - subject.service.tuples.keys():
            key = kinds.of_snapshot(subject.id, snapshot)
            if key in self._records:
                change = self._controller.change()
                change.get(kinds.ROLLOUT, key)
                change.delete(kinds.ROLLOUT, key)
                await change.commit()

    def _failing(self, subject: ServiceContext, snapshot: str) -> list[InstanceKey]:
        """Instances that were switched and are not ready."""
        revision = self._revision(subject.id, snapshot)
        failing = sorted(
            key
            for key, instance in subject.instances.items()
            if target_of(instance, revision) == READY
            and not reports.is_ready(instance, revision)
            and not reports.is_silent(instance)
        )
        return [InstanceKey(location=location, id=name) for location, name in failing[:_MOST_FAILING]]

    def _testimony(self, subject: ServiceContext, snapshot: str) -> Testimony:
        revision = self._revision(subject.id, snapshot)

        def words_and_output(key: InstanceKey) -> tuple[str, str]:
            instance = subject.instances.get((key.location, key.id))
            if instance is None:
                return "HQ does not hold it", ""
            why = "its agent is silent" if reports.is_silent(instance) else reports.why_not(instance, revision)
            return why, reports.last_output(instance, revision)

        return words_and_output

    def _revision(self, service: str, snapshot: str) -> str:
        stored = self._controller.records(kinds.SNAPSHOT).get(kinds.of_snapshot(service, snapshot))
        return (stored.snapshot.revision_id if stored is not None else "") or snapshot
