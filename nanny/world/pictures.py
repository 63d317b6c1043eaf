"""Services as HQ shows them: one watch for each service and location, while somebody looks at it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from hqclient import Changes, Client, HqApiError, Interrupted, Resync, Shown, SnapshotPart, WatchItem
from hqpb.v1 import instance_pb2, service_pb2
from nanny.rollout.views import Key
from nanny.world.tally import VerdictTally
from serving.clock import Clock

log = logging.getLogger(__name__)

V = TypeVar("V", bound=Hashable)

_TRUE: Final = instance_pb2.CONDITION_STATUS_TRUE
_LINGER_S: Final = 30.0
_MOST_TALLIES: Final = 16
UNREAD: Final = "has not been read yet"


class LocationView:
    """One service in one location. `changed(id, instance)` is called for every instance that changed or (None) is gone.

    Attributes:
        error: why it must not be acted on; empty: it is current.
        epoch: the epoch that the versions of its instances belong to.
    """

    def __init__(self, clock: Clock, changed: Callable[[str, instance_pb2.Instance | None], None]) -> None:
        self._clock, self._changed = clock, changed
        self._shown = Shown()
        self._ready_since: dict[str, dict[tuple[int, str], float]] = {}
        self.error = UNREAD
        self.epoch = ""

    def ready_s(self, instance: instance_pb2.Instance, revision: str) -> float:
        """How long a revision has been ready without interruption, as seen from here; -1: it is not ready."""
        since = self._ready_since.get(instance.meta.id, {}).get((instance.meta.uid, revision))
        return -1.0 if since is None else self._clock.now() - since

    def took(self, item: WatchItem) -> None:
        self._shown.apply_item(item)
        if isinstance(item, Interrupted):
            self.error = f"does not answer: {item.error.message}"
            return
        for source in getattr(item, "sources", ()):
            self._update_source(source)
        if not self._shown.is_whole:  # first: nobody may act on what a watch that starts over still lacks
            self.error = UNREAD
        match item:
            case SnapshotPart(instances):
                self._on_put(instances)
            case Changes(events):
                self._change(events)
            case Resync():
                for name in list(self._ready_since):
                    self._on_gone(name)
                self._on_put(self._shown.instances.values())

    def _update_source(self, source: service_pb2.Source) -> None:
        if source.epoch:
            self.epoch = source.epoch
        doubted = source.trust == service_pb2.EPOCH_TRUST_DOUBTED
        self.error = (source.error or "its answers are stale") if source.stale or doubted else ""

    def _change(self, events: Iterable[service_pb2.WatchEvent]) -> None:
        for event in events:
            if event.HasField("put"):
                self._on_put([event.put])
            else:
                self._on_gone((event.delete if event.HasField("delete") else event.left).id)

    def _on_gone(self, name: str) -> None:
        self._ready_since.pop(name, None)
        self._changed(name, None)

    def _on_put(self, instances: Iterable[instance_pb2.Instance]) -> None:
        now = self._clock.now()
        for instance in instances:
            known = self._ready_since.get(instance.meta.id, {})
            ready = [(instance.meta.uid, one.id) for one in instance.status.revision if one.ready.status == _TRUE]
            self._ready_since[instance.meta.id] = {key: known.get(key, now) for key in ready}
            self._changed(instance.meta.id, instance)


class ServiceView:
    """One service in all locations.

    Attributes:
        seen: by location.
        instances: all known ones, including those in locations that no longer answer.
    """

    def __init__(self, locations: Mapping[str, Client], clock: Clock) -> None:
        self.seen = {name: LocationView(clock, self._taker(name)) for name in locations}
        self.instances: dict[Key, instance_pb2.Instance] = {}
        self._tallies: OrderedDict[Hashable, VerdictTally[Any]] = OrderedDict()
        self.moved = asyncio.Event()

    def tally(self, name: Hashable, judge: Callable[[Key], V | None], keys: Iterable[Key] = ()) -> VerdictTally[V]:
        """The verdicts of `judge` on these and all known instances; cached under its name and kept up to date.

        `judge` depends on nothing but its name, what `instances` and `ready_s` say of the key, and the epoch.
        """
        tally = self._tallies.get(name)
        if tally is None:
            tally = self._tallies[name] = VerdictTally(judge, {*keys, *self.instances})
            if len(self._tallies) > _MOST_TALLIES:
                self._tallies.popitem(last=False)
        self._tallies.move_to_end(name)
        return tally

    def put_instance(self, key: Key, instance: instance_pb2.Instance | None) -> None:
        """Note that an instance has changed, or (None) is gone."""
        if instance is None:
            self.instances.pop(key, None)
        else:
            self.instances[key] = instance
        for tally in self._tallies.values():
            tally.stale.add(key)

    def _taker(self, location: str) -> Callable[[str, instance_pb2.Instance | None], None]:
        return lambda name, instance: self.put_instance((location, name), instance)

    def version(self, key: Key) -> int | None:
        """The version of an instance; None: it is not known."""
        instance = self.instances.get(key)
        return None if instance is None else instance.meta.version

    def ready_s(self, key: Key, revision: str) -> float:
        """See `LocationView.ready_s`."""
        return self.seen[key[0]].ready_s(self.instances[key], revision)

    def away(self) -> dict[str, str]:
        """Locations that must not be acted on, with the reason."""
        return {name: seen.error for name, seen in self.seen.items() if seen.error}

    def is_read(self) -> bool:
        """Whether every location has answered once, or is known not to answer."""
        return all(seen.error != UNREAD for seen in self.seen.values())

    async def settle(self, done: Callable[[], bool], timeout_s: float) -> None:
        """Return when `done`, or after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                while not done():
                    await self.moved.wait()
        except TimeoutError:
            pass


class ServiceViews:
    """The pictures that are needed. `changed(service)` is called whenever one of them has changed."""

    def __init__(self, locations: Mapping[str, Client], clock: Clock) -> None:
        self._locations, self._clock = locations, clock
        self._held: dict[str, _SharedView] = {}
        self.changed: Callable[[str], None] = lambda _: None

    def __len__(self) -> int:
        return len(self._held)

    @property
    def locations(self) -> list[str]:
        """Names of the locations."""
        return sorted(self._locations)

    def away_locations(self) -> dict[str, str]:
        """Return the fault of each location, as far as it is followed; empty: no fault is known."""
        found = dict.fromkeys(self._locations, "")
        for held in self._held.values():
            found.update(held.picture.away())
        return found

    @asynccontextmanager
    async def view_of(self, service: str) -> AsyncIterator[ServiceView]:
        """The picture of a service; it is followed for a while longer, in case it is needed again."""
        held = self._held.get(service)
        if held is None:
            held = self._held[service] = _SharedView(self._picture(service))
        held.users += 1
        held.cancel_end()
        try:
            yield held.picture
        finally:
            held.users -= 1
            if not held.users:
                held.schedule_end(_LINGER_S, lambda: self._drop(service))

    async def close(self) -> None:
        """End all watches."""
        tasks = [task for held in self._held.values() for task in held.tasks]
        for held in self._held.values():
            held.cancel_end()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._held.clear()

    def _picture(self, service: str) -> tuple[ServiceView, list[asyncio.Task[None]]]:
        picture = ServiceView(self._locations, self._clock)
        tasks = [
            asyncio.create_task(self._follow(service, client, picture, location), name=f"{service} in {location}")
            for location, client in self._locations.items()
        ]
        return picture, tasks

    async def _follow(self, service: str, client: Client, picture: ServiceView, location: str) -> None:
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

    def _tell(self, service: str, picture: ServiceView) -> None:
        moved, picture.moved = picture.moved, asyncio.Event()
        moved.set()
        self.changed(service)

    def _drop(self, service: str) -> None:
        held = self._held.pop(service)
        for task in held.tasks:
            task.cancel()


class _SharedView:
    def __init__(self, made: tuple[ServiceView, list[asyncio.Task[None]]]) -> None:
        self.picture, self.tasks = made
        self.users = 0
        self._ending: asyncio.TimerHandle | None = None

    def schedule_end(self, delay_s: float, end: Callable[[], None]) -> None:
        self._ending = asyncio.get_running_loop().call_later(delay_s, end)

    def cancel_end(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
