"""Writes to HQ: each with the version and epoch that it was decided on, never without."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import grpc

from hqclient import Client, HqApiError
from hqclient.batches import split_batches
from hqpb.v1 import instance_pb2
from nanny.rollout.views import Key
from serving.clock import Clock

log = logging.getLogger(__name__)

_AT_ONCE: Final = 50
_PARALLEL: Final = 16
_RACES: Final = frozenset({"VERSION_CONFLICT", "EPOCH_CHANGED", "NOT_FOUND"})
_REFUSALS: Final = frozenset(
    code.value[0]
    for code in (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.FAILED_PRECONDITION,
    )
)
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class InstanceWrite:
    """One instance of a service to be stored, or (`after` None) deleted; `version` 0 only where it shall be created."""

    key: Key
    after: instance_pb2.Instance | None
    version: int
    epoch: str
    service: str


@dataclass(slots=True)
class Written:
    """The results of writes. Lost races appear in none of these.

    Attributes:
        versions: of instances that exist now.
        deleted: instances that no longer exist.
        refused: why HQ will never take these: they are invalid, not authorized, or in conflict with other instances.
        waits: by location, why the rest was not stored for now, or may not have been.
        retry_s: when to try those again.
    """

    versions: dict[Key, int] = field(default_factory=dict)
    deleted: set[Key] = field(default_factory=set)
    refused: dict[Key, str] = field(default_factory=dict)
    waits: dict[str, str] = field(default_factory=dict)
    retry_s: float = 0.0

    @property
    def message(self) -> str:
        """Describe what is waited for; empty: nothing."""
        return "; ".join(f"waits for HQ in {location}: {why}" for location, why in sorted(self.waits.items()))


@dataclass(frozen=True, slots=True)
class _Pause:
    """A location that took no writes is left alone until then."""

    location: str
    why: str
    seconds: float
    until: float


class InstanceWriter:
    """Sends writes to the locations. One that could not store them is asked again after 1 s, then ever less often."""

    def __init__(self, locations: Mapping[str, Client], clock: Clock) -> None:
        self._locations, self._clock = locations, clock
        self._pauses: dict[str, _Pause] = {}
        self.sent = 0

    async def send(self, writes: Sequence[InstanceWrite]) -> Written:
        """Store each independently. Writes with an unknown outcome are seen in HQ later."""
        written = self.pauses_of(writes)
        together = asyncio.Semaphore(_PARALLEL)
        locations = {write.key[0] for write in writes} - written.waits.keys()
        async with asyncio.TaskGroup() as tasks:
            for batch in _batches(write for write in writes if write.key[0] in locations):
                tasks.create_task(self._send(batch, written, together))
        for location in locations:
            self._note_outcome(location, written.waits.get(location, ""))
        return self.pauses_of(writes, written)

    def pauses_of(self, writes: Iterable[InstanceWrite], written: Written | None = None) -> Written:
        """The result with the locations that are to be left alone for a while."""
        written = written or Written()
        pauses = [self._pauses[name] for name in self.paused_locations() & {write.key[0] for write in writes}]
        written.waits |= {pause.location: pause.why for pause in pauses}
        written.retry_s = min((pause.until - self._clock.now() for pause in pauses), default=0.0)
        return written

    def paused_locations(self) -> set[str]:
        """Locations that recently took no writes."""
        now = self._clock.now()
        return {name for name, pause in self._pauses.items() if pause.until > now}

    def _note_outcome(self, location: str, why: str) -> None:
        before = self._pauses.pop(location, None)
        if why:
            seconds = min(2 * before.seconds, _LONGEST_PAUSE_S) if before is not None else _FIRST_PAUSE_S
            self._pauses[location] = _Pause(location, why, seconds, self._clock.now() + seconds)
            log.warning("HQ in %s took no writes, trying again in %g s: %s", location, seconds, why)

    async def _send(self, batch: list[InstanceWrite], written: Written, together: asyncio.Semaphore) -> None:
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
                # Only HQ itself refuses for good: a proxy's PERMISSION_DENIED may be gone in a minute.
                code = error.code.value[0] if error.from_hq else 0
                for write in batch:
                    _note_failure(written, write.key, code, error.reason, error.message)

    async def _apply(self, client: Client, batch: list[InstanceWrite], written: Written) -> None:
        instances = [write.after for write in batch if write.after is not None]
        answer = await client.apply(instances, epoch=batch[0].epoch, service=batch[0].service)
        for write, result in zip(batch, answer.result, strict=True):
            error = result.error
            if error.code:
                _note_failure(written, write.key, error.code, error.reason, error.message)
            else:
                written.versions[write.key] = result.version

    async def _create(self, client: Client, write: InstanceWrite, written: Written) -> None:
        assert write.after is not None
        try:
            stored = (await client.create(write.after)).instance
        except HqApiError as error:
            if error.reason != "ALREADY_EXISTS":
                raise
            # Created by an earlier write of ours that the watch has not shown yet, or by somebody for another service.
            stored = (await client.get(write.key[1])).instance
            if stored.meta.service_id != write.after.meta.service_id:
                raise
        written.versions[write.key] = stored.meta.version

    async def _delete(self, client: Client, write: InstanceWrite, written: Written) -> None:
        await client.delete(write.key[1], version=write.version, epoch=write.epoch, service=write.service)
        written.deleted.add(write.key)


def _note_failure(written: Written, key: Key, code: int, reason: str, message: str) -> None:
    """A race is neither a refusal nor waited for: HQ shows what was written instead."""
    if reason in _RACES:
        return
    if code in _REFUSALS or reason == "TOO_LARGE":
        written.refused[key] = message
    else:
        written.waits.setdefault(key[0], message)


def _batches(writes: Iterable[InstanceWrite]) -> Iterator[list[InstanceWrite]]:
    """Updates of one location, epoch and service together; the others one by one."""
    together: defaultdict[tuple[str, str, str], list[InstanceWrite]] = defaultdict(list)
    for write in writes:
        if write.after is None or not write.version:
            yield [write]
        else:
            together[write.key[0], write.epoch, write.service].append(write)
    for alike in together.values():
        yield from split_batches(alike, _AT_ONCE, lambda write: write.after.ByteSize() if write.after else 0)
