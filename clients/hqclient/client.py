"""HQ's client: every call of the registry, over any number of replicas.

    async with Client(["hq-1:7071", "hq-2:7071"]) as client:
        answer = await client.get("web-1")

Retries, fail-over and deadlines are built in; a call that fails for good raises HqApiError. Not included: state
kept from a watch (a discovery library builds on `watch`) and an agent's lifecycle (which builds on `begin_reporting`
and `report`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from hqclient.admin import AdminCalls
from hqclient.calls import MetadataSource, UnaryCalls
from hqclient.clock import ClientClock, MonotonicClock
from hqclient.credential_files import BadCredentials, CredentialFiles
from hqclient.credentials import Credentials
from hqclient.errors import HqApiError, Violation
from hqclient.links import ChannelFactory, never_renewed, unknown_cause
from hqclient.own_writes import OwnWrites
from hqclient.pool import Pool, Replicas
from hqclient.reads import STRONG, ReadCalls
from hqclient.reports import ReportCalls
from hqclient.retry import RetrySettings, Safety
from hqclient.watch import Watch, WatchSettings
from hqclient.writes import WriteCalls
from hqpb.v1 import service_pb2

__all__ = [
    "STRONG",
    "BadCredentials",
    "Client",
    "ClientSettings",
    "CredentialFiles",
    "Credentials",
    "HqApiError",
    "Safety",
    "Violation",
    "Watch",
]


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings that rarely need to be changed.

    Attributes:
        retry: how insistent calls are.
        watch: how watches behave when their stream ends.
        connect_timeout_s: how long a replica may take to accept a connection.
        first_connect_s: the same while some replica has not been tried yet, so that a frozen one costs no more.
        first_probe_s: about how long a failed replica is set aside at first; it doubles each time.
        max_probe_s: upper limit of that.
    """

    retry: RetrySettings = field(default_factory=RetrySettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    connect_timeout_s: float = 2.0
    first_connect_s: float = 0.3
    first_probe_s: float = 0.5
    max_probe_s: float = 30.0


class Client(ReadCalls, WriteCalls, ReportCalls):
    """Talks to one installation of HQ (or to a gateway). Use it as a context manager, from one event loop.

    Args:
        addresses: `host:port` of each replica.
        timeout_s: default deadline of a whole call, retries included.
        read_your_writes: reads wait until the answering replica has this client's own writes. Over a gateway with
            several locations they are STRONG after its first write.
        credentials: TLS, a client certificate, a token; all renewed from their files.
        metadata: called for each request; its result is sent along with the credentials.
        channel_factory: opens the channel to an address, instead of the credentials.

    Raises:
        BadCredentials: a token would be sent in plain text.
    """

    admin: AdminCalls

    def __init__(
        self,
        addresses: Iterable[str],
        *,
        timeout_s: float = 10.0,
        read_your_writes: bool = False,
        settings: ClientSettings | None = None,
        credentials: Credentials | None = None,
        channel_factory: ChannelFactory | None = None,
        metadata: MetadataSource = tuple,
        clock: ClientClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._settings = settings or ClientSettings()
        self._clock = clock or MonotonicClock()
        rng = rng or random.Random()
        replicas = Replicas(
            addresses,
            self._clock,
            rng,
            first_backoff_s=self._settings.first_probe_s,
            max_backoff_s=self._settings.max_probe_s,
        )
        connecting = credentials or Credentials()
        self._pool = Pool(
            replicas,
            channel_factory or connecting.channel,
            self._clock,
            connect_timeout_s=self._settings.connect_timeout_s,
            version=credentials.version if credentials else never_renewed,
            find_cause=connecting.find_cause if credentials or channel_factory is None else unknown_cause,
        )
        self._metadata = _both(credentials, metadata)
        if credentials is not None:
            credentials.check(replica.address for replica in replicas.all)
        calls = UnaryCalls(
            self._pool, self._clock, rng, self._settings.retry, self._metadata, self._settings.first_connect_s
        )
        super().__init__(calls, OwnWrites() if read_your_writes else None, rng, timeout_s)
        self.admin = AdminCalls(calls, None, rng, timeout_s)

    def __repr__(self) -> str:
        return f"Client({self._pool!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every call, watch and connection."""
        await self._pool.close()

    def away_s(self) -> float:
        """How long no replica has answered; 0: at least one is healthy, as far as is known."""
        return self._pool.replicas.away_s()

    def watch(self, where: service_pb2.InstanceFilter | None = None, *, resume_token: str = "") -> Watch:
        """The instances that pass a filter, then every change to them, for as long as the caller iterates.

        async with client.watch(where) as items:
            async for item in items: ...

        With a `resume_token` it continues after that point; the caller must still hold the state that belongs to
        it.
        """
        request = service_pb2.WatchInstancesRequest(filter=where, resume_token=resume_token)
        return Watch(self._pool, self._clock, self._rng, self._metadata, request, self._settings.watch)


def _both(credentials: Credentials | None, metadata: MetadataSource) -> MetadataSource:
    if credentials is None:
        return metadata
    return lambda: (*credentials.metadata(), *metadata())
