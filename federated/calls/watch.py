"""A watch over several locations: their watches in one stream, each with its own continuity."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Final

from federated.calls.asking import caller_metadata, locations_to_ask
from federated.calls.one_location import LocationFollower, Portion, empty_location_message, resync
from federated.clock import FederatedClock
from federated.encoded import continuation, scan
from federated.errors import NoAnswer
from federated.locations.channel import Metadata
from federated.locations.locations import Locations
from hqapi.requests import requested_cluster
from hqclient.errors import HqApiError
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import ShuttingDown

_QUEUED_PORTIONS: Final = 16  # of about a megabyte at most; a slower reader makes locations wait


class _LocationsChanged:
    """The set of locations has changed, or the gateway shuts down."""


class FederatedWatches:
    """The watching call.

    Attributes:
        open: how many watches there are.
        resyncs: by location, how often its continuity was lost in some watch.
    """

    def __init__(self, locations: Locations, clock: FederatedClock, rng: random.Random) -> None:
        self._locations, self._clock, self._rng = locations, clock, rng
        self.open = 0
        self.resyncs: dict[str, int] = {}

    async def watch(self, message: pb.WatchInstancesRequest, call: Call) -> AsyncIterator[bytes]:
        """An endless stream of encoded messages.

        Every message but the first is about one location, which its source names: SYNCED says that this one was
        shown completely, RESYNC that this one starts over. The first is a bookmark with a source for each location.

        Raises:
            InvalidRequest: the token is invalid or belongs to another filter, or the filter is faulty.
            ShuttingDown: the gateway shuts down; any other gateway can continue with the token.
        """
        digest = continuation.filter_digest(message.filter)
        held = continuation.tokens_of(message.resume_token, digest) if message.resume_token else None
        names = locations_to_ask(self._locations, message.filter.cluster, call)
        restricted = bool(message.filter.cluster or requested_cluster(call))
        stream = _Stream(self, self._locations, message.filter, caller_metadata(call), held, self._clock, self._rng)
        self.open += 1
        try:
            yield _opening(self._locations, names)
            async for portion in stream.portions(
                lambda: [n for n in self._locations.by_name if n in names or not restricted]
            ):
                stream.note(portion)
                *parts, last = portion.bodies
                for part in parts:
                    yield part
                # A RESYNC has a token, too: the caller's last token stands for state that it has just dropped.
                moved = bool(portion.token or (portion.forget and stream.vector))
                token = continuation.resume_token(digest, stream.vector) if moved else ""
                yield last + scan.delimited_field(3, token.encode()) if token else last
        finally:
            self.open -= 1
            await stream.end()


class _Stream:
    """One watch under way.

    Attributes:
        vector: resume tokens of the locations, as of what was given out.
    """

    def __init__(
        self,
        watches: FederatedWatches,
        locations: Locations,
        where: pb.InstanceFilter,
        metadata: Metadata,
        held: dict[str, str] | None,
        clock: FederatedClock,
        rng: random.Random,
    ) -> None:
        self._watches, self._locations, self._where = watches, locations, where
        self._clock, self._rng, self._metadata = clock, rng, metadata
        self._resumed = held is not None
        self.vector = dict(held or {})
        self._outbox: asyncio.Queue[Portion | BaseException | _LocationsChanged] = asyncio.Queue(_QUEUED_PORTIONS)
        self._following: dict[str, asyncio.Task[None]] = {}
        self._followers: dict[str, LocationFollower] = {}
        self._looking: list[asyncio.Task[None]] = []

    async def portions(self, wanted: Callable[[], Sequence[str]]) -> AsyncIterator[Portion]:
        """Portions to send, from all locations as they arrive. Raises ServiceError."""
        looking = (self._look(), self._listen_for_silence())
        self._looking = [asyncio.create_task(coroutine, name="watch locations") for coroutine in looking]
        for portion in self._follow(wanted(), first=True):
            yield portion
        while True:
            item = await self._outbox.get()
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, Portion):
                if item.name in self._following:
                    yield item
                continue
            if self._locations.closing.is_set():
                raise ShuttingDown("this gateway is shutting down: resume at another one", 0.1)
            for portion in self._follow(wanted(), first=False):
                yield portion

    def note(self, portion: Portion) -> None:
        """Bring `vector` and the count of resyncs up to date with a portion that is about to be sent."""
        if portion.forget:
            self.vector.pop(portion.name, None)
            if portion.name in self._locations.by_name:  # other names are whatever a caller wrote into its token
                self._watches.resyncs[portion.name] = self._watches.resyncs.get(portion.name, 0) + 1
        elif portion.token:
            self.vector[portion.name] = portion.token

    async def end(self) -> None:
        """End every stream."""
        tasks = [*self._following.values(), *self._looking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Ended tasks refer to this stream: its megabytes of unread messages would wait for the garbage collector.
        self._following.clear()
        self._looking.clear()

    def _follow(self, names: Sequence[str], *, first: bool) -> list[Portion]:
        """Follow these locations and no others; return the portions to send at once."""
        gone = [name for name in {*self._following, *(self.vector if first else ())} if name not in names]
        portions = [portion for name in gone for portion in self._drop_location(name)]
        for name in gone:
            if task := self._following.pop(name, None):
                task.cancel()
            self._followers.pop(name, None)
        for name in names:
            if name in self._following:
                continue
            token = self.vector.get(name, "")
            if self._resumed and not token:
                portions.append(self._forget(name, "its snapshot was not complete before"))
            follower = LocationFollower(name, self._locations, self._where, token, self._clock, self._rng)
            self._followers[name] = follower
            self._following[name] = asyncio.create_task(self._pump(follower), name=f"watch {name}")
        return portions

    def _forget(self, name: str, reason: str) -> Portion:
        return Portion(name, [resync(name, reason)], forget=True)

    def _drop_location(self, name: str) -> list[Portion]:
        """Have the watcher forget it, and show it as complete without instances: nobody must wait for its snapshot."""
        reason = "the location was removed from the gateway's configuration"
        return [self._forget(name, reason), Portion(name, [empty_location_message(name, reason)])]

    async def _pump(self, follower: LocationFollower) -> None:
        try:
            while True:
                try:
                    location = self._locations.by_name.get(follower.name)
                    # None: removed. This watch is about to learn that, unless the location comes back before.
                    if location is not None:
                        async for body in location.stream("WatchInstances", follower.request(), self._metadata):
                            await self._put_portions(follower.on_message(body))
                except (HqApiError, NoAnswer) as error:
                    await self._put_portions(follower.on_stream_failure(error))
                await follower.pause()
        except Exception as error:
            await self._outbox.put(error)

    async def _put_portions(self, portions: list[Portion]) -> None:
        for portion in portions:
            await self._outbox.put(portion)

    async def _listen_for_silence(self) -> None:
        while True:
            look_in_s = min((follower.look_in_s() for follower in self._followers.values()), default=1.0)
            with suppress(TimeoutError):
                async with asyncio.timeout(look_in_s):
                    await self._locations.wait_for_silence()
            # While the reader takes nothing, no location is heard: that does not make them silent.
            if not self._outbox.full():
                await self._put_portions([portion for one in self._followers.values() for portion in one.silence()])

    async def _look(self) -> None:
        while True:
            await self._outbox.put(_LocationsChanged())  # first of all, for what changed before this task began
            if self._locations.closing.is_set():
                return
            await self._locations.wait_for_change()


def _opening(locations: Locations, names: Sequence[str]) -> bytes:
    known = [locations.by_name[name] for name in names]
    told = [pb.Source(cluster=one.name, error=one.health.error) for one in known]
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_BOOKMARK, sources=told).SerializeToString()
