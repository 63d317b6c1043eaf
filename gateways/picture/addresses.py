"""Where the ready instances of a service are reached: each address and port once, plus what was left out and why."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from gateways.picture.hosts import HostResolver
from hqclient.discovery import KnownInstance

log = logging.getLogger(__name__)

_MOST_LOGGED: Final = 10_000
PREFERRED: Final = ("grpc", "http")


class LeftOut(Enum):
    """Why a ready instance is left out of an answer."""

    NO_PORT = "no port of that name"
    UNRESOLVED = "its host has no address"
    DUPLICATE = "another instance has the same address and port"


class EndpointAddress(NamedTuple):
    """One address of an instance, and a port (0: unspecified)."""

    address: str
    port: int
    instance: KnownInstance


@dataclass(slots=True)
class EndpointAddresses:
    """The addresses of some instances.

    Attributes:
        found: in order of the instances.
        is_pending: some host is being looked up for the first time: there may be more in a moment.
    """

    found: list[EndpointAddress] = field(default_factory=list)
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    is_pending: bool = False

    @property
    def is_unknown(self) -> bool:
        """Whether there are instances, and no address of any: that must not become an empty answer."""
        return not self.found and (self.is_pending or bool(self.left_out[LeftOut.UNRESOLVED]))


class Addressing:
    """Finds the places of instances; logs each one that is left out once.

    Attributes:
        left_out: how many were, by reason, each counted once per instance.
    """

    def __init__(self, hosts: HostResolver) -> None:
        self._hosts = hosts
        self.left_out: Counter[LeftOut] = Counter()
        self._logged: set[tuple[str, str, int, LeftOut]] = set()

    def places(self, instances: Iterable[KnownInstance], port: str | None = None) -> EndpointAddresses:
        """Every address of each instance, with the number of a named port; None: without a port."""
        if port is None:
            return self._all(instances, lambda _: 0)
        return self.places_with_port(instances, lambda instance: instance.ports.get(port, 0))

    def places_with_port(
        self, instances: Iterable[KnownInstance], number: Callable[[KnownInstance], int]
    ) -> EndpointAddresses:
        """As `places`, with a port that is chosen by instance; 0: no suitable port, so the instance is left out."""
        return self._all(instances, number, must_have_port=True)

    def _all(
        self,
        instances: Iterable[KnownInstance],
        number: Callable[[KnownInstance], int],
        *,
        must_have_port: bool = False,
    ) -> EndpointAddresses:
        places, seen = EndpointAddresses(), set[tuple[str, int]]()
        for instance in instances:
            port = number(instance)
            if must_have_port and not port:
                self._leave_out(places, instance, LeftOut.NO_PORT)
            else:
                self._place(places, seen, instance, port)
        return places

    def _place(
        self, places: EndpointAddresses, seen: set[tuple[str, int]], instance: KnownInstance, number: int
    ) -> None:
        addresses = self._hosts.addresses(instance.host, instance.service)
        if addresses is None:
            places.is_pending = True
            return
        if not addresses:
            self._leave_out(places, instance, LeftOut.UNRESOLVED)
        for address in addresses:
            if (address, number) not in seen:
                seen.add((address, number))
                places.found.append(EndpointAddress(address, number, instance))
            elif number:  # many instances may share a node's address, but not a port
                self._leave_out(places, instance, LeftOut.DUPLICATE)

    def _leave_out(self, places: EndpointAddresses, instance: KnownInstance, why: LeftOut) -> None:
        places.left_out[why] += 1
        known = (instance.cluster, instance.id, instance.uid, why)
        if known in self._logged:
            return
        if len(self._logged) >= _MOST_LOGGED:
            self._logged.clear()
        self._logged.add(known)
        self.left_out[why] += 1
        log.warning("instance %s of %s is left out: %s", instance.id, instance.service, why.value)


def port_of(instance: KnownInstance, preferred: Sequence[str] = PREFERRED) -> int:
    """An instance's first preferred port, else its only one; 0: none, or several without a preferred one."""
    for name in preferred:
        if name in instance.ports:
            return instance.ports[name]
    return next(iter(instance.ports.values())) if len(instance.ports) == 1 else 0
