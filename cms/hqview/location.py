"""One location of HQ, followed: its instances by a watch, times of last reports by polls, and fences."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from cms.hqview.reading import ledger_instance
from cms.ledger.instances import InstanceKey
from cms.ledger.picture import InstanceIndex
from hqclient import STRONG, Bookmark, Changes, Client, HqApiError, Interrupted, Resync, SnapshotPart, Synced, WatchItem
from hqpb.v1 import instance_pb2, service_pb2
from serving.clock import Clock

log = logging.getLogger(__name__)

_SILENT_S: Final = 12.0  # bookmarks come every 5 s
_NOBODY: Final = service_pb2.InstanceFilter(instance_id=["-"])
_RETRY_S: Final = 1.0
_MOST_ASKED: Final = 500
_SLICE: Final = 1_000


class HqLocationFollower:
    """Keeps the picture in step with one location.

    Attributes:
        instances: how many there are.
        report_interval_s: of its agents; 0: not known yet.
        fences, polls: how many succeeded; for metrics.
    """

    def __init__(
        self, name: str, client: Client, picture: InstanceIndex, clock: Clock, moved: Callable[[], None]
    ) -> None:
        """`moved` is called when the picture has changed."""
        self.name, self._client, self._picture, self._clock, self._moved = name, client, picture, clock, moved
        self._uids: dict[str, int] = {}
        self._snapshot: dict[str, instance_pb2.Instance] | None = {}
        self._source = service_pb2.Source()
        self._said_at = float("-inf")
        self._is_cut = True
        self._came = asyncio.Event()
        self.report_interval_s = 0.0
        self.fences = self.polls = 0

    @property
    def instances(self) -> int:
        return len(self._uids)

    def doubt(self) -> str:
        """Why this location's data cannot be relied on; empty: it can."""
        if self._snapshot is not None:
            return "its instances have not been read yet"
        if self._is_cut or self._clock.now() - self._said_at > _SILENT_S:
            return "it does not answer"
        if self._source.stale:
            return f"it is out of touch with its store: {self._source.error}"
        if self._source.trust == service_pb2.EPOCH_TRUST_DOUBTED:
            return f"its store may have lost records: {self._source.error}"
        return ""

    async def run(self) -> None:
        """Follow for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(), name=f"follow {self.name}")
            tasks.create_task(self._poll_last_reports(), name=f"silences of {self.name}")

    async def fence(self, timeout_s: float) -> bool:
        """Whether the picture has everything that was acknowledged before the call; False: unknown."""
        if self.doubt():
            return False
        try:
            async with asyncio.timeout(timeout_s):
                page = await anext(self._client.silences(_NOBODY, read=STRONG, timeout_s=timeout_s))
                source = page.sources[0]
                while self._source.epoch == source.epoch and self._source.version < page.changed_version:
                    await self._came.wait()
        except (TimeoutError, HqApiError) as error:
            log.info("location %s: cannot prove that it is up to date: %s", self.name, str(error) or "timed out")
            return False
        self.fences += 1
        return not self.doubt() and self._source.epoch == source.epoch and not source.stale

    # --- the watch ----------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                async with self._client.watch() as items:
                    async for item in items:
                        self._take(item)
            except HqApiError as error:
                self._is_cut = True
                log.error("location %s cannot be followed: %s", self.name, error)  # noqa: TRY400 # it says it all
            await asyncio.sleep(_RETRY_S)

    def _take(self, item: WatchItem) -> None:
        self._said_at = self._clock.now()
        match item:
            case SnapshotPart(instances):
                self._snapshot = self._snapshot or {}
                self._snapshot.update((instance.meta.id, instance) for instance in instances)
            case Synced(_, sources):
                self._on_synced(sources)
            case Changes(events, _, sources):
                self._on_events(events, sources)
            case Bookmark(_, sources):
                self._note_sources(sources)
            case Resync(reason, _):
                log.warning("location %s: reading everything again: %s", self.name, reason)
                self._snapshot = {}
            case Interrupted(error, _):
                self._is_cut = True
                log.info("location %s cannot be followed (check --location): %s; trying again", self.name, error)
        came, self._came = self._came, asyncio.Event()
        came.set()

    def _on_synced(self, sources: Iterable[service_pb2.Source]) -> None:
        if self._snapshot is not None:
            snapshot, self._snapshot = self._snapshot, None
            for gone in self._uids.keys() - snapshot.keys():
                self._drop_instance(gone)
            for instance in snapshot.values():
                self._put_instance(instance, is_new=False)
            log.info("location %s has %d instances", self.name, len(snapshot))
        self._note_sources(sources)
        self._moved()

    def _note_sources(self, sources: Iterable[service_pb2.Source]) -> None:
        for source in sources:
            if self._source.epoch and source.epoch != self._source.epoch:
                log.warning("location %s has a new epoch: waiting for every agent to report again", self.name)
                for instance_id in self._uids:
                    self._picture.forget_hearing(InstanceKey(self.name, instance_id))
            self._source, self._is_cut = source, False

    def _on_events(self, events: Iterable[service_pb2.WatchEvent], sources: Iterable[service_pb2.Source]) -> None:
        for event in events:
            self._apply_event(event)
        self._note_sources(sources)
        self._moved()

    def _apply_event(self, event: service_pb2.WatchEvent) -> None:
        which = event.WhichOneof("change")
        if which == "put":
            self._put_instance(event.put, is_new=True)
        elif which is not None:
            self._drop_instance(getattr(event, which).id)

    def _put_instance(self, message: instance_pb2.Instance, *, is_new: bool) -> None:
        key, uid = InstanceKey(self.name, message.meta.id), message.meta.uid
        before = self._picture.instances.get(key)
        if before is not None and self._uids.get(key.id) != uid:
            self._picture.drop_instance(key)
            before = None
        self._uids[key.id] = uid
        self._picture.put_instance(ledger_instance(self.name, message, before, is_new=is_new))

    def _drop_instance(self, instance_id: str) -> None:
        self._uids.pop(instance_id, None)
        self._picture.drop_instance(InstanceKey(self.name, instance_id))

    # --- who was heard ------------------------------------------------------------------------------------------------

    async def _poll_last_reports(self) -> None:
        """Poll all instances, six times per report interval; doubtful ones more often, so that work continues soon."""
        next_full = float("-inf")
        while True:
            try:
                if self._clock.now() >= next_full:
                    await self._poll(service_pb2.InstanceFilter())
                    next_full = self._clock.now() + max(1.0, self.report_interval_s / 6)
                elif doubted := self._picture.uncertain_ids(self.name, _MOST_ASKED):
                    await self._poll(service_pb2.InstanceFilter(instance_id=doubted))
            except HqApiError as error:
                log.info("location %s: cannot read when agents were last heard: %s", self.name, error)
            await asyncio.sleep(min(2.0, max(0.2, self.report_interval_s / 10)))

    async def _poll(self, where: service_pb2.InstanceFilter) -> None:
        asked_at = self._clock.now()
        async for page in self._client.silences(where):
            self.report_interval_s = page.report_interval.ToMilliseconds() / 1000
            for number, silence in enumerate(page.silences, 1):
                if self._uids.get(silence.instance_id) == silence.uid:
                    key = InstanceKey(self.name, silence.instance_id)
                    self._picture.suspend(key, silence.node_suspended)
                    if silence.HasField("silent_ms"):
                        heard_at = asked_at - silence.silent_ms / 1000
                        self._picture.record_report(key, heard_at, silence.report_interval_ms / 1000)
                if number % _SLICE == 0:
                    await asyncio.sleep(0)
            asked_at = self._clock.now()
        self.polls += 1
        self._moved()
