"""Whether a location answers, its last Source, and the probes that find out."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from google.protobuf.message import DecodeError

from federated.clock import FederatedClock
from federated.errors import NOT_LET_IN, NoAnswer
from federated.locations.channel import Dialer
from federated.locations.plan import LocationStanding
from federated.locations.race import Race
from hqclient.errors import HqApiError
from hqclient.pool import PooledReplica
from hqpb.v1 import service_pb2

log = logging.getLogger(__name__)


class LocationHealth:
    """The health of a location, as calls and probes find it; changes are logged.

    Attributes:
        source: its last Source; None: it never sent one.
        seen_at: when it sent that, on the injected clock.
        on_silence: called when it falls silent.
    """

    def __init__(self, name: str, timeout_s: float, clock: FederatedClock) -> None:
        """`timeout_s`: how long calls wait for it."""
        self.name, self._timeout_s, self._clock = name, timeout_s, clock
        self.source: service_pb2.Source | None = None
        self._encoded = b""
        self.seen_at = clock.now()
        self.on_silence: Callable[[], None] = lambda: None
        self._standing = LocationStanding(clock.now())
        self._was_up = True

    @property
    def is_up(self) -> bool:
        """Whether calls wait for it: not between a failure and the next successful probe."""
        return self._standing.is_up

    @property
    def error(self) -> str:
        """Return the failure; empty while it is up."""
        return self._standing.error

    def silent_since(self) -> float | None:
        """When it fell silent, on the injected clock; None: it did not."""
        return None if self.is_up else self._standing.since

    def record_source(self, encoded: bytes) -> service_pb2.Source:
        """Take note of a Source in an answer, and return it.

        Raises:
            NoAnswer: it is from another location, whose answer must not be taken for this one's.
        """
        if encoded == self._encoded and self.source is not None:  # replicas reuse a Source for a few milliseconds
            self.seen_at = self._clock.now()
            return self.source
        try:
            source = service_pb2.Source.FromString(encoded)
        except DecodeError:
            source = service_pb2.Source()
        if source.cluster != self.name:
            said = f"its replicas call themselves {source.cluster!r}"
            raise NoAnswer(f"{said}: correct the gateway's configuration, or start them with --cluster {self.name}")
        self.source, self.seen_at, self._encoded = source, self._clock.now(), encoded
        return source

    def staleness_s(self) -> float | None:
        """For how long at most changes of this location may have been missed; None: unknown, or it is silent."""
        if self.source is None or not self.is_up or not self.source.HasField("staleness"):
            return None
        told_s = self.source.staleness.ToMilliseconds() / 1000
        return told_s + self._clock.now() - self.seen_at

    def record_answer(self) -> None:
        """Record that it answered, as the right location."""
        self._standing.record_answer(self._clock.now())
        self._note()

    def record_failure(self, words: str, waited_s: float) -> None:
        """Record that no answer came; a short wait is ignored: the caller's deadline ended it."""
        self._standing.record_failure(words, waited_s, self._timeout_s, self._clock.now(), at_once=False)
        self._note()

    def record_unreachable(self, words: str, hint: str = "") -> None:
        """Record that it is not merely slow: no replica of this location can be reached.

        `hint`: for the log alone, such as addresses; callers see the words.
        """
        self._standing.record_failure(words, 0.0, self._timeout_s, self._clock.now(), at_once=True)
        self._note(hint)

    def down_words(self) -> str:
        """Why it is not asked."""
        since_s = self._clock.now() - self._standing.since
        return f"{self.error}; unreachable for {since_s:.0f} s, not called again until a probe succeeds"

    def _note(self, hint: str = "") -> None:
        """Log it when the location falls silent or is back."""
        if self.is_up == self._was_up:
            return
        self._was_up = self.is_up
        if self._was_up:
            log.warning("%s is reachable again", self.name)
        else:
            log.warning("%s is unreachable, reads continue without it: %s%s", self.name, self.error, hint)
            self.on_silence()


_NOBODY: Final = service_pb2.InstanceFilter(instance_id=["hq.federated.probe"])
PROBE: Final = service_pb2.CountInstancesRequest(filter=_NOBODY).SerializeToString()
_REPLICA_PROBE_S: Final = 0.4  # a replica that takes longer stays set aside
_IDLE_PROBE_S: Final = 5.0
_DOWN_PROBE_S: Final = 1.0
_TICK_S: Final = 0.1
_CAUSES_EVERY_S: Final = 30.0
_CAUSES_S: Final = 1.0


class Probes:
    """Asks the replicas of one location, each with the gateway's own token.

    Attributes:
        answered, unanswered: how many probes were.
    """

    def __init__(
        self, health: LocationHealth, race: Race, dialer: Dialer, clock: FederatedClock, timeout_s: float
    ) -> None:
        """`timeout_s`: how long calls wait for this location."""
        self._health, self._race, self._dialer, self._clock = health, race, dialer, clock
        self._timeout_s = timeout_s
        self._probed_at = clock.now()
        self._objection = ""  # of a replica that answered, but for another location
        self._causes, self._causes_at = "", -math.inf  # why replicas cannot be reached, as logged last, and when found
        self.answered = self.unanswered = 0

    async def probe(self) -> None:
        """Ask every replica something small; the location is silent if none of them answers."""
        self._probed_at, self._objection = (began := self._clock.now()), ""
        health, replicas = self._health, self._race.replicas.all
        answered = await asyncio.gather(*(self._ask(replica, self._timeout_s) for replica in replicas))
        for replica, took_s in zip(replicas, answered, strict=True):
            self._judge(replica, took_s)
        if all(took_s is None for took_s in answered) and health.seen_at < began:
            unheard = f"no replica answered a probe within {self._timeout_s:g} s"
            hint = f" (check `replicas` in --config: {', '.join(replica.address for replica in replicas)})"
            words = self._objection or health.error or unheard
            health.record_unreachable(words, hint if words == unheard else "")
            await self._log_causes()

    async def _log_causes(self) -> None:
        """Why no replica can be reached: for the log, as callers must not see addresses."""
        if self._clock.now() - self._causes_at < _CAUSES_EVERY_S:
            return
        self._causes_at = self._clock.now()
        addresses = [replica.address for replica in self._race.replicas.all]
        with suppress(TimeoutError):
            async with asyncio.timeout(_CAUSES_S):  # probes wait for it
                self._note_causes(addresses, await asyncio.gather(*map(self._dialer.find_cause, addresses)))

    def _note_causes(self, addresses: Sequence[str], found: Sequence[str]) -> None:
        causes = [f"cannot connect to {address}: {why}" for address, why in zip(addresses, found, strict=True) if why]
        if causes and (told := "; ".join(causes)) != self._causes:
            self._causes = told
            log.warning("%s: %s", self._health.name, told)

    async def keep_probing(self) -> None:
        """Probe a location that failed, replicas that are set aside, and occasionally one that gets no requests."""
        health = self._health
        while True:
            await self._clock.sleep(_TICK_S)
            now = self._clock.now()
            pause_s = _IDLE_PROBE_S if health.is_up else _DOWN_PROBE_S
            if now - self._probed_at >= pause_s and (not health.is_up or now - health.seen_at >= pause_s):
                await self.probe()
            elif due := self._race.replicas.due():
                await asyncio.gather(*(self._probe_replica(replica) for replica in due))

    async def _probe_replica(self, replica: PooledReplica) -> None:
        self._judge(replica, await self._ask(replica, _REPLICA_PROBE_S))

    async def _ask(self, replica: PooledReplica, timeout_s: float) -> float | None:
        """Seconds that the replica took; None: it did not answer as a replica of this location."""
        began = self._clock.now()
        try:
            channel = self._race.channels[replica.address]
            body = await channel.call("CountInstances", PROBE, timeout_s, self._dialer.own())
            self._health.record_source(
                service_pb2.CountInstancesResponse.FromString(body).sources[0].SerializeToString()
            )
        except (HqApiError, DecodeError, IndexError, NoAnswer) as error:
            self.unanswered += 1
            if isinstance(error, HqApiError) and error.code in NOT_LET_IN:
                self._objection = f"it rejects this gateway's credentials: {error.message}"
            elif isinstance(error, NoAnswer):
                self._objection = str(error)
            return None
        self.answered += 1
        self._causes, self._causes_at = "", -math.inf
        self._health.record_answer()
        return self._clock.now() - began

    def _judge(self, replica: PooledReplica, took_s: float | None) -> None:
        if took_s is not None and took_s <= _REPLICA_PROBE_S:
            self._race.replicas.record_success(replica)
        else:
            self._race.replicas.record_failure(replica)
