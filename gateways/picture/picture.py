"""The instances of the published services by service, and the listeners to their changes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from gateways.picture.hosts import HostResolver
from gateways.picture.knowledge import Coverage, Knowledge, knowledge
from hqclient.discovery import Delta, Discovery, KnownInstance, Origin
from hqclient.discovery.endpoint import Key
from hqclient.errors import HqApiError

log = logging.getLogger(__name__)

Listener = Callable[[Collection[str]], None]
"""Called with the services that changed, from inside the event loop; without any: what is known as a whole changed."""

_NONE: Final[Mapping[Key, KnownInstance]] = MappingProxyType({})


class Condition(Protocol):
    """How good the list is, as the handle of the discovery library says."""

    @property
    def is_known(self) -> bool: ...
    @property
    def heard(self) -> frozenset[str]: ...
    @property
    def unheard(self) -> frozenset[str]: ...
    @property
    def away(self) -> frozenset[str]: ...
    @property
    def age_s(self) -> float: ...
    @property
    def stale(self) -> bool: ...
    @property
    def source(self) -> Origin: ...
    @property
    def doubt(self) -> str: ...
    @property
    def error(self) -> HqApiError | None: ...
    @property
    def resyncs(self) -> int: ...
    async def wait_for_change(self) -> None:
        """Return after the next step, or when something about the watch changed."""
        ...


class Unfollowed:
    """The condition of a picture that does not follow HQ yet."""

    is_known, stale, age_s, resyncs = False, True, float("inf"), 0
    heard = unheard = away = frozenset[str]()
    source, doubt, error = Origin.NONE, "", None

    async def wait_for_change(self) -> None:
        await asyncio.Event().wait()


class EndpointView:
    """All that a gateway knows.

    Attributes:
        coverage: how far the list reaches, as of the last change.
        condition: how good the list is.
        hosts: addresses of hosts that are names.
        changes: number of changes, of the list or of addresses.
    """

    def __init__(self, hosts: HostResolver | None = None) -> None:
        self.coverage = Coverage()
        self.hosts = hosts or HostResolver()
        self.changes = 0
        self._services: dict[str, dict[Key, KnownInstance]] = {}
        self._located: Counter[tuple[str, str]] = Counter()  # instances by service and location
        self.condition: Condition = Unfollowed()
        self._listeners: list[Listener] = []
        self.hosts.on_change(self._on_addresses_changed)

    def __repr__(self) -> str:
        return f"EndpointView({len(self._services)} services, {self.coverage})"

    # --- what is known ------------------------------------------------------------------------------------------------

    @property
    def services(self) -> Collection[str]:
        """Services that have instances, ready or not."""
        return self._services.keys()

    @property
    def missing(self) -> frozenset[str]:
        """Locations whose instances are kept as they last were, or not known at all."""
        return self.condition.away | self.coverage.unheard

    @property
    def may_become_current(self) -> bool:
        """Whether the list is from a file or being read, before HQ was heard."""
        return self.condition.source is Origin.SAVED or isinstance(self.condition, Unfollowed)

    def instances(self, service: str) -> Mapping[Key, KnownInstance]:
        """Instances by cluster and id; empty: none is known, which need not mean that there are none."""
        return self._services.get(service, _NONE)

    def knowledge(self, service: str, location: str = "") -> Knowledge:
        """Decide how to answer about a service, in one location or in all."""
        count = self._located[service, location] if location else len(self.instances(service))
        return knowledge(self.coverage, count, location)

    def ready(self, service: str) -> list[KnownInstance]:
        """Its ready instances in order of their keys."""
        known = self.instances(service)
        return [known[key] for key in sorted(known) if known[key].is_ready]

    # --- changes ------------------------------------------------------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Call `listener`, which must not raise, with every change from now on."""
        self._listeners.append(listener)

    def step(self, delta: Delta) -> None:
        """Apply a step of the list, and notify listeners."""
        touched: set[str] = set()
        for key, (before, after) in delta.changes.items():
            if before is not None:
                self._drop(before.service, key)
                touched.add(before.service)
            if after is not None:
                self._take(key, after)
                touched.add(after.service)
        # Update `coverage` before notifying: a first list and its completeness come together, and listeners that heard
        # that nothing is known of another service must be notified, too.
        self._tell(() if self._look() else touched)

    async def follow(self, discovery: Discovery, services: Iterable[str]) -> None:
        """Follow these services (none: all) until cancelled."""
        async with discovery.instances(services, self.step) as handle, self.hosts:
            await self.watch_condition(handle)

    async def watch_condition(self, condition: Condition) -> None:
        """Keep `coverage`: it can change without a step, e.g. when a location reports that it has nothing."""
        self.condition, told = condition, ""
        while True:
            self._tell((), is_worth=self._look())
            if (error := str(condition.error or "")) != told:
                told = error
                if error:
                    log.warning("HQ cannot be followed (check --hq): %s; trying again", error)
                else:
                    log.info("HQ is followed again")
            await condition.wait_for_change()

    def _look(self) -> bool:
        """Update `coverage`; return whether it changed."""
        seen = Coverage(self.condition.is_known, self.condition.heard, self.condition.unheard)
        before, self.coverage = self.coverage, seen
        return before != seen

    def _take(self, key: Key, instance: KnownInstance) -> None:
        known = self._services.setdefault(instance.service, {})
        self._located[instance.service, key[0]] += key not in known
        known[key] = instance

    def _drop(self, service: str, key: Key) -> None:
        known = self._services.get(service, {})
        if known.pop(key, None) is not None:
            self._located[service, key[0]] -= 1
            if not self._located[service, key[0]]:
                del self._located[service, key[0]]
        if not known:
            self._services.pop(service, None)

    def _on_addresses_changed(self, hosts: Collection[str]) -> None:
        """Notify listeners of the services that have instances on these hosts."""
        touched = {name for name, known in self._services.items() if any(one.host in hosts for one in known.values())}
        self._tell(touched)

    def _tell(self, services: Collection[str], *, is_worth: bool = True) -> None:
        if not is_worth:
            return
        self.changes += 1
        for listener in self._listeners:
            listener(services)
