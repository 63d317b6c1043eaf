"""Contents of snapshots, read from their chunks and checked once."""

from __future__ import annotations

import asyncio
import zlib
from collections import OrderedDict
from collections.abc import Collection
from functools import partial
from typing import Final

from control import Records
from nanny.actions.needs import Needs, needs_of
from nanny.actions.subject import ServiceContext
from nanny.records import kinds
from nanny.snapshots.content import Content, digest_of, read_content, text_of
from nannypb.v1 import records_pb2
from serving.errors import NotFound
from serving.limiting.caller_threads import CallerThreads

_KEPT_BYTES: Final = 64 << 20
_MOST_DIGESTS: Final = 20_000
_KEPT_OF_ONE: Final = 8  # what runs, what is rolled out, and a few that somebody looks at


class Contents:
    """Contents by service and snapshot; the last ones used are kept, a few of each, bounded by their texts' bytes."""

    def __init__(
        self,
        snapshots: Records[records_pb2.SnapshotRecord],
        chunks: Records[records_pb2.ChunkRecord],
        locations: Collection[str],
    ) -> None:
        self._snapshots, self._chunks, self._locations = snapshots, chunks, locations
        self._kept: OrderedDict[str, tuple[Content, int]] = OrderedDict()
        self._kept_bytes = 0
        self._digests: dict[str, str] = {}
        self._reading: dict[str, asyncio.Future[Content]] = {}
        self._threads = CallerThreads()  # one at a time for each service, whoever looks at it

    def text(self, service: str, snapshot: str) -> bytes:
        """The text as uploaded. Raises NotFound, also if it is damaged: earlier versions could mix two texts."""
        stored = self._snapshots.get(kinds.of_snapshot(service, snapshot))
        if stored is None:
            raise NotFound(f"service {service} has no snapshot {snapshot}")
        names = [kinds.of_chunk(service, snapshot, number) for number in range(stored.chunks)]
        try:
            return text_of([self._chunks[name].data for name in names])
        except zlib.error:
            raise NotFound(f"the content of snapshot {snapshot} of {service} is damaged: add another one") from None

    def revision_id(self, service: str, snapshot: str) -> str:
        """The id in HQ of what a snapshot runs; of one that an earlier version stored, the snapshot's own id."""
        stored = self._snapshots.get(kinds.of_snapshot(service, snapshot))
        return (stored.snapshot.revision_id if stored is not None else "") or snapshot

    async def content_of(self, service: str, snapshot: str) -> Content:
        """The content, checked again: locations may have changed. Raises NotFound, InvalidRequest."""
        key = kinds.of_snapshot(service, snapshot)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        if key not in self._reading:
            self._reading[key] = reading = asyncio.ensure_future(self._read(service, snapshot))
            reading.add_done_callback(partial(self._note_read, key))
        return await asyncio.shield(self._reading[key])

    async def digest_of(self, service: str, snapshot: str) -> str:
        """The digest of what a snapshot runs, kept to compare each new snapshot with it. Raises as `content_of`."""
        stored = self._snapshots.get(kinds.of_snapshot(service, snapshot))
        # With the time, as an adopted snapshot may come again under the same id.
        made = stored.snapshot.created.time if stored is not None else None
        key = f"{kinds.of_snapshot(service, snapshot)}@{made}"
        if key not in self._digests:
            content = await self.content_of(service, snapshot)
            while len(self._digests) >= _MOST_DIGESTS:
                del self._digests[next(iter(self._digests))]
            self._digests[key] = digest_of(content)
        return self._digests[key]

    async def _read(self, service: str, snapshot: str) -> Content:
        """Read once for all who wait for it."""

        def read() -> tuple[Content, int]:
            text, revision_id = self.text(service, snapshot), self.revision_id(service, snapshot)
            content = read_content(service, text, self._locations, snapshot, revision_id, was_accepted=True)
            return content, len(text)

        content, size_bytes = await self._threads.run(read, service)
        self._keep(service, kinds.of_snapshot(service, snapshot), content, size_bytes)
        return content

    def _note_read(self, key: str, reading: asyncio.Future[Content]) -> None:
        del self._reading[key]
        if not reading.cancelled():
            reading.exception()  # if all who waited have left, nobody else looks at it

    async def needs(self, subject: ServiceContext, content: Content) -> Needs:
        """Return the needs of other snapshots that share this one's revision. Raises NotFound, InvalidRequest."""
        others = []
        for snapshot, state in subject.service.tuples.items():
            if snapshot != content.id and self.revision_id(subject.id, snapshot) == content.revision_id:
                named = (await self.content_of(subject.id, snapshot)).placements
                others.append((snapshot, state, named))
        return needs_of(others, subject.own_targets)

    def _keep(self, service: str, key: str, content: Content, size_bytes: int) -> None:
        self._kept[key] = content, size_bytes
        self._kept_bytes += size_bytes
        own = [kept for kept in self._kept if kept.startswith(f"{service}/")]
        for old in own[:-_KEPT_OF_ONE]:
            self._kept_bytes -= self._kept.pop(old)[1]
        while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= self._kept.popitem(last=False)[1][1]
