"""The handles that callers hold: of one service, and of several that share one watch."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from types import TracebackType
from typing import Self

from hqclient.discovery.endpoint import Endpoint, EndpointChanges, NoEndpoints, NotReady
from hqclient.discovery.endpoint_list import Callback, EndpointList, Subscription
from hqclient.discovery.feed import FeedSubject
from hqclient.discovery.followed import FeedHandle, Feeds
from hqclient.discovery.picking import Chooser, EndpointUse
from hqclient.discovery.roster import Delta, Origin


class Service(FeedHandle):
    """The ready endpoints of a service at a named port. A context manager; inside the block it follows HQ.

    Attributes:
        name: the service.
        port: name of the port.
        revision: only instances in which this revision is ready; empty: any.
    """

    def __init__(
        self,
        feeds: Feeds,
        subject: FeedSubject,
        listing: EndpointList,
        chooser: Chooser,
        stale_after_s: float,
    ) -> None:
        super().__init__(feeds, subject, stale_after_s)
        self.name, self.port, self.revision = listing.service, listing.port, listing.revision
        self._listing, self._chooser = listing, chooser
        self._subscriptions: list[Subscription] = []

    def __repr__(self) -> str:
        return f"Service({self.name}:{self.port}, {len(self._listing)} endpoints, {self.source.name})"

    async def __aenter__(self) -> Self:
        self._listing.show((await self._open()).attach(self, self.name))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.detach(self, self.name)
        try:
            await asyncio.gather(*(subscription.close() for subscription in self._subscriptions))
        finally:
            await self._release()

    # --- what is known, and how well --------------------------------------------------------------------------

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints, including those marked as failing, in a stable order."""
        return self._listing.endpoints

    @property
    def without_port(self) -> int:
        """Ready instances that are left out because they have no port of that name, or no host."""
        return self._listing.without_port

    async def ready(self, timeout_s: float | None = 10.0, *, at_least: int = 1, live: bool = False) -> None:
        """Return when at least this many endpoints are known (0: when the list is known, even if it is empty).

        Args:
            timeout_s: how long to wait; None: for ever.
            live: a saved or kept list does not count.

        Raises:
            NotReady: not within `timeout_s`; also a TimeoutError.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while not self._suffices(at_least, live):
                    await self._feed.wait_for_change()
        except TimeoutError:
            raise NotReady(f"after {timeout_s:g} s: {self._shortage()}") from None

    # --- changes ----------------------------------------------------------------------------------------------

    def on_change(self, callback: Callback) -> Callable[[], None]:
        """Call a function, plain or async, with each change; first with all existing endpoints, as added.

        Calls come one after the other, in order, from a task of their own. What a call raises is logged. Returns a
        function that ends it (a call under way is cancelled).
        """
        self._feed  # noqa: B018 (raises unless entered)
        subscription = Subscription(self._listing, callback)
        self._subscriptions.append(subscription)

        def end() -> None:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)
                subscription.end()

        return end

    async def changes(self) -> AsyncGenerator[EndpointChanges, None]:
        """The steps that `on_change` would pass, as an endless iterator."""
        queue: asyncio.Queue[EndpointChanges] = asyncio.Queue(maxsize=1)
        end = self.on_change(queue.put)
        try:
            while True:
                yield await queue.get()
        finally:
            end()

    def step(self, delta: Delta) -> None:
        """Called by the feed; not for callers."""
        if changes := self._listing.show(delta):
            if changes.removed or changes.changed:
                self._chooser.ejections.keep_only(self._listing.endpoints)
            for subscription in tuple(self._subscriptions):
                subscription.put_changes(changes)

    # --- picking ----------------------------------------------------------------------------------------------

    def pick(self) -> Endpoint:
        """One endpoint, by the policy of this handle; those marked as failing are skipped while others are left.

        Raises:
            NoEndpoints: there is none at all.
        """
        picked = self._chooser.pick()
        if picked is None:
            raise NoEndpoints(self._shortage())
        return picked

    def take(self) -> EndpointUse:
        """Pick one and count its use until `done`, for uses that do not fit in one block. Raises NoEndpoints."""
        return EndpointUse(self._chooser, self.pick())

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
            use.done(failed=True)
            raise
        except BaseException:
            use.done()
            raise
        use.done(failed=False)

    def uses(self, endpoint: Endpoint) -> int:
        """How many uses of an endpoint are in progress, by this handle."""
        return self._chooser.uses(endpoint)

    def record_failure(self, endpoint: Endpoint) -> None:
        """It could not be reached: skip it for a short while, as long as others are left."""
        self._chooser.ejections.record_failure(endpoint)

    def record_success(self, endpoint: Endpoint) -> None:
        """It could be reached."""
        self._chooser.ejections.record_success(endpoint)

    # --- inside -----------------------------------------------------------------------------------------------

    def _suffices(self, at_least: int, live: bool) -> bool:
        roster = self._feed.roster
        return roster.is_known and len(self._listing) >= at_least and (not live or roster.origin is Origin.LIVE)

    def _shortage(self) -> str:
        what = f"{self.name} has {len(self._listing)} ready endpoints at port {self.port!r}"
        if self.source is Origin.NONE:
            what = f"nothing is known about {self.name} yet"
        elif self.source is not Origin.LIVE:
            age = f"{self.age_s:.0f} s old" if math.isfinite(self.age_s) else "of unknown age"
            what += f" in a list that is {age}"
        if self.without_port:
            what += f"; {self.without_port} ready instances have no port of that name"
        return f"{what}; HQ: {self.error}" if self.error else what


class Services(Mapping[str, Service]):
    """Handles by name of their services. A context manager; inside the block they follow HQ."""

    def __init__(self, handles: Iterable[Service]) -> None:
        self._handles = {handle.name: handle for handle in handles}
        self._entered = AsyncExitStack()

    def __repr__(self) -> str:
        return f"Services({list(self._handles.values())})"

    def __getitem__(self, name: str) -> Service:
        return self._handles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handles)

    def __len__(self) -> int:
        return len(self._handles)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as entering:
            for handle in self._handles.values():
                await entering.enter_async_context(handle)
            self._entered = entering.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._entered.aclose()

    async def ready(self, timeout_s: float | None = 10.0, *, at_least: int = 1, live: bool = False) -> None:
        """Return when each of them is ready, as `Service.ready` has it.

        Raises:
            NotReady: one is not.
        """
        handles = self._handles.values()
        await asyncio.gather(*(handle.ready(timeout_s, at_least=at_least, live=live) for handle in handles))
