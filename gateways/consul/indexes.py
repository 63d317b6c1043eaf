"""X-Consul-Index: a number for each topic, which changes when, and only when, the topic does.

Numbers begin with the start time in milliseconds, followed by ten random bits: after a restart, or at another
gateway, a client's number is not one of ours, and a question whose number is not the current one is answered at
once. The only numbers on which a question waits are those that this gateway gave for the very same thing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from gateways.picture.picture import Picture
from serving.clock import Clock

_BITS: Final = 10
_MOST_REMEMBERED: Final = 100_000

Topic = tuple[str, str]
"""A thing that can be asked about: a kind, and a name or nothing."""

CATALOG: Final[Topic] = ("catalog", "")  # names and tags of services
NODES: Final[Topic] = ("nodes", "")
ALL: Final[Topic] = ("all", "")  # everything about every instance

_Shown = tuple[frozenset[str], frozenset[tuple[str, str, str]]]
_NOTHING_SHOWN: Final[_Shown] = (frozenset(), frozenset())


def of_service(name: str) -> Topic:
    """Everything about the instances of one service."""
    return "service", name


class Indexes:
    """The numbers of one gateway.

    Attributes:
        waiting: how many questions wait.
    """

    def __init__(self, picture: Picture, clock: Clock, salt: int) -> None:
        """`salt`: any number; its last bits distinguish gateways that start in the same millisecond."""
        self._picture, self._clock, self._salt = picture, clock, salt % (1 << _BITS)
        self._last = self._first = self._now()
        self._moved: dict[Topic, int] = {}
        self._shown: dict[str, _Shown] = {}
        self._sleepers: dict[Topic, set[asyncio.Future[None]]] = {}
        self.waiting = 0
        picture.listen(self.changed)

    def current(self, topic: Topic) -> int:
        """The number of a topic; one that never changed has that of the start."""
        return self._moved.get(topic, self._first)

    def changed(self, services: Collection[str]) -> None:
        """Called by the picture: these services changed; none: what is known as a whole."""
        self._last = max(self._last + (1 << _BITS), self._now())
        if not services:
            self._everything()
            return
        for name in services:
            self._move(of_service(name))
            self._compare(name)
        self._move(ALL)

    async def moved(self, topic: Topic, index: int) -> None:
        """Return when the topic's number differs from this one."""
        if self.current(topic) != index:
            return
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.setdefault(topic, set()).add(sleeper)
        self.waiting += 1
        try:
            await sleeper
        finally:
            self.waiting -= 1
            self._forget(topic, sleeper)

    def _now(self) -> int:
        return self._clock.wall_ms() << _BITS | self._salt

    def _everything(self) -> None:
        """Invalidate every index: absences may have become known or unknown."""
        self._moved.clear()
        self._first = self._last
        for topic in [*self._sleepers]:
            self._wake(topic)

    def _compare(self, name: str) -> None:
        """The indexes of service and node lists move only if what they show of a service has changed."""
        tags: set[str] = set()
        nodes: set[tuple[str, str, str]] = set()
        for one in self._picture.instances(name).values():
            tags.update([f"{key}={value}" for key, value in one.labels.items()])
            nodes.add((one.cluster, one.node, one.host))
        shown = frozenset(tags), frozenset(nodes)
        before_tags, before_nodes = self._shown.get(name, _NOTHING_SHOWN)
        if shown[0] != before_tags or bool(shown[1]) != bool(before_nodes):
            self._move(CATALOG)
        if shown[1] != before_nodes:
            self._move(NODES)
        if shown[1]:
            self._shown[name] = shown
        else:
            self._shown.pop(name, None)

    def _move(self, topic: Topic) -> None:
        if len(self._moved) >= _MOST_REMEMBERED:
            self._everything()
        self._moved[topic] = self._last
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
