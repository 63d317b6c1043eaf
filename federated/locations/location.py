"""One installation as the gateway sees it: its replicas, whether it answers, and its last good answers."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import grpc

from federated.clock import FederatedClock
from federated.errors import NoAnswer, is_word, words_of
from federated.locations.channel import Dialer, Metadata, ReplicaChannel
from federated.locations.config import LocationConfig
from federated.locations.location_health import LocationHealth, Probes
from federated.locations.plan import patience_s
from federated.locations.race import Race
from hqclient.errors import HqApiError
from hqclient.pool import Replicas
from hqclient.retry import Safety, blames_endpoint


class LastGoodAnswer(NamedTuple):
    """An encoded answer, and when it was given, on the gateway's clock."""

    body: bytes
    at: float


class LastGood:
    """Answers of one location, limited in bytes: the least recently used go first."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: OrderedDict[tuple[str, bytes], LastGoodAnswer] = OrderedDict()
        self._max_bytes = max_bytes
        self.size_bytes = 0

    def keep(self, method: str, request: bytes, body: bytes, now: float) -> None:
        """Remember an answer, unless it alone would evict most of the others."""
        old = self._kept.pop((method, request), None)
        if old is not None:
            self.size_bytes -= len(old.body) + len(request)
        if len(body) > self._max_bytes // 4:
            return
        self._kept[method, request] = LastGoodAnswer(body, now)
        self.size_bytes += len(body) + len(request)
        while self.size_bytes > self._max_bytes:
            (_, asked), gone = self._kept.popitem(last=False)
            self.size_bytes -= len(gone.body) + len(asked)

    def get(self, method: str, request: bytes) -> LastGoodAnswer | None:
        """The last answer to this very request; None: there was none, or it is forgotten."""
        return self._kept.get((method, request))


_STREAM_SILENCE_S: Final = 12.0  # two bookmarks are missing
_DRAIN_S: Final = 30.0


class Location:
    """Asks the replicas of one installation.

    Attributes:
        config, name: as configured in the file.
        race: how its replicas are asked.
        own: metadata of the gateway's own requests: its token, if it has one.
        health: whether it answers, and its last Source.
        probes: the probes behind `health` and the order of its replicas.
        last_good: its answers, for callers who allow old ones.
        silences: how many reads had no answer, waited for or not.
        writes: how many were sent.
    """

    def __init__(
        self, config: LocationConfig, clock: FederatedClock, rng: random.Random, dialer: Dialer, last_good_bytes: int
    ) -> None:
        self.config, self.name, self._clock = config, config.name, clock
        replicas = Replicas(config.replicas, clock, rng, first_backoff_s=0.5, max_backoff_s=10.0)
        channels = {address: ReplicaChannel(address, dialer) for address in config.replicas}
        self.race = Race(replicas, channels, clock)
        self.own = dialer.own
        self.health = LocationHealth(config.name, config.timeout_s, clock)
        self.probes = Probes(self.health, self.race, dialer, clock, config.timeout_s)
        self.last_good = LastGood(last_good_bytes)
        self.silences = self.writes = 0

    def __repr__(self) -> str:
        return f"Location({self.name}, {'up' if self.health.is_up else self.health.error})"

    async def read(
        self, method: str, request: bytes, left_s: float | None, metadata: Metadata, *, needs_store: bool = False
    ) -> bytes:
        """The encoded answer to a call that changes nothing.

        Args:
            left_s: how long the caller still waits; None: no deadline.
            metadata: the caller's token.
            needs_store: memory alone cannot answer, so a slow answer says nothing about other reads.

        Raises:
            NoAnswer: it has no answer, or was not waited for because it failed before.
            HqApiError: it rejects the request.
        """
        if not self.health.is_up:
            self.silences += 1
            raise NoAnswer(self.health.down_words())
        began, timeout_s = self._clock.now(), patience_s(self.config.timeout_s, left_s)
        try:
            return await self.race.run(method, request, timeout_s, metadata)
        except HqApiError as error:
            if is_word(error):
                raise
            if not error.from_hq and not (needs_store and error.code is grpc.StatusCode.DEADLINE_EXCEEDED):
                self._record_failure(error, self._clock.now() - began)
            self.silences += 1
            raise NoAnswer(words_of(error, f"within {timeout_s:g} s")) from error

    async def write(self, method: str, request: bytes, safety: Safety, timeout_s: float, metadata: Metadata) -> bytes:
        """The encoded answer to a write, which is tried even where reads do not wait. Raises HqApiError."""
        self.writes += 1
        return await self.race.write(method, request, safety, timeout_s, metadata)

    async def stream(self, method: str, request: bytes, metadata: Metadata) -> AsyncIterator[bytes]:
        """Encoded messages from one replica, until it ends. Always ends with an HqApiError."""
        replica, began = self.race.replicas.pick(), self._clock.now()
        messages = self.race.channels[replica.address].stream(method, request, _STREAM_SILENCE_S, metadata)
        try:
            async for message in messages:
                yield message
        except HqApiError as error:
            if blames_endpoint(error, self._clock.now() - began):
                self.race.replicas.record_failure(replica)
            raise

    async def leave(self) -> None:
        """Close a location that is no longer asked: streams end at once, calls in progress half a minute later."""
        try:
            for channel in self.race.channels.values():
                channel.end_streams()
            await self._clock.sleep(_DRAIN_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """End every call."""
        await asyncio.gather(*(channel.close() for channel in self.race.channels.values()))

    def _record_failure(self, error: HqApiError, waited_s: float) -> None:
        words = words_of(error, f"within {self.config.timeout_s:g} s")
        if error.code is grpc.StatusCode.DEADLINE_EXCEEDED:
            self.health.record_failure(words, waited_s)
        else:
            self.health.record_unreachable(words)
