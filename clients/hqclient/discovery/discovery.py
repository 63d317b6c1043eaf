"""Where handles of services come from; owns the client and the feeds that they share."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from hqclient.calls import MetadataSource
from hqclient.client import Client, ClientSettings
from hqclient.clock import ClientClock, MonotonicClock
from hqclient.credentials import Credentials
from hqclient.discovery.endpoint_list import EndpointList
from hqclient.discovery.feed import Feed, FeedSettings, FeedSubject
from hqclient.discovery.instances import Follow, FollowedInstances
from hqclient.discovery.picking import Chooser, Ejections, EjectionSettings, Picker, Rank, RoundRobin
from hqclient.discovery.service import Service, Services
from hqclient.links import ChannelFactory


@dataclass(frozen=True, slots=True)
class DiscoverySettings:
    """Settings that rarely need to be changed.

    Attributes:
        client: how HQ is spoken with.
        feed: how the watch is kept and saved.
        ejection: how long failing endpoints are passed over.
        stale_after_s: a list is called stale after so long without a message from HQ. HQ sends one at least every 5 s,
            and a replica that is silent for 12 s (`client.watch.silence_limit_s`) is left for another one.
    """

    client: ClientSettings = field(default_factory=ClientSettings)
    feed: FeedSettings = field(default_factory=FeedSettings)
    ejection: EjectionSettings = field(default_factory=EjectionSettings)
    stale_after_s: float = 6.0


class Discovery:
    """Follows the ready instances of services in one installation of HQ (or in several, through a gateway).

    Connections exist only while a handle, or this object itself, is entered. Handles of the same services share one
    watch, and so do the services of one call of `services`. Use it from one event loop.

    Args:
        servers: `host:port` of each replica.
        state_dir: where the last good list of each watch is kept, for restarts while HQ is away; None: nowhere. One
            directory per installation; several processes may share it.
        credentials: TLS, a client certificate, a token; all renewed from their files.
        metadata: called for each request; its result is sent along with the credentials.
        channel_factory: opens the channel to a replica, instead of the credentials.
        wall: seconds since 1970, to tell the age of a saved list.
    """

    def __init__(
        self,
        servers: Iterable[str],
        *,
        state_dir: str | Path | None = None,
        settings: DiscoverySettings | None = None,
        credentials: Credentials | None = None,
        channel_factory: ChannelFactory | None = None,
        metadata: MetadataSource = tuple,
        clock: ClientClock | None = None,
        wall: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        self._servers = [servers] if isinstance(servers, str) else list(servers)
        self._directory = Path(state_dir) if state_dir is not None else None
        self._settings = settings or DiscoverySettings()
        self._credentials, self._channel_factory, self._metadata = credentials, channel_factory, metadata
        self._clock, self._wall, self._rng = clock or MonotonicClock(), wall, rng or random.Random()
        self._client: Client | None = None
        self._users = 0
        self._feeds: dict[FeedSubject, Feed] = {}
        self._followers: dict[FeedSubject, int] = {}
        self._lock = asyncio.Lock()  # two handles may open or close concurrently

    def __repr__(self) -> str:
        return f"Discovery({self._servers}, {list(self._feeds.values())})"

    def service(
        self,
        name: str,
        port: str,
        *,
        revision: str = "",
        pick: Picker | None = None,
        prefer: Rank | None = None,
    ) -> Service:
        """A handle of one service; enter it.

        Args:
            port: name of the port, as allocated. Instances without such a port are left out and counted.
            revision: only instances in which this revision is ready.
            pick: how to choose; default: round robin.
            prefer: choose among the nearest only, e.g. `near(node="node-1")`.
        """
        return self._handle(FeedSubject(frozenset([name])), name, port, revision, pick or RoundRobin(self._rng), prefer)

    def services(
        self,
        names: Iterable[str] | Mapping[str, str],
        port: str = "",
        *,
        pick: Callable[[], Picker] | None = None,
        prefer: Rank | None = None,
    ) -> Services:
        """Handles of several services over one watch; enter them together.

        Args:
            names: the services, all with `port`; or port names by service.
            pick: makes each handle's own picker.
        """
        ports = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, port)
        if not ports or not all(ports.values()):
            raise ValueError("name at least one service, and a port for each")
        subject = FeedSubject(frozenset(ports))
        make = pick or (lambda: RoundRobin(self._rng))
        return Services(self._handle(subject, name, of_it, "", make(), prefer) for name, of_it in ports.items())

    def instances(self, names: Iterable[str], follow: Follow) -> FollowedInstances:
        """All instances of these services, ready or not; enter it.

        Args:
            names: the services; none: all services.
            follow: called with each step, a `Delta`, in order, from inside the event loop.
        """
        subject = FeedSubject(frozenset(names), ready_only=False)
        return FollowedInstances(self, subject, self._settings.stale_after_s, follow)

    async def __aenter__(self) -> Self:
        self._users += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._lock:
            await self._one_user_less()

    async def open_feed(self, subject: FeedSubject) -> Feed:
        """Open the shared feed of a subject, for a handle."""
        async with self._lock:
            if subject not in self._feeds:
                self._feeds[subject] = self._start_feed(subject)
            self._users += 1
            self._followers[subject] = self._followers.get(subject, 0) + 1
            return self._feeds[subject]

    async def release_feed(self, subject: FeedSubject) -> None:
        """Release the feed: one handle no longer follows it."""
        async with self._lock:
            self._followers[subject] -= 1
            try:
                if not self._followers[subject]:
                    del self._followers[subject]
                    await self._feeds.pop(subject).close()
            finally:
                await self._one_user_less()

    def _handle(
        self, subject: FeedSubject, name: str, port: str, revision: str, picker: Picker, prefer: Rank | None
    ) -> Service:
        ejections = Ejections(self._clock, self._rng, self._settings.ejection)
        listing = EndpointList(name, port, revision)
        chooser = Chooser(listing, picker, prefer, ejections)
        return Service(self, subject, listing, chooser, self._settings.stale_after_s)

    def _start_feed(self, subject: FeedSubject) -> Feed:
        if self._client is None:
            self._client = self._create_client()
        feed = Feed(self._client, subject, self._directory, self._settings.feed, self._clock, self._wall, self._rng)
        feed.start()
        return feed

    def _create_client(self) -> Client:
        return Client(
            self._servers,
            settings=self._settings.client,
            credentials=self._credentials,
            channel_factory=self._channel_factory,
            metadata=self._metadata,
            clock=self._clock,
            rng=self._rng,
        )

    async def _one_user_less(self) -> None:
        self._users -= 1
        if not self._users and self._client is not None:
            client, self._client = self._client, None
            await client.close()
