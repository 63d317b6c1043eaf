"""The synchronous client: each call waits for its answer."""

from __future__ import annotations

import random
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from hqclient import client
from hqclient.calls import MetadataSource, Method, Req, Res
from hqclient.client import ClientSettings
from hqclient.clock import ClientClock
from hqclient.credentials import Credentials
from hqclient.links import ChannelFactory
from hqclient.retry import Safety
from hqclient.sync.admin import SyncAdminCalls
from hqclient.sync.background import BACKGROUND, Reopened
from hqclient.sync.reads import SyncReadCalls
from hqclient.sync.reports import SyncReportCalls
from hqclient.sync.writes import SyncWriteCalls
from hqclient.watch import Watch
from hqclient.watch_items import WatchItem
from hqpb.v1 import service_pb2


class Client(SyncReadCalls, SyncWriteCalls, SyncReportCalls):
    """As hqclient.Client, for threads that wait. Any thread may use it; close it when done, or use it as a context."""

    admin: SyncAdminCalls

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
        listed = [addresses] if isinstance(addresses, str) else list(addresses)
        self._addresses = listed

        async def create() -> client.Client:
            return client.Client(
                listed,
                timeout_s=timeout_s,
                read_your_writes=read_your_writes,
                settings=settings,
                credentials=credentials,
                channel_factory=channel_factory,
                metadata=metadata,
                clock=clock,
                rng=rng,
            )

        if not listed:
            raise ValueError("give the address of at least one replica, e.g. 127.0.0.1:7071")
        if credentials is not None:
            credentials.check(listed)
        self._reopened = Reopened(create, client.Client.close)
        self.admin = _AdminOfClient(self._reopened)

    def __repr__(self) -> str:
        return f"Client({self._addresses})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every call, watch and connection."""
        self._reopened.close()

    def away_s(self) -> float:
        """How long no replica has answered; 0: at least one is healthy, as far as is known."""
        return BACKGROUND.call(self._asyncio().away_s)

    def watch(self, where: service_pb2.InstanceFilter | None = None, *, resume_token: str = "") -> SyncWatch:
        """The instances that pass a filter, then every change to them, for as long as the caller iterates.

        with client.watch(where) as items:
            for item in items: ...
        """
        hq = self._asyncio()
        return SyncWatch(BACKGROUND.call(lambda: hq.watch(where, resume_token=resume_token)))

    def call(
        self,
        method: Method[Req, Res],
        request: Req,
        *,
        safety: Safety = Safety.UNLESS_STORED,
        timeout_s: float | None = None,
    ) -> Res:
        """Send any request unchanged, as hqclient.Client.call."""
        hq = self._asyncio()
        return BACKGROUND.run(hq.call(method, request, safety=safety, timeout_s=timeout_s))

    def _asyncio(self) -> client.Client:
        return self._reopened.get()


class _AdminOfClient(SyncAdminCalls):
    def __init__(self, reopened: Reopened[client.Client]) -> None:
        self._reopened = reopened

    def _asyncio(self) -> Any:
        return self._reopened.get().admin


class SyncWatch:
    """As hqclient.Watch: an iterator of WatchItem. It belongs to the process that opened it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    @property
    def resume_token(self) -> str:
        """Where to resume after the last item; empty: start from a snapshot."""
        return self._watch.resume_token

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> WatchItem:
        try:
            return BACKGROUND.run(self._watch.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the stream."""
        BACKGROUND.run(self._watch.aclose())
