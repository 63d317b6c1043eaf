"""Probes: small questions that tell whether a location is back, and which of its replicas are quick."""

from __future__ import annotations

import asyncio
from typing import Final

from google.protobuf.message import DecodeError

from federated.clock import Clock
from federated.errors import NOT_LET_IN, Silence
from federated.locations.channel import Dialer
from federated.locations.presence import Presence
from federated.locations.race import Race
from hqclient.errors import HqApiError
from hqclient.pool import Endpoint
from hqpb.v1 import service_pb2

_NOBODY: Final = service_pb2.InstanceFilter(instance_id=["hq.front.probe"])
PROBE: Final = service_pb2.CountInstancesRequest(filter=_NOBODY).SerializeToString()
_REPLICA_PROBE_S: Final = 0.4  # a replica that takes longer stays set aside
_IDLE_PROBE_S: Final = 5.0
_DOWN_PROBE_S: Final = 1.0
_TICK_S: Final = 0.1


class Probes:
    """Asks the replicas of one location, each with the front's own ticket.

    Attributes:
        answered, unanswered: how many probes were.
    """

    def __init__(self, presence: Presence, race: Race, dialer: Dialer, clock: Clock, timeout_s: float) -> None:
        """`timeout_s`: how long calls wait for this location."""
        self._presence, self._race, self._dialer, self._clock = presence, race, dialer, clock
        self._timeout_s = timeout_s
        self._probed_at = clock.now()
        self._objection = ""  # of a replica that did answer, but not as one of this location
        self.answered = self.unanswered = 0

    async def probe(self) -> None:
        """Ask every replica something small; the location is silent if none of them answers."""
        self._probed_at, self._objection = (began := self._clock.now()), ""
        presence, endpoints = self._presence, self._race.endpoints.all
        answered = await asyncio.gather(*(self._ask(endpoint, self._timeout_s) for endpoint in endpoints))
        for endpoint, took_s in zip(endpoints, answered, strict=True):
            self._judge(endpoint, took_s)
        if all(took_s is None for took_s in answered) and presence.seen_at < began:
            unheard = f"no replica answered a probe within {self._timeout_s:g} s"
            presence.failed_at_once(self._objection or presence.error or unheard)

    async def keep_probing(self) -> None:
        """Probe a location that failed, replicas that are set aside, and now and then one that nobody asks."""
        presence = self._presence
        while True:
            await self._clock.sleep(_TICK_S)
            now = self._clock.now()
            pause_s = _IDLE_PROBE_S if presence.is_up else _DOWN_PROBE_S
            if now - self._probed_at >= pause_s and (not presence.is_up or now - presence.seen_at >= pause_s):
                await self.probe()
            elif due := self._race.endpoints.due():
                await asyncio.gather(*(self._probe_replica(endpoint) for endpoint in due))

    async def _probe_replica(self, endpoint: Endpoint) -> None:
        self._judge(endpoint, await self._ask(endpoint, _REPLICA_PROBE_S))

    async def _ask(self, endpoint: Endpoint, timeout_s: float) -> float | None:
        """Seconds that the replica took; None: it did not answer as a replica of this location."""
        began = self._clock.now()
        try:
            channel = self._race.channels[endpoint.address]
            body = await channel.call("CountInstances", PROBE, timeout_s, self._dialer.own())
            self._presence.saw(service_pb2.CountInstancesResponse.FromString(body).sources[0].SerializeToString())
        except (HqApiError, DecodeError, IndexError, Silence) as error:
            self.unanswered += 1
            if isinstance(error, HqApiError) and error.code in NOT_LET_IN:
                self._objection = f"it rejects this gateway's credentials: {error.message}"
            elif isinstance(error, Silence):
                self._objection = str(error)
            return None
        self.answered += 1
        self._presence.answered()
        return self._clock.now() - began

    def _judge(self, endpoint: Endpoint, took_s: float | None) -> None:
        if took_s is not None and took_s <= _REPLICA_PROBE_S:
            self._race.endpoints.succeeded(endpoint)
        else:
            self._race.endpoints.failed(endpoint)
