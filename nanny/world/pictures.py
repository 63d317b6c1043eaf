"""Services as HQ shows them: one watch for each service and location, while somebody looks at it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from hqclient import Client, HqApiError, Interrupted, Shown, WatchItem
from hqpb.v1 import instance_pb2, service_pb2
from nanny.rollout.views import Key
from serving.clock import Clock

log = logging.getLogger(__name__)

_TRUE: Final = instance_pb2.CONDITION_STATUS_TRUE
_LINGER_S: Final = 30.0
UNREAD: Final = "was not read yet"


class Seen:
    """One service in one location.

    Attributes:
        error: why it must not be acted on; empty: it is current.
        epoch: that the versions of its instances belong to.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shown = Shown()
        self._ready_since: dict[tuple[str, int, str], float] = {}
        self.error = UNREAD
        self.epoch = ""

    @property
    def instances(self) -> Iterator[instance_pb2.Instance]:
        yield from self._shown.instances.values()

    def ready_s(self, instance: instance_pb2.Instance, revision: str) -> float:
        """For how long a revision has been ready without a break, as seen from here; -1: it is not."""
        since = self._ready_since.get((instance.meta.id, instance.meta.uid, revision))
        return -1.0 if since is None else self._clock.now() - since

    def took(self, item: WatchItem) -> None:
        self._shown.took(item)
        if isinstance(item, Interrupted):
            self.error = f"does not answer: {item.error.message}"
            return
        for source in getattr(item, "sources", ()):
            self._sourced(source)
        self._look()

    def _sourced(self, source: service_pb2.Source) -> None:
        if source.epoch:
            self.epoch = source.epoch
        doubted = source.trust == service_pb2.EPOCH_TRUST_DOUBTED
        self.error = (source.error or "its answers are old") if source.stale or doubted else ""
        if not self._shown.is_whole:
            self.error = UNREAD

    def _look(self) -> None:
        now, ready = self._clock.now(), {}
        for instance in self.instances:
            for status in instance.status.revision:
                if status.ready.status == _TRUE:
                    key = instance.meta.id, instance.meta.uid, status.id
                    ready[key] = self._ready_since.get(key, now)
        self._ready_since = ready


class Picture:
    """One service everywhere.

    Attributes:
        seen: by location.
    """

    def __init__(self, locations: Mapping[str, Client], clock: Clock) -> None:
        self.seen = {name: Seen(clock) for name in locations}
        self.moved = asyncio.Event()

    def instances(self) -> Iterator[tuple[Key, instance_pb2.Instance]]:
        """All that are seen, also those of locations that do not answer by now."""
        for location, seen in self.seen.items():
            for instance in seen.instances:
                yield (location, instance.meta.id), instance

    def away(self) -> dict[str, str]:
        """Locations that must not be acted on, with the reason."""
        return {name: seen.error for name, seen in self.seen.items() if seen.error}

    def is_read(self) -> bool:
        """Every location has answered once, or is known not to answer."""
        return all(seen.error != UNREAD for seen in self.seen.values())

    async def settle(self, done: Callable[[], bool], timeout_s: float) -> None:
        """Return when `done`, or when the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                while not done():
                    await self.moved.wait()
        except TimeoutError:
            pass


class Pictures:
    """The pictures that are needed. `changed(service)` is called whenever one of them has changed."""

    def __init__(self, locations: Mapping[str, Client], clock: Clock) -> None:
        self._locations, self._clock = locations, clock
        self._held: dict[str, _Held] = {}
        self.changed: Callable[[str], None] = lambda _: None

    def __len__(self) -> int:
        return len(self._held)

    @property
    def locations(self) -> list[str]:
        """Their names."""
        return sorted(self._locations)

    def away_locations(self) -> dict[str, str]:
        """By location, what is wrong with it as far as somebody looks; empty: nothing is known to be."""
        found = dict.fromkeys(self._locations, "")
        for held in self._held.values():
            found.update(held.picture.away())
        return found

    @asynccontextmanager
    async def of(self, service: str) -> AsyncIterator[Picture]:
        """The picture of a service; it is followed for a while afterwards, in case it is asked for again."""
        held = self._held.get(service)
        if held is None:
            held = self._held[service] = _Held(self._picture(service))
        held.users += 1
        held.cancel_end()
        try:
            yield held.picture
        finally:
            held.users -= 1
            if not held.users:
                held.end_in(_LINGER_S, lambda: self._drop(service))

    async def close(self) -> None:
        """End all watches."""
        tasks = [task for held in self._held.values() for task in held.tasks]
        for held in self._held.values():
            held.cancel_end()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._held.clear()

    def _picture(self, service: str) -> tuple[Picture, list[asyncio.Task[None]]]:
        picture = Picture(self._locations, self._clock)
        tasks = [
            asyncio.create_task(self._follow(service, client, picture, location), name=f"{service} in {location}")
            for location, client in self._locations.items()
        ]
        return picture, tasks

    async def _follow(self, service: str, client: Client, picture: Picture, location: str) -> None:
        seen = picture.seen[location]
        while True:
            try:
                async with client.watch(service_pb2.InstanceFilter(service_id=[service])) as items:
                    async for item in items:
                        seen.took(item)
                        self._tell(service, picture)
            except HqApiError as error:
                seen.error = f"refuses to be watched: {error.message}"
                log.warning("%s: %s %s", service, location, seen.error)
                self._tell(service, picture)
                await asyncio.sleep(5.0)

    def _tell(self, service: str, picture: Picture) -> None:
        moved, picture.moved = picture.moved, asyncio.Event()
        moved.set()
        self.changed(service)

    def _drop(self, service: str) -> None:
        held = self._held.pop(service)
        for task in held.tasks:
            task.cancel()


class _Held:
    def __init__(self, made: tuple[Picture, list[asyncio.Task[None]]]) -> None:
        self.picture, self.tasks = made
        self.users = 0
        self._ending: asyncio.TimerHandle | None = None

    def end_in(self, delay_s: float, end: Callable[[], None]) -> None:
        self._ending = asyncio.get_running_loop().call_later(delay_s, end)

    def cancel_end(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
