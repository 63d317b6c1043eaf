"""Frequently requested filters: which are followed, with which identity, and when memory may answer."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from federated.calls.asking import caller_token
from federated.calls.lists import CompiledFind
from federated.calls.one_location import LocationFollower
from federated.clock import FederatedClock
from federated.encoded import scan
from federated.errors import NoAnswer
from federated.followed.demand import Bounds, Demand
from federated.followed.joined import FollowedAnswer, MergedList
from federated.followed.picture import LocationFrames
from federated.locations.location import LastGoodAnswer
from federated.locations.locations import Locations
from hqapi.pieces import Pieces
from hqapi.requests import CLUSTER_HEADER
from hqclient.errors import HqApiError
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import ServiceError, invalid

log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
_RENEW_S: Final = 1_800.0  # a stream lasts so long, about


class FollowedFilters:
    """Answers requests for followed filters from memory.

    The watches use the gateway's own identity, never a caller's token. Memory answers only those whom the gateway's own
    policy lets read everything that the filter can match; without such a policy, only callers without a token.

    Attributes:
        answers: given from memory; for metrics.
    """

    def __init__(
        self,
        locations: Locations,
        clock: FederatedClock,
        rng: random.Random,
        page_bytes: int,
        pieces: Pieces,
        bounds: Bounds | None = None,
    ) -> None:
        self._locations, self._clock, self._rng, self._page_bytes = locations, clock, rng, page_bytes
        self._pieces = pieces
        self._bounds = bounds or Bounds()
        self._demand = Demand(self._bounds)
        self._filters: dict[bytes, _Filter] = {}
        self.answers = 0

    def __len__(self) -> int:
        return len(self._filters)

    @property
    def size_bytes(self) -> int:
        """Bytes of all frames that are held."""
        return sum(one.size_bytes for one in self._filters.values())

    def answer(self, find: CompiledFind, call: Call) -> FollowedAnswer | None:
        """The answer from memory; None: ask the locations. Counts a request that it may answer.

        Raises Unauthenticated.
        """
        message, key = find.message, find.key
        if not find.is_plain or call.all_headers(CLUSTER_HEADER) or not self._may(message, call):
            return None
        now = self._clock.now()
        if self._demand.record_request(key, call.access.name, now):
            share = self._bounds.max_bytes // 10
            self._filters[key] = _Filter(self._locations, message.filter, self._clock, self._rng, share, self._pieces)
        one = self._filters.get(key)
        found = one.answer(now, message.page_size, self._page_bytes) if one is not None else None
        self.answers += found is not None
        return found

    def _may(self, message: pb.FindInstancesRequest, call: Call) -> bool:
        """Whether memory may answer this caller."""
        token, access = caller_token(call), call.access
        if not access.is_checked:
            return not token
        where = message.filter
        return all(access.within(name).proves(where.service_id, where.node_name) for name in self._locations.by_name)

    def last_list(self, key: bytes, name: str) -> LastGoodAnswer | None:
        """A silent location's last list for a filter; the caller must check that the user may read it."""
        one = self._filters.get(key)
        return one.last_list(name) if one is not None else None

    async def run(self) -> None:
        """Drop filters that are no longer requested, too large or cannot be followed, until cancelled."""
        try:
            names = list(self._locations.by_name)
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._locations.wait_for_change()
                if self._locations.closing.is_set():
                    return
                if names != (now_names := list(self._locations.by_name)):
                    names = now_names
                    self._drop(list(self._filters))
                self._tidy(self._clock.now())
        finally:
            self._drop(list(self._filters))

    def _tidy(self, now: float) -> None:
        self._drop(self._demand.idle(now))
        for key, one in list(self._filters.items()):
            if one.refused:
                log.info("a filter is not followed: %s", one.refused)
                self._drop([key])
                self._demand.bar(key, now)
        while self.size_bytes > self._bounds.max_bytes:
            self._drop([min(self._filters, key=lambda key: self._demand.followed[key][1])])

    def _drop(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self._demand.drop(key)
            if (one := self._filters.pop(key, None)) is not None:
                one.end()


class _Filter:
    """One filter, followed at every location."""

    def __init__(
        self,
        locations: Locations,
        where: pb.InstanceFilter,
        clock: FederatedClock,
        rng: random.Random,
        max_bytes: int,
        pieces: Pieces,
    ) -> None:
        self._locations, self._clock, self._rng, self._max_bytes = locations, clock, rng, max_bytes
        self._pictures = {name: LocationFrames() for name in sorted(locations.by_name)}
        self._joined = MergedList(self._pictures, pieces)
        self._sources: tuple[list[bytes], bytes] = [], b""
        self.refused = ""
        followers = [LocationFollower(name, locations, where, "", clock, rng) for name in self._pictures]
        self._tasks = [asyncio.create_task(self._follow(one), name=f"follow in {one.name}") for one in followers]

    @property
    def size_bytes(self) -> int:
        return sum(picture.size_bytes for picture in self._pictures.values()) + self._joined.size_bytes

    def answer(self, now: float, page_size: int, page_bytes: int) -> FollowedAnswer | None:
        """The answer from memory; None: it is not certain, or is more than one page."""
        by_name = self._locations.by_name
        if len(self._pictures) != len(by_name):
            return None
        for name, picture in self._pictures.items():
            location = by_name.get(name)
            if location is None or not location.health.is_up or not picture.is_usable(now):
                return None
        body = self._joined.body()
        if len(body.frames) > page_bytes or 0 < page_size < body.instances:
            return None
        told = [picture.source(now) for picture in self._pictures.values()]
        if told != self._sources[0]:
            self._sources = told, b"".join([scan.delimited_field(3, source) for source in told])
        return FollowedAnswer(self._joined, self._sources[1])

    def last_list(self, name: str) -> LastGoodAnswer | None:
        picture = self._pictures.get(name)
        if picture is None or not picture.was_complete:
            return None
        frames = [picture.frames[one] for one in sorted(picture.frames)]
        return LastGoodAnswer(
            b"".join(frames) + scan.delimited_field(3, picture.source(picture.last_at)), picture.last_at
        )

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _follow(self, follower: LocationFollower) -> None:
        picture = self._pictures[follower.name]
        try:
            while True:
                try:
                    async with asyncio.timeout(_RENEW_S * self._rng.uniform(0.8, 1.2)):
                        await self._stream(follower, picture)
                except TimeoutError:
                    # Start over from a snapshot: what was lost on the way, by whatever fault, is found and mended.
                    for portion in follower.progress.start_over("starting over, to compare with the location"):
                        picture.apply_portion(portion, self._clock.now())
                    continue
                picture.on_stream_end()
                await follower.pause()
        except ServiceError as error:
            self.refused = str(error)
        except Exception as error:
            log.exception("following a filter in %s ended", follower.name)
            self.refused = f"{type(error).__name__}: {error}"

    async def _stream(self, follower: LocationFollower, picture: LocationFrames) -> None:
        """One stream, until it ends. Raises ServiceError: it can never succeed."""
        location = self._locations.get(follower.name)
        if location is None:
            return
        try:
            async for body in location.stream("WatchInstances", follower.request(), location.own()):
                for portion in follower.on_message(body):
                    picture.apply_portion(portion, self._clock.now())
                if self.size_bytes > self._max_bytes:
                    raise invalid("filter", "its instances take too many bytes")
        except (HqApiError, NoAnswer) as error:
            for portion in follower.on_stream_failure(error):
                if portion.forget:
                    picture.apply_portion(portion, self._clock.now())
