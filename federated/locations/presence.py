"""Whether a location answers, and what it told of itself last."""

from __future__ import annotations

import logging
from collections.abc import Callable

from google.protobuf.message import DecodeError

from federated.clock import Clock
from federated.errors import Silence
from federated.locations.plan import Standing
from hqpb.v1 import service_pb2

log = logging.getLogger(__name__)


class Presence:
    """What calls and probes find out about a location; what changes is logged.

    Attributes:
        source: the last Source that it told; None: it never did.
        seen_at: when it told that, on the injected clock.
        on_silence: called when it falls silent.
    """

    def __init__(self, name: str, timeout_s: float, clock: Clock) -> None:
        """`timeout_s`: how long calls wait for it."""
        self.name, self._timeout_s, self._clock = name, timeout_s, clock
        self.source: service_pb2.Source | None = None
        self.seen_at = clock.now()
        self.on_silence: Callable[[], None] = lambda: None
        self._standing = Standing(clock.now())
        self._was_up = True

    @property
    def is_up(self) -> bool:
        """Calls wait for it. Once it failed they do not, until a probe succeeded."""
        return self._standing.is_up

    @property
    def error(self) -> str:
        """What it failed with; empty while it is up."""
        return self._standing.error

    def silent_since(self) -> float | None:
        """When it fell silent, on the injected clock; None: it did not."""
        return None if self.is_up else self._standing.since

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
            raise Silence(f"{said}: correct the gateway's configuration, or start them with --cluster {self.name}")
        self.source, self.seen_at = source, self._clock.now()
        return source

    def staleness_s(self) -> float | None:
        """For how long at most changes of this location may have been missed; None: unknown, or it is silent."""
        if self.source is None or not self.is_up or not self.source.HasField("staleness"):
            return None
        told_s = self.source.staleness.ToMilliseconds() / 1000
        return told_s + self._clock.now() - self.seen_at

    def answered(self) -> None:
        """It did, as the location that it should be."""
        self._standing.answered(self._clock.now())
        self._note()

    def failed(self, words: str, waited_s: float) -> None:
        """It did not answer for so long. A caller in a hurry says nothing about the location."""
        self._standing.failed(words, waited_s, self._timeout_s, self._clock.now(), at_once=False)
        self._note()

    def failed_at_once(self, words: str) -> None:
        """It did not just take its time: nobody of it can be reached, or none that is this location."""
        self._standing.failed(words, 0.0, self._timeout_s, self._clock.now(), at_once=True)
        self._note()

    def down_words(self) -> str:
        """Why it is not asked."""
        since_s = self._clock.now() - self._standing.since
        return f"{self.error}; unreachable for {since_s:.0f} s, not called again until a probe succeeds"

    def _note(self) -> None:
        """Log it when the location falls silent or is back."""
        if self.is_up == self._was_up:
            return
        self._was_up = self.is_up
        if self._was_up:
            log.warning("%s is reachable again", self.name)
        else:
            log.warning("%s is unreachable, reads continue without it: %s", self.name, self.error)
            self.on_silence()
