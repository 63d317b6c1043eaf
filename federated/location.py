"""One installation as the front sees it: its replicas, whether it answers, what it said last."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from typing import Final

import grpc
from google.protobuf.message import DecodeError

from clients.endpoints import Endpoints
from clients.errors import HqApiError
from clients.retry import Safety, blames_endpoint
from federated.channel import Dialer, Metadata, ReplicaChannel
from federated.clock import Clock
from federated.config import LocationConfig
from federated.errors import NOT_LET_IN, Silence, is_word
from federated.lastgood import LastGood
from federated.plan import Standing, patience_s
from federated.race import Race
from hqpb.v1 import service_pb2

log = logging.getLogger(__name__)

_NOBODY: Final = service_pb2.InstanceFilter(instance_id=["hq.front.probe"])
PROBE: Final = service_pb2.CountInstancesRequest(filter=_NOBODY).SerializeToString()
_REPLICA_PROBE_S: Final = 0.4  # a replica that takes longer stays set aside
_IDLE_PROBE_S: Final = 5.0
_DOWN_PROBE_S: Final = 1.0
_TICK_S: Final = 0.1
_STREAM_SILENCE_S: Final = 15.0  # three bookmarks


class Location:
    """Asks the replicas of one installation.

    Attributes:
        config: as it stands in the file.
        standing: whether reads wait for it.
        source: the last Source that it told; None: it never did.
        seen_at: when it told that, on the injected clock.
        last_good: its answers, for callers who allow old ones.
        probes: how many probes were answered and how many not.
        silences: reads without an answer, waited for or not.
        writes: sent.
    """

    def __init__(
        self, config: LocationConfig, clock: Clock, rng: random.Random, dialer: Dialer, last_good_bytes: int
    ) -> None:
        self.config, self._clock, self._dialer = config, clock, dialer
        endpoints = Endpoints(config.replicas, clock, rng, first_backoff_s=0.5, max_backoff_s=10.0)
        channels = {address: ReplicaChannel(address, dialer) for address in config.replicas}
        self.race = Race(endpoints, channels, clock)
        self.standing = Standing(clock.now())
        self._was_up = True
        self.source: service_pb2.Source | None = None
        self.seen_at = clock.now()
        self.last_good = LastGood(last_good_bytes)
        self.probes = {True: 0, False: 0}
        self.silences = self.writes = 0
        self._probed_at = clock.now()

    def __repr__(self) -> str:
        return f"Location({self.name}, {'up' if self.standing.is_up else self.standing.error})"

    @property
    def name(self) -> str:
        return self.config.name

    async def read(self, method: str, request: bytes, left_s: float | None, metadata: Metadata) -> bytes:
        """The encoded answer to a call that changes nothing.

        Args:
            left_s: how long the caller waits still; None: it did not say.
            metadata: the caller's ticket.

        Raises:
            Silence: it has no answer, or none was waited for because it failed before.
            HqApiError: it says that the request cannot be answered so.
        """
        if not self.standing.is_up:
            self.silences += 1
            raise Silence(self._down_words())
        return await self._read(method, request, patience_s(self.config.timeout_s, left_s), metadata)

    async def write(self, method: str, request: bytes, safety: Safety, timeout_s: float, metadata: Metadata) -> bytes:
        """The encoded answer to a write, which is tried whatever the standing. Raises HqApiError."""
        self.writes += 1
        return await self.race.write(method, request, safety, timeout_s, metadata)

    async def stream(self, method: str, request: bytes, metadata: Metadata) -> AsyncIterator[bytes]:
        """Encoded messages from one replica, until it ends. Always ends with an HqApiError."""
        endpoint, began = self.race.endpoints.pick(), self._clock.now()
        messages = self.race.channels[endpoint.address].stream(method, request, _STREAM_SILENCE_S, metadata)
        try:
            async for message in messages:
                yield message
        except HqApiError as error:
            if blames_endpoint(error, self._clock.now() - began):
                self.race.endpoints.failed(endpoint)
            raise

    def saw(self, encoded: bytes) -> service_pb2.Source:
        """Take note of a Source in an answer, and return it.

        Raises:
            Silence: it is not of this location: what it answers must not be taken for this one's.
        """
        try:
            source = service_pb2.Source.FromString(encoded)
        except DecodeError:
            source = service_pb2.Source()
        if source.cluster != self.name:
            said = f"its replicas call themselves {source.cluster!r}"
            raise Silence(f"{said}: mend the front's configuration, or start them with --cluster {self.name}")
        self.source, self.seen_at = source, self._clock.now()
        return source

    def staleness_s(self) -> float | None:
        """For how long at most changes of this location may have been missed; None: unknown, or it is silent."""
        if self.source is None or not self.standing.is_up or not self.source.HasField("staleness"):
            return None
        told_s = self.source.staleness.ToMilliseconds() / 1000
        return told_s + self._clock.now() - self.seen_at

    # --- probes -------------------------------------------------------------------------------------------------------

    async def probe(self) -> bool:
        """Ask every replica something small; whether one of them answered."""
        self._probed_at = began = self._clock.now()
        endpoints, timeout_s = self.race.endpoints, self.config.timeout_s
        answered = await asyncio.gather(*(self._probe(e.address, timeout_s) for e in endpoints.all))
        is_up = any(took_s is not None for took_s in answered)
        for endpoint, took_s in zip(endpoints.all, answered, strict=True):
            self._judge(endpoint.address, took_s)
        if not is_up and self.seen_at < began:
            words = self.standing.error or f"no replica answered a probe within {timeout_s:g} s"
            self.standing.failed(words, timeout_s, timeout_s, self._clock.now(), at_once=True)
            self._note()
        return is_up

    async def keep_probing(self) -> None:
        """Probe a location that failed, replicas that are set aside, and now and then one that nobody asks."""
        while True:
            await self._clock.sleep(_TICK_S)
            now = self._clock.now()
            pause_s = _IDLE_PROBE_S if self.standing.is_up else _DOWN_PROBE_S
            if now - self._probed_at >= pause_s and (not self.standing.is_up or now - self.seen_at >= pause_s):
                await self.probe()
            elif due := self.race.endpoints.due():
                await asyncio.gather(*(self._probe_replica(endpoint.address) for endpoint in due))

    async def close(self) -> None:
        """End every call."""
        await asyncio.gather(*(channel.close() for channel in self.race.channels.values()))

    async def _read(self, method: str, request: bytes, timeout_s: float, metadata: Metadata) -> bytes:
        began = self._clock.now()
        try:
            answer = await self.race.run(method, request, timeout_s, metadata)
        except HqApiError as error:
            if is_word(error):
                raise
            if not error.from_hq:
                self._failed(error, self._clock.now() - began)
            self.silences += 1
            raise Silence(words_of(error, timeout_s)) from error
        return answer

    def _note(self) -> None:
        """Log it when the location falls silent or is back."""
        if self.standing.is_up == self._was_up:
            return
        self._was_up = self.standing.is_up
        if self._was_up:
            log.warning("%s answers again", self.name)
        else:
            log.warning("%s is silent, reads go on without it: %s", self.name, self.standing.error)

    def _failed(self, error: HqApiError, waited_s: float) -> None:
        at_once = error.code is not grpc.StatusCode.DEADLINE_EXCEEDED
        timeout_s, now = self.config.timeout_s, self._clock.now()
        self.standing.failed(words_of(error, timeout_s), waited_s, timeout_s, now, at_once=at_once)
        self._note()

    def _down_words(self) -> str:
        since_s = self._clock.now() - self.standing.since
        return f"{self.standing.error}; not asked again until a probe succeeds, silent for {since_s:.0f} s"

    async def _probe(self, address: str, timeout_s: float) -> float | None:
        """Seconds that the replica took; None: it did not answer as a replica of this location."""
        began = self._clock.now()
        try:
            body = await self.race.channels[address].call("CountInstances", PROBE, timeout_s, self._dialer.own())
            self.saw(service_pb2.CountInstancesResponse.FromString(body).sources[0].SerializeToString())
        except (HqApiError, DecodeError, IndexError) as error:
            self.probes[False] += 1
            if isinstance(error, HqApiError) and error.code in NOT_LET_IN:
                words = f"it does not let this front in: {error.message}"
                self.standing.failed(words, 0.0, 1.0, self._clock.now(), at_once=True)
                self._note()
            return None
        except Silence as silence:
            self.probes[False] += 1
            self.standing.failed(str(silence), 0.0, 1.0, self._clock.now(), at_once=True)
            self._note()
            return None
        self.probes[True] += 1
        self.standing.answered(self._clock.now())
        self._note()
        return self._clock.now() - began

    async def _probe_replica(self, address: str) -> None:
        self._judge(address, await self._probe(address, _REPLICA_PROBE_S))

    def _judge(self, address: str, took_s: float | None) -> None:
        endpoint = next(e for e in self.race.endpoints.all if e.address == address)
        if took_s is not None and took_s <= _REPLICA_PROBE_S:
            self.race.endpoints.succeeded(endpoint)
        else:
            self.race.endpoints.failed(endpoint)


def words_of(error: HqApiError, timeout_s: float) -> str:
    """Why a location has no answer. gRPC's own words are long, and its addresses are nobody's business."""
    if not error.sent:
        return "no replica accepts connections"
    if error.code is grpc.StatusCode.DEADLINE_EXCEEDED and not error.from_hq:
        return f"no answer within {timeout_s:g} s"
    return error.message
