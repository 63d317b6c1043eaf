"""Reads: services with progress, snapshots, instances, history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from hqpb.v1 import instance_pb2
from nanny.actions import reports
from nanny.actions.contents import Contents
from nanny.actions.worker import Worker
from nanny.api.shown import NannyMessages, by_location
from nanny.automaton.states import Current
from nanny.instances import STATES, instance_state
from nanny.records import kinds
from nanny.records.services import CURRENT, tuple_of
from nanny.rollout.views import Key
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import CREATED, INSTALLED, READY, target_of
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ServiceRecord
from serving.errors import NotFound, StoreUnavailable

_WATCH_EVERY_S: Final = 1.0
_ROWS_IN_A_TURN: Final = 500  # some 10 ms
_PREPARED: Final = next(state for state in STATES if state.old == "PREPARED")
_STOPPED: Final = (Current.PREPARED, Current.PARTIALLY_PREPARED)
_NOT_IN_HQ: Final = (Current.GENERATING, Current.PARTIALLY_CREATED, Current.CREATED)


class Queries:
    """Answers from memory, and from the pictures that this process has of HQ."""

    def __init__(self, worker: Worker, shown: NannyMessages, contents: Contents) -> None:
        self._worker, self._shown, self._contents = worker, shown, contents
        self._controller = worker.controller
        self._looks: dict[str, tuple[float, asyncio.Future[pb.Service]]] = {}

    def record(self, service: str) -> ServiceRecord:
        """Raises NotFound."""
        self._controller.check_loaded()
        record = self._controller.records(kinds.SERVICE).get(service)
        if record is None:
            raise NotFound(f"there is no service {service}")
        return record

    async def service(self, service: str) -> pb.Service:
        """The service with the progress of its actions. Raises NotFound."""
        self.record(service)
        shown = self._shown.service(service)
        if any(state.HasField("action") for state in shown.snapshot):
            async with self._worker.subject(service) as subject:
                for state in shown.snapshot:
                    if state.HasField("action"):
                        content = await self._contents.content_of(service, state.snapshot_id)
                        stored = self._shown.action_record(service, state.snapshot_id)
                        by_location(subject, content, state, stored)
                        rollout = self._shown.rollout_record(service, state.snapshot_id)
                        if rollout.number == state.action.number:
                            state.action.judged.extend(rollout.judged)
        return shown

    async def watch(self, service: str) -> AsyncIterator[pb.Service]:
        """The service now, and after each change."""
        last, now, begun_s = None, await self.service(service), self._controller.clock.now()
        while True:
            if now is not last and now != last:
                yield now
            last = now
            await asyncio.sleep(_WATCH_EVERY_S)
            begun_s, now = await self._service_after(begun_s, service)

    async def _service_after(self, since_s: float, service: str) -> tuple[float, pb.Service]:
        """A look at the service that began after `since_s`, one for all watchers: when it began, and the service."""
        begun_s, looking = self._looks.get(service, (0.0, None))
        if looking is None or begun_s <= since_s:
            begun_s, looking = self._controller.clock.now(), asyncio.ensure_future(self.service(service))
            self._looks[service] = begun_s, looking
            looking.add_done_callback(partial(self._forget_failed, service))
        return begun_s, await asyncio.shield(looking)

    def _forget_failed(self, service: str, looking: asyncio.Future[pb.Service]) -> None:
        """Keep nothing about a service that does not exist."""
        if (looking.cancelled() or looking.exception()) and self._looks.get(service, (0.0, None))[1] is looking:
            del self._looks[service]

    def snapshots(self, service: str) -> list[pb.Snapshot]:
        """Newest first, without content."""
        record = self.record(service)
        stored = self._controller.records(kinds.SNAPSHOT)
        found = (stored.get(kinds.of_snapshot(service, one)) for one in reversed(record.known))
        return [self._with_head(one.snapshot, record) for one in found if one is not None]

    def snapshot(self, service: str, snapshot: str) -> pb.Snapshot:
        """The snapshot with its content."""
        stored = self._controller.records(kinds.SNAPSHOT)[kinds.of_snapshot(service, snapshot)]
        shown = self._with_head(stored.snapshot, self.record(service))
        shown.content = self._contents.text(service, snapshot)
        return shown

    def rollout(self, service: str, snapshot: str) -> pb.Rollout | None:
        """The roll-out of a snapshot, or (empty) of the one that was last ordered ACTIVE; None: none was. Raises
        NotFound.
        """
        record = self.record(service)
        if snapshot:
            found = tuple_of(record, snapshot)
        else:
            ordered = [one for one in record.snapshot if one.order.target == pb.TARGET_ACTIVE]
            found = max(ordered, key=lambda one: one.target_set.time.ToNanoseconds(), default=None)
        if found is None and snapshot:
            raise NotFound(f"service {service} has no roll-out to show: snapshot {snapshot} has no state")
        return None if found is None else self._shown.rollout(service, found)

    def history(self, service: str) -> list[pb.HistoryEntry]:
        """Newest first."""
        self.record(service)
        stored = self._controller.records(kinds.HISTORY).get(service)
        return list(reversed(stored.entry)) if stored is not None else []

    async def instances(self, service: str, snapshot: str) -> pb.ListInstancesResponse:
        """The state of each instance of a snapshot, and what is wanted there."""
        record = self.record(service)
        content = await self._contents.content_of(service, snapshot)
        answer = pb.ListInstancesResponse(snapshot_id=snapshot)
        current = next((CURRENT[one.current] for one in record.snapshot if one.snapshot_id == snapshot), None)
        async with self._worker.subject(service) as subject:
            for number, key in enumerate(sorted(content.placements)):
                if number % _ROWS_IN_A_TURN == _ROWS_IN_A_TURN - 1:
                    await asyncio.sleep(0)
                row = self._row(content, key, subject.instances.get(key), current)
                if key in subject.own_targets and subject.own_targets[key].snapshot_id == snapshot:
                    row.target = subject.own_targets[key].target
                    row.own_target.CopyFrom(subject.own_targets[key].set)
                answer.instance.append(row)
            for location, why in subject.away.items():
                answer.missing[location] = why
        return answer

    async def instances_in_hq(self, service: str) -> dict[Key, instance_pb2.Instance]:
        """All that HQ holds of a service, known to Nanny or not. Raises StoreUnavailable: a location is away."""
        async with self._worker.picture(service) as picture:
            if away := picture.away():
                told = "; ".join(f"{location} {why}" for location, why in sorted(away.items()))
                raise StoreUnavailable(f"some instances of {service} may be missing: {told}: retry")
            return dict(picture.instances)

    def _row(
        self, content: Content, key: Key, instance: instance_pb2.Instance | None, current: Current | None
    ) -> pb.InstanceRow:
        row = pb.InstanceRow(id=key[1], location=key[0], node_name=content.placements[key].node)
        wanted = target_of(instance, content.revision_id) if instance is not None else None
        is_silent = instance is not None and reports.is_silent(instance)
        status = reports.status_of(instance, content.revision_id) if instance is not None and not is_silent else None
        state = instance_state(wanted, status)
        if instance is not None:
            row.node_name = instance.spec.node_name
            row.serving = reports.is_ready(instance)
            row.message = reports.why_not(instance, content.revision_id) if wanted is not None else ""
        if wanted == READY and current in _STOPPED:
            # Another snapshot runs the same revision there: for this one it is only installed.
            wanted, state = INSTALLED, _PREPARED
            row.message = f"runs as revision {content.revision_id} of another snapshot"
        if wanted is None:
            why = "it has no configuration yet" if current in _NOT_IN_HQ or current is None else "HQ does not hold it"
            row.message = why
        row.target = _target(wanted)
        row.state, row.state_name, row.meaning = state.old, state.new, state.meaning
        return row

    def _with_head(self, snapshot: pb.Snapshot, record: ServiceRecord) -> pb.Snapshot:
        copy = pb.Snapshot()
        copy.CopyFrom(snapshot)
        copy.head = snapshot.id == record.head
        return copy


def _target(wanted: int | None) -> pb.Target:
    if wanted is None:
        return pb.TARGET_UNSPECIFIED
    if wanted == READY:
        return pb.TARGET_ACTIVE
    return pb.TARGET_CREATED if wanted == CREATED else pb.TARGET_PREPARED
