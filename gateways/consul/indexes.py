"""X-Consul-Index: a number for each topic, which changes when, and only when, the topic does.

Its last bits are a digest of what HQ says of the topic: the same at every gateway, whatever that one has seen before,
so that a caller may wait at one with the number of another. The bits before them count minutes, so that numbers grow as
clients expect; they carry no meaning. It has 14 digits at most: clients in Lua keep no more of a number (decision 052).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from gateways.picture.picture import EndpointView
from hqclient.discovery import KnownInstance
from hqclient.discovery.endpoint import Key
from serving.clock import Clock

_BITS: Final = 20  # of the digest: one change in a million looks like none to a caller who was not waiting here
_DIGEST: Final = (1 << _BITS) - 1
_FINGERPRINT_BYTES: Final = 5
_MS_PER_MINUTE: Final = 60_000
_MOST_REMEMBERED: Final = 100_000

Topic = tuple[str, str]
"""A thing that can be asked about: a kind, and a name or nothing."""

CATALOG: Final[Topic] = ("catalog", "")  # names and tags of services
NODES: Final[Topic] = ("nodes", "")
ALL: Final[Topic] = ("all", "")  # everything about every instance


class _ShownService(NamedTuple):
    """One service as the topics show it, with a number for each.

    Attributes:
        instances: with their fingerprints.
        total: sum of the fingerprints.
    """

    instances: Mapping[Key, tuple[KnownInstance, int]]
    total: int
    tags: frozenset[str]
    catalog: int
    places: frozenset[tuple[str, str, str]]
    nodes: int


_NOTHING_SHOWN: Final = _ShownService({}, 0, frozenset(), 0, frozenset(), 0)


def service_topic(name: str) -> Topic:
    """Everything about the instances of one service."""
    return "service", name


def _fingerprint(*content: Any) -> int:
    """A number for plain values, the same in every process."""
    digest = hashlib.blake2b(repr(content).encode(), digest_size=_FINGERPRINT_BYTES)
    return int.from_bytes(digest.digest(), "big")


def _fingerprint_of(one: KnownInstance) -> int:
    maps = sorted(one.ports.items()), sorted(one.labels.items())
    return _fingerprint(
        one.key, one.uid, one.service, one.node, one.host, maps, one.revisions, one.is_ready, one.weight
    )


class ConsulIndexes:
    """The numbers of one gateway.

    Attributes:
        waiting: how many questions wait.
    """

    def __init__(self, picture: EndpointView, clock: Clock) -> None:
        self._picture, self._clock = picture, clock
        self._first = self._now()
        self._moved: dict[Topic, int] = {}
        self._shown: dict[str, _ShownService] = {}
        self._sleepers: dict[Topic, set[asyncio.Future[None]]] = {}
        self.waiting = 0
        picture.listen(self.on_services_changed)
        self.on_services_changed(())

    def current(self, topic: Topic) -> int:
        """The number of a topic; a topic that never had anything has the number of the start."""
        return self._moved.get(topic, self._first)

    def is_current(self, topic: Topic, index: int) -> bool:
        """Whether a number, of this gateway or of another one, stands for what the topic is now."""
        return not (index - self.current(topic)) & _DIGEST

    def index_to_answer(self, topic: Topic, index: int) -> int:
        """The number for the answer to a caller who sent `index`; never a smaller one for the same content."""
        current = self.current(topic)
        return max(index, current) if self.is_current(topic, index) else current

    def instance_index(self, instance: KnownInstance) -> int:
        """The number of an instance: another one when anything about it changes."""
        shown = self._shown.get(instance.service, _NOTHING_SHOWN).instances.get(instance.key)
        return shown[1] if shown is not None and shown[0] is instance else _fingerprint_of(instance)

    def on_services_changed(self, services: Collection[str]) -> None:
        """Called by the picture: these services changed; none: what is known as a whole."""
        for name in services or {*self._picture.services, *self._shown}:
            self._compare(name)
        if not services:  # absences may have become known or unknown, too
            for topic in [*self._sleepers]:
                self._wake(topic)

    async def wait_for_change(self, topic: Topic) -> None:
        """Return when the topic's number moves, or what is known as a whole changes."""
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.setdefault(topic, set()).add(sleeper)
        self.waiting += 1
        try:
            await sleeper
        finally:
            self.waiting -= 1
            self._forget(topic, sleeper)

    def _now(self) -> int:
        return self._clock.wall_ms() // _MS_PER_MINUTE << _BITS

    def _compare(self, name: str) -> None:
        """Move the topics that show something else of a service than before."""
        before = self._shown.pop(name, _NOTHING_SHOWN)
        after = self._look(name, before)
        if after.instances:
            self._shown[name] = after
        changes = {
            service_topic(name): after.total - before.total,
            ALL: after.total - before.total,
            CATALOG: after.catalog - before.catalog,
            NODES: after.nodes - before.nodes,
        }
        for topic, change in changes.items():
            if change:
                self._move(topic, change)

    def _look(self, name: str, before: _ShownService) -> _ShownService:
        instances: dict[Key, tuple[KnownInstance, int]] = {}
        tags: set[str] = set()
        places: set[tuple[str, str, str]] = set()
        for key, one in self._picture.instances(name).items():
            shown = before.instances.get(key)
            instances[key] = shown if shown is not None and shown[0] is one else (one, _fingerprint_of(one))
            tags.update([f"{label}={value}" for label, value in one.labels.items()])
            places.add((one.cluster, one.node, one.host))
        if not instances:
            return _NOTHING_SHOWN
        total = sum([number for _, number in instances.values()])
        is_same = bool(before.instances) and tags == before.tags
        catalog = before.catalog if is_same else _fingerprint(name, sorted(tags))
        nodes = before.nodes if places == before.places else sum(_fingerprint(*place) for place in places)
        return _ShownService(instances, total, frozenset(tags), catalog, frozenset(places), nodes)

    def _move(self, topic: Topic, change: int) -> None:
        if len(self._moved) >= _MOST_REMEMBERED:  # drop empty topics: their digest is 0, as that of a new one
            self._first = self._now()
            self._moved = {kept: index for kept, index in self._moved.items() if index & _DIGEST}
        before = self.current(topic)
        after = max(before & ~_DIGEST, self._now()) | ((before + change) & _DIGEST)
        self._moved[topic] = after if after > before else after + _DIGEST + 1
        self._wake(topic)

    def _wake(self, topic: Topic) -> None:
        for sleeper in self._sleepers.pop(topic, ()):
            if not sleeper.done():
                sleeper.set_result(None)

    def _forget(self, topic: Topic, sleeper: asyncio.Future[None]) -> None:
        if sleepers := self._sleepers.get(topic):
            sleepers.discard(sleeper)
            if not sleepers:
                del self._sleepers[topic]
