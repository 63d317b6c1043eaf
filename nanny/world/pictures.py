"""Services as HQ shows them: one watch for each service and location, while somebody looks at it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from hqclient import Changes, Client, HqApiError, Interrupted, Resync, Shown, SnapshotPart, WatchItem
from hqpb.v1 import instance_pb2, service_pb2
from nanny.rollout.views import Key
from serving.clock import Clock

log = logging.getLogger(__name__)

_TRUE: Final = instance_pb2.CONDITION_STATUS_TRUE
_LINGER_S: Final = 30.0
UNREAD: Final = "has not been read yet"


class Seen:
    """One service in one location.

    Attributes:
        instances: by id.
        error: why it must not be acted on; empty: it is current.
        epoch: that the versions of its instances belong to.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shown = Shown()
        self._ready_since: dict[str, dict[tuple[int, str], float]] = {}
        self.instances: dict[str, instance_pb2.Instance] = {}
        self.error = UNREAD
        self.epoch = ""

    def ready_s(self, instance: instance_pb2.Instance, revision: str) -> float:
        """For how long a revision has been ready without a break, as seen from here; -1: it is not."""
        since = self._ready_since.get(instance.meta.id, {}).get((instance.meta.uid, revision))
        return -1.0 if since is None else self._clock.now() - since

    def took(self, item: WatchItem) -> None:
        self._shown.took(item)
        if isinstance(item, Interrupted):
            self.error = f"does not answer: {item.error.message}"
            return
        for source in getattr(item, "sources", ()):
            self._sourced(source)
        match item:
            case SnapshotPart(instances):
                self._put(instances)
            case Changes(events):
                self._change(events)
            case Resync():
                self.instances, self._ready_since = {}, {}
                self._put(self._shown.instances.values())

    def _sourced(self, source: service_pb2.Source) -> None:
        if source.epoch:
            self.epoch = source.epoch
        doubted = source.trust == service_pb2.EPOCH_TRUST_DOUBTED
        self.error = (source.error or "its answers are stale") if source.stale or doubted else ""
        if not self._shown.is_whole:
            self.error = UNREAD

    def _change(self, events: Iterable[service_pb2.WatchEvent]) -> None:
        for event in events:
            if event.HasField("put"):
                self._put([event.put])
            else:
                gone = event.delete if event.HasField("delete") else event.left
                self.instances.pop(gone.id, None)
                self._ready_since.pop(gone.id, None)

    def _put(self, instances: Iterable[instance_pb2.Instance]) -> None:
        now = self._clock.now()
        for instance in instances:
            known = self._ready_since.get(instance.meta.id, {})
            ready = [(instance.meta.uid, one.id) for one in instance.status.revision if one.ready.status == _TRUE]
            self.instances[instance.meta.id] = instance
            self._ready_since[instance.meta.id] = {key: known.get(key, now) for key in ready}


class Picture:
    """One service everywhere.

    Attributes:
        seen: by location.
        verdicts: what somebody found out about an instance as it is, so that it need not be found out again.
    """

    def __init__(self, locations: Mapping[str, Client], clock: Clock) -> None:
        self.seen = {name: Seen(clock) for name in locations}
        self.verdicts: dict[tuple[Key, str], tuple[instance_pb2.Instance, bool]] = {}
        self.moved = asyncio.Event()

    def instances(self) -> Iterator[tuple[Key, instance_pb2.Instance]]:
        """All that are seen, also those of locations that do not answer by now."""
        for location, seen in self.seen.items():
            for name, instance in seen.instances.items():
                yield (location, name), instance

    def version(self, key: Key) -> int | None:
        """Of an instance; None: it is not seen."""
        instance = self.seen[key[0]].instances.get(key[1])
        return None if instance is None else instance.meta.version

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
