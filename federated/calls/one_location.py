"""One location followed for one watch: successive streams, and what was passed on."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

import grpc

from federated.clock import FederatedClock
from federated.encoded import scan
from federated.errors import NOT_LET_IN, NoAnswer, is_too_large, relayed_error, words_for_callers
from federated.locations.locations import Locations
from hqclient.backoff import backoff_limit_s
from hqclient.errors import HqApiError
from hqpb.v1 import service_pb2 as pb
from serving.errors import ServiceError


class LocationMessage(NamedTuple):
    """A message of a location, taken apart.

    Attributes:
        rest: the encoded message without its resume token.
    """

    kind: int
    token: str
    source: bytes
    rest: bytes


def parse_message(body: bytes) -> LocationMessage:
    """Take an encoded WatchInstancesResponse apart; its events stay encoded. Raises Malformed."""
    kind, token, source, at = 0, "", b"", 0
    rest: list[bytes] = []
    for field in scan.fields(body):
        if field.number == 1:
            kind = field.value
        elif field.number == 3 and field.kind == scan.DELIMITED:
            token = body[field.value_at : field.end].decode()
            rest.append(body[at : field.at])
            at = field.end
        elif field.number == 4 and field.kind == scan.DELIMITED:
            source = body[field.value_at : field.end]
    return LocationMessage(kind, token, source, b"".join((*rest, body[at:])))


class Portion(NamedTuple):
    """Messages that must be sent without any of another location in between.

    Attributes:
        name: the location.
        bodies: encoded messages without resume tokens.
        token: the location's own, valid once all of them are sent; empty: they complete nothing.
        forget: everything sent of this location before is void.
    """

    name: str
    bodies: list[bytes]
    token: str = ""
    forget: bool = False


class LocationProgress:
    """How far a location has got in a watch, and where it resumes. Decisions only.

    Attributes:
        token: the location's own resume token; empty: from a snapshot.
    """

    def __init__(self, name: str, token: str) -> None:
        self.name, self.token = name, token
        self._is_partial = False  # a snapshot was sent in part
        self._parts: list[bytes] = []  # of an incomplete version

    def apply_message(self, message: LocationMessage) -> list[Portion]:
        """Return the portions to send for a message."""
        match message.kind:
            case pb.WATCH_KIND_SNAPSHOT:
                void = self.start_over("a new snapshot begins") if self.token else []
                self._is_partial = True
                return [*void, Portion(self.name, [message.rest])]
            case pb.WATCH_KIND_EVENTS:
                return self._events(message)
            case pb.WATCH_KIND_RESYNC:
                self._forget()
                return [Portion(self.name, [message.rest], forget=True)]
            case _:
                self._is_partial = self._is_partial and message.kind != pb.WATCH_KIND_SYNCED
                self.token = message.token or self.token
                return [Portion(self.name, [message.rest], message.token)]

    def on_stream_end(self) -> list[Portion]:
        """Return the portions to send after the stream ended, for any reason."""
        self._parts.clear()
        return self.start_over("the stream ended before the snapshot was complete") if self._is_partial else []

    def start_over(self, reason: str) -> list[Portion]:
        """Return the portions that void everything sent so far."""
        self._forget()
        return [Portion(self.name, [resync(self.name, reason)], forget=True)]

    def _events(self, message: LocationMessage) -> list[Portion]:
        self._parts.append(message.rest)
        if not message.token:
            return []
        parts, self._parts = self._parts, []
        self.token = message.token
        return [Portion(self.name, parts, message.token)]

    def _forget(self) -> None:
        self.token, self._is_partial = "", False
        self._parts.clear()


def resync(name: str, reason: str) -> bytes:
    """Make the message that this location, and no other, starts over: what was shown of it is void."""
    source = pb.Source(cluster=name)
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_RESYNC, sources=[source], reason=reason).SerializeToString()


def empty_location_message(name: str, reason: str) -> bytes:
    """Make the message that this location is shown completely, without instances, for this reason."""
    source = pb.Source(cluster=name, error=reason)
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SYNCED, sources=[source]).SerializeToString()


def stale_location_message(name: str, error: str) -> bytes:
    """Make the message that this location's part may be stale."""
    source = pb.Source(cluster=name, error=error)
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_BOOKMARK, sources=[source]).SerializeToString()


_FIRST_WAIT_S: Final = 0.1
_MAX_WAIT_S: Final = 2.0
_STEADY_S: Final = 2.0
_LEAST_LOOK_S: Final = 0.5
_QUIET_S: Final = 6.0  # a replica sends a bookmark at least every five seconds
_VOID: Final = frozenset({grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.OUT_OF_RANGE})
_NO_USE: Final = frozenset({grpc.StatusCode.INVALID_ARGUMENT}) | NOT_LET_IN


class LocationFollower:
    """Decides what to ask a location, and what to send for its messages or its silence."""

    def __init__(
        self,
        name: str,
        locations: Locations,
        where: pb.InstanceFilter,
        token: str,
        clock: FederatedClock,
        rng: random.Random,
    ) -> None:
        self.name, self._locations, self._where = name, locations, where
        self._clock, self._rng = clock, rng
        self.progress = LocationProgress(name, token)
        self._failures = 0
        self._told = False  # its silence was reported
        self._began = self._heard_at = clock.now()
        self._short = 0  # successive streams that ended soon, whatever they sent

    def request(self) -> bytes:
        """The request for the next stream, which begins now."""
        self._began = self._clock.now()
        asked = pb.WatchInstancesRequest(filter=self._where, resume_token=self.progress.token)
        return asked.SerializeToString()

    def on_message(self, body: bytes) -> list[Portion]:
        """Return the portions to send for an encoded message. Raises NoAnswer: it is not from this location."""
        try:
            message = parse_message(body)
        except ValueError as error:
            raise NoAnswer(f"its message cannot be decoded: {error}") from error
        location = self._locations.get(self.name)
        if location is not None:
            location.health.record_source(message.source)
        self._failures, self._told, self._heard_at = 0, False, self._clock.now()
        return self.progress.apply_message(message)

    def silence(self) -> list[Portion]:
        """Return the portions to send when the location falls silent, once until its next message."""
        location = self._locations.get(self.name)
        if location is None:
            return []
        since = location.health.silent_since()
        if since is not None and self._heard_at < since:
            return self._trouble(location.health.error)
        if self._quiet_s() >= _QUIET_S:
            return self._trouble(f"no message for {_QUIET_S:g} s, not even a bookmark")
        return []

    def look_in_s(self) -> float:
        """Seconds after which to call `silence`, unless the location is found to be silent earlier."""
        return _QUIET_S if self._told else max(_LEAST_LOOK_S, _QUIET_S - self._quiet_s())

    def on_stream_failure(self, error: HqApiError | NoAnswer) -> list[Portion]:
        """Return the portions to send after a stream failed.

        Raises:
            ServiceError: the request can never succeed as it is.
        """
        self._failures += 1
        if isinstance(error, HqApiError) and is_too_large(error) and self._failures > 1:
            raise self._final(error)
        if isinstance(error, HqApiError) and error.from_hq:
            if error.code in _NO_USE:
                raise self._final(error)
            if error.code in _VOID and self.progress.token:
                return self.progress.start_over(str(error))
        portions = self.progress.on_stream_end()
        words = str(error) if isinstance(error, NoAnswer) else words_for_callers(error)
        if self._failures >= 2:  # the first time, another replica may simply resume
            portions += self._trouble(words)
        return portions

    async def pause(self) -> None:
        """Wait before the next stream, longer each time until one has lasted for two seconds."""
        self._short = self._short + 1 if self._clock.now() - self._began < _STEADY_S else 0
        in_vain = max(self._failures, self._short, 1)
        limit_s = backoff_limit_s(in_vain, _FIRST_WAIT_S, _MAX_WAIT_S)
        await self._clock.sleep(limit_s * self._rng.uniform(0.5, 1.0))

    def _trouble(self, words: str) -> list[Portion]:
        if self._told:
            return []
        self._told = True
        return [Portion(self.name, [stale_location_message(self.name, f"{words}; resuming automatically")])]

    def _quiet_s(self) -> float:
        return self._clock.now() - self._heard_at

    def _final(self, error: HqApiError) -> ServiceError:
        return relayed_error(error, self.name)
