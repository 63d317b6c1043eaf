"""Discovery for threads that wait: handles whose list a background loop keeps up to date."""

from __future__ import annotations

import asyncio
import queue
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from hqclient.calls import MetadataSource
from hqclient.clock import ClientClock
from hqclient.credentials import Credentials
from hqclient.discovery import discovery, service
from hqclient.discovery.discovery import DiscoverySettings
from hqclient.discovery.endpoint import Endpoint, EndpointChanges, NotReady
from hqclient.discovery.picking import EndpointUse, Picker, Rank
from hqclient.discovery.roster import Origin
from hqclient.errors import HqApiError
from hqclient.links import ChannelFactory
from hqclient.sync.background import BACKGROUND, Reopened

T = TypeVar("T")

_REOPEN_S = 2.0
Callback = Callable[[EndpointChanges], object]


class Discovery:
    """As hqclient.Discovery. Its handles may be used from any thread; connections exist while one is entered."""

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
        listed = [servers] if isinstance(servers, str) else list(servers)

        def create() -> discovery.Discovery:
            return discovery.Discovery(
                listed,
                state_dir=state_dir,
                settings=settings,
                credentials=credentials,
                channel_factory=channel_factory,
                metadata=metadata,
                clock=clock,
                wall=wall,
                rng=rng,
            )

        self._servers = listed
        self._create = create
        self._opened: tuple[int, discovery.Discovery] | None = None

    def __repr__(self) -> str:
        return f"Discovery({self._servers})"

    def service(
        self,
        name: str,
        port: str,
        *,
        revision: str = "",
        pick: Picker | None = None,
        prefer: Rank | None = None,
    ) -> SyncService:
        """A handle of one service; enter it. Arguments as of hqclient.Discovery.service."""
        return SyncService(
            name, lambda: self._current().service(name, port, revision=revision, pick=pick, prefer=prefer)
        )

    def services(
        self,
        names: Iterable[str] | Mapping[str, str],
        port: str = "",
        *,
        pick: Callable[[], Picker] | None = None,
        prefer: Rank | None = None,
    ) -> SyncServices:
        """Handles of several services over one watch; enter them together."""
        listed = dict(names) if isinstance(names, Mapping) else list(names)

        def make_one(name: str) -> service.Service:
            return self._current().services(listed, port, pick=pick, prefer=prefer)[name]

        if not listed:
            raise ValueError("name at least one service, and a port for each")
        return SyncServices(SyncService(name, partial(make_one, name)) for name in listed)

    def _current(self) -> discovery.Discovery:
        """The asyncio Discovery of the current loop; call this only inside of that. It closes with its last handle."""
        if self._opened is None or self._opened[0] != BACKGROUND.generation:
            self._opened = BACKGROUND.generation, self._create()
        return self._opened[1]


class SyncService:
    """As hqclient.Service: the ready endpoints of a service at a named port, inside its `with` block."""

    def __init__(self, name: str, make: Callable[[], service.Service]) -> None:
        self.name = name
        self._make = make
        self._reopened = Reopened(self._enter, _leave)
        self._callbacks: dict[object, Callback] = {}
        self._ends: dict[object, Callable[[], None]] = {}
        self._is_entered = self._was_opened = False

    def __repr__(self) -> str:
        return f"SyncService({self.name}, entered={self._is_entered})"

    def __enter__(self) -> Self:
        if self._is_entered:
            raise RuntimeError(f"{self.name} is entered already")
        self._is_entered = True
        self._handle()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_entered = False
        self._reopened.close()

    # --- what is known, and how well --------------------------------------------------------------------------

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints, including those marked as failing, in a stable order."""
        return self._ask(lambda handle: handle.endpoints)

    @property
    def without_port(self) -> int:
        """Ready instances that are left out because they have no port of that name, or no host."""
        return self._ask(lambda handle: handle.without_port)

    @property
    def age_s(self) -> float:
        """The list was complete so many seconds ago, at the latest; infinite: unknown, or there is none."""
        return self._ask(lambda handle: handle.age_s)

    @property
    def source(self) -> Origin:
        """Where the list comes from."""
        return self._ask(lambda handle: handle.source)

    @property
    def stale(self) -> bool:
        """Whether the list may be out of date; use it nevertheless."""
        return self._ask(lambda handle: handle.stale)

    @property
    def doubt(self) -> str:
        """Why endpoints are kept that HQ no longer shows; empty: there are none."""
        return self._ask(lambda handle: handle.doubt)

    @property
    def unheard(self) -> frozenset[str]:
        """Known clusters that have shown this process nothing yet: their instances may be missing in the list."""
        return self._ask(lambda handle: handle.unheard)

    @property
    def error(self) -> HqApiError | None:
        """Why HQ cannot be followed at the moment; None: it can."""
        return self._ask(lambda handle: handle.error)

    @property
    def resyncs(self) -> int:
        """How often continuity was lost and a fresh snapshot taken."""
        return self._ask(lambda handle: handle.resyncs)

    def ready(self, timeout_s: float | None = 10.0, *, at_least: int = 1, live: bool = False) -> None:
        """Return when at least this many endpoints are known. Raises NotReady, in one line: what is known instead."""
        handle = self._handle()
        try:
            BACKGROUND.run(handle.ready(timeout_s, at_least=at_least, live=live))
        except TimeoutError as error:
            raise error.with_traceback(None) from None

    # --- changes ----------------------------------------------------------------------------------------------

    def on_change(self, callback: Callback) -> Callable[[], None]:
        """Call a function with each change; first with all existing ones, as added. Returns a function that ends it.

        It may be called before the block is entered. Calls come one after the other, in order, from a thread of their
        own, which may call this handle.
        """
        mark = object()
        self._callbacks[mark] = callback
        if self._is_entered:
            handle = self._handle()
            if mark not in self._ends:  # else the handle was opened just now, with all callbacks
                BACKGROUND.call(lambda: self._subscribe(handle, mark))

        def end() -> None:
            self._callbacks.pop(mark, None)
            if (end_one := self._ends.pop(mark, None)) is not None:
                BACKGROUND.call(end_one)

        return end

    def changes(self) -> Iterator[EndpointChanges]:
        """The steps that `on_change` would pass, as an endless iterator."""
        pending: queue.SimpleQueue[EndpointChanges] = queue.SimpleQueue()
        end = self.on_change(pending.put)
        try:
            while True:
                yield pending.get()
        finally:
            end()

    # --- picking ----------------------------------------------------------------------------------------------

    def pick(self) -> Endpoint:
        """One endpoint, by the policy of this handle. Raises NoEndpoints: there is none at all."""
        return self._ask(lambda handle: handle.pick())

    def take(self) -> EndpointUse:
        """Pick one and count its use until `done`. Raises NoEndpoints."""
        return self._ask(lambda handle: handle.take())

    @contextmanager
    def using(self, *, failures: type[BaseException] | tuple[type[BaseException], ...] = OSError) -> Iterator[Endpoint]:
        """Pick one and count its use in this block. An exception among `failures` marks it as failing and propagates.

        Raises:
            NoEndpoints: there is none at all.
        """
        use = self.take()
        try:
            yield use.endpoint
        except failures:
            BACKGROUND.call(lambda: use.done(failed=True))
            raise
        except BaseException:
            BACKGROUND.call(use.done)
            raise
        BACKGROUND.call(lambda: use.done(failed=False))

    def uses(self, endpoint: Endpoint) -> int:
        """How many uses of an endpoint are in progress, by this handle."""
        return self._ask(lambda handle: handle.uses(endpoint))

    def record_failure(self, endpoint: Endpoint) -> None:
        """It could not be reached: skip it for a short while, as long as others are left."""
        self._ask(lambda handle: handle.record_failure(endpoint))

    def record_success(self, endpoint: Endpoint) -> None:
        """It could be reached."""
        self._ask(lambda handle: handle.record_success(endpoint))

    # --- inside -----------------------------------------------------------------------------------------------

    def _ask(self, question: Callable[[service.Service], T]) -> T:
        handle = self._handle()
        return BACKGROUND.call(lambda: question(handle))

    def _handle(self) -> service.Service:
        if not self._is_entered:
            raise RuntimeError(f"enter it first: with the handle of {self.name}")
        return self._reopened.get()

    async def _enter(self) -> service.Service:
        handle = await self._make().__aenter__()
        self._ends.clear()
        if self._was_opened:  # after a fork: callers had a list, so do not show them none
            with suppress(NotReady):
                await handle.ready(_REOPEN_S, at_least=0)
        self._was_opened = True
        for mark in list(self._callbacks):
            self._subscribe(handle, mark)
        return handle

    def _subscribe(self, handle: service.Service, mark: object) -> None:
        callback = self._callbacks[mark]

        async def call_in_thread(changes: EndpointChanges) -> None:
            await asyncio.to_thread(callback, changes)

        self._ends[mark] = handle.on_change(call_in_thread)


async def _leave(handle: service.Service) -> None:
    await handle.__aexit__(None, None, None)


class SyncServices(Mapping[str, SyncService]):
    """As hqclient's Services: handles by name of their services, entered together."""

    def __init__(self, handles: Iterable[SyncService]) -> None:
        self._handles = {handle.name: handle for handle in handles}
        self._entered = ExitStack()

    def __getitem__(self, name: str) -> SyncService:
        return self._handles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handles)

    def __len__(self) -> int:
        return len(self._handles)

    def __enter__(self) -> Self:
        with ExitStack() as entering:
            for handle in self._handles.values():
                entering.enter_context(handle)
            self._entered = entering.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.close()

    def ready(self, timeout_s: float | None = 10.0, *, at_least: int = 1, live: bool = False) -> None:
        """Return when each of them is ready. Raises NotReady: one is not."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        for handle in self._handles.values():
            left_s = None if end is None else max(0.0, end - time.monotonic())
            handle.ready(left_s, at_least=at_least, live=live)
