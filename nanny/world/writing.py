"""Writes to HQ: each with the version and epoch that it was decided on, never without."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hqclient import Client, HqApiError
from hqpb.v1 import instance_pb2, service_pb2
from nanny.rollout.views import Key

_AT_ONCE: Final = 50
_BATCH_BYTES: Final = 1 << 20
_PARALLEL: Final = 16
_RACES: Final = frozenset({"VERSION_CONFLICT", "EPOCH_CHANGED"})


@dataclass(frozen=True, slots=True)
class Write:
    """One instance to be stored, or (`after` None) deleted; `version` 0 only where it shall be created."""

    key: Key
    after: instance_pb2.Instance | None
    version: int
    epoch: str


@dataclass(slots=True)
class Written:
    """The results of writes. Lost races appear in none of these.

    Attributes:
        versions: of instances that exist now.
        deleted: instances that no longer exist.
        refused: why HQ refuses the others.
    """

    versions: dict[Key, int] = field(default_factory=dict)
    deleted: set[Key] = field(default_factory=set)
    refused: dict[Key, str] = field(default_factory=dict)


class Writer:
    """Sends writes to the locations."""

    def __init__(self, locations: Mapping[str, Client]) -> None:
        self._locations = locations
        self.sent = 0

    async def send(self, writes: Sequence[Write]) -> Written:
        """Store each independently. Writes with an unknown outcome are seen in HQ later.

        A location that does not answer is no error: the picture says so.
        """
        written = Written()
        together = asyncio.Semaphore(_PARALLEL)
        async with asyncio.TaskGroup() as tasks:
            for batch in _batches(writes):
                tasks.create_task(self._send(batch, written, together))
        return written

    async def _send(self, batch: list[Write], written: Written, together: asyncio.Semaphore) -> None:
        client = self._locations[batch[0].key[0]]
        async with together:
            self.sent += len(batch)
            try:
                if batch[0].after is None:
                    await self._delete(client, batch[0], written)
                elif batch[0].version:
                    await self._apply(client, batch, written)
                else:
                    await self._create(client, batch[0], written)
            except HqApiError as error:
                if error.reason not in _RACES and error.from_hq and not error.outcome_unknown:
                    written.refused |= {write.key: error.message for write in batch}

    async def _apply(self, client: Client, batch: list[Write], written: Written) -> None:
        answer = await client.apply([write.after for write in batch if write.after is not None], epoch=batch[0].epoch)
        for write, result in zip(batch, answer.result, strict=True):
            self._note(write, result, written)

    def _note(self, write: Write, result: service_pb2.ApplyResult, written: Written) -> None:
        if not result.error.code:
            written.versions[write.key] = result.version
        elif result.error.reason not in _RACES:
            written.refused[write.key] = result.error.message

    async def _create(self, client: Client, write: Write, written: Written) -> None:
        assert write.after is not None
        try:
            stored = (await client.create(write.after)).instance
        except HqApiError as error:
            if error.reason != "ALREADY_EXISTS":
                raise
            # Created by an earlier write of ours that the watch has not shown yet, or as another service's.
            stored = (await client.get(write.key[1])).instance
            if stored.meta.service_id != write.after.meta.service_id:
                raise
        written.versions[write.key] = stored.meta.version

    async def _delete(self, client: Client, write: Write, written: Written) -> None:
        await client.delete(write.key[1], version=write.version, epoch=write.epoch)
        written.deleted.add(write.key)


def _batches(writes: Iterable[Write]) -> Iterator[list[Write]]:
    """Updates of one location and epoch together; the others one by one."""
    together: defaultdict[tuple[str, str], list[Write]] = defaultdict(list)
    for write in writes:
        if write.after is None or not write.version:
            yield [write]
        else:
            together[write.key[0], write.epoch].append(write)
    for alike in together.values():
        yield from _portions(alike)


def _portions(writes: Iterable[Write]) -> Iterator[list[Write]]:
    batch: list[Write] = []
    size_bytes = 0
    for write in writes:
        own_bytes = write.after.ByteSize() if write.after is not None else 0
        if batch and (len(batch) == _AT_ONCE or size_bytes + own_bytes > _BATCH_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(write)
        size_bytes += own_bytes
    if batch:
        yield batch
