"""The four resources of a target, encoded once for all clients in one place.

Listener, routes and cluster of a target are always the same, whether it has instances or not: what changes are its
endpoints. An empty list is only sent once every location has confirmed it; until then none is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from google.protobuf.wrappers_pb2 import UInt32Value

from gateways.picture.addresses import Addressing, EndpointAddress
from gateways.picture.knowledge import Knowledge
from gateways.picture.picture import EndpointView
from gateways.xds.fixed_resources import MADE_OF_NAMES, ResourceType, encode_routes
from gateways.xds.listing import XdsListing
from gateways.xds.responses import XdsResponses, delimited_field, pack_any
from gateways.xds.targets import XdsTarget, read_target
from hqclient.discovery.endpoint import DEFAULT_WEIGHT, with_traffic
from xdspb.v1 import xds_pb2 as pb

_MOST_KEPT: Final = 100_000
_MOST_TARGETS: Final = 20_000  # some kilobytes each; and two for each service, as one stream may want


class Resources:
    """Makes resources from the picture, and keeps them until their service changes."""

    def __init__(self, picture: EndpointView, addressing: Addressing, began: int = 0) -> None:
        """`began`: a number of this process, for versions."""
        self._picture, self._addressing, self._began = picture, addressing, began
        self._responses = XdsResponses()
        self._listing = XdsListing(picture)
        self._endpoints: dict[str, dict[tuple[str, str], bytes]] = {}  # by service, by name and place
        self._kept_endpoints = 0  # names and places, of all services
        self._places: dict[tuple[str, int, int], bytes] = {}
        self._targets: dict[str, XdsTarget | None] = {}
        self._settled: set[str] = set()  # names whose hosts were all looked up once
        picture.listen(self._on_services_changed)

    def target(self, name: str) -> XdsTarget | None:
        """Parse the name of a resource; None: it is not well formed."""
        if name not in self._targets:
            if len(self._targets) >= _MOST_TARGETS + 2 * self.count:
                self._targets.clear()
            self._targets[name] = read_target(name)
        return self._targets[name]

    @property
    def is_known(self) -> bool:
        """Whether there is a list, even from a file: clients that have nothing can be given what is in it."""
        return self._picture.coverage.is_known

    @property
    def is_complete(self) -> bool:
        """Whether every location has said what it has: what is not listed does not exist."""
        return self._picture.coverage.is_complete

    @property
    def count(self) -> int:
        """How many services there are."""
        return len(self._picture.services)

    @property
    def listed(self) -> Collection[str]:
        """The targets for clients that request all: another object whenever they, or the routes to them, change."""
        return self._listing.names

    def routes_to_all(self, may_read: Callable[[str], bool]) -> bytes:
        """The routes of an Envoy to all services that it may read."""
        clusters = self._listing.clusters
        return encode_routes({service: name for service, name in clusters.items() if may_read(service)})

    def exists(self, name: str) -> bool:
        """Every valid name of a target exists, with or without endpoints.

        Clients wait 15 s for a listener that they never had, whatever the answer is. For a target without
        endpoints calls fail at once, and it gets endpoints as soon as the service is created.
        """
        return self.target(name) is not None

    def encoded_resource(self, kind: ResourceType, name: str, place: str) -> bytes | None:
        """A resource as google.protobuf.Any, for clients of one place; None: nothing is known about it."""
        if kind is ResourceType.ENDPOINTS:
            return self._assignment(name, place)
        return MADE_OF_NAMES[kind](name, target) if (target := self.target(name)) else None

    def version(self, resource: bytes) -> str:
        """Version of one encoded resource."""
        return self._responses.version(resource)

    def response(
        self, kind: ResourceType, resources: Mapping[str, bytes], removed: Sequence[str] | None = None
    ) -> tuple[str, bytes]:
        """A nonce and an answer with resources by name; if `removed` is given, even empty, in the delta form."""
        return self._responses.response(kind.value, f"{self._began}.{self._picture.changes}", resources, removed)

    # --- endpoints ----------------------------------------------------------------------------------------------------

    def _assignment(self, name: str, place: str) -> bytes | None:
        target = self.target(name)
        if target is None or self._picture.knowledge(target.service) is Knowledge.UNKNOWN:
            return None
        made = self._endpoints.get(target.service, {}).get((name, place))
        if made is None and (made := self._make_assignment(name, target, place)) is not None:
            if self._kept_endpoints >= _MOST_KEPT:  # no change drops those of services that do not exist
                self._endpoints.clear()
                self._kept_endpoints = 0
            self._endpoints.setdefault(target.service, {})[name, place] = made
            self._kept_endpoints += 1
        return made

    def _make_assignment(self, name: str, target: XdsTarget, place: str) -> bytes | None:
        """None: there are instances whose addresses are unknown, so clients keep what they have."""
        chosen = with_traffic([one for one in self._picture.ready(target.service) if target.fits(one)])
        places = self._addressing.places_with_port(chosen, target.number)
        if places.is_unknown or (places.is_pending and name not in self._settled):
            return None
        if len(self._settled) >= _MOST_KEPT:
            self._settled.clear()
        self._settled.add(name)
        first: dict[tuple[str, str], EndpointAddress] = {}
        for found in places.found:
            first.setdefault(found.instance.key, found)
        return self._encode_assignment(name, first.values(), place)

    def _encode_assignment(self, name: str, places: Iterable[EndpointAddress], own: str) -> bytes:
        # One locality for each weight: gRPC's clients do not look at weights of single endpoints.
        by_locality: dict[tuple[str, int], list[EndpointAddress]] = {}
        for place in places:
            by_locality.setdefault((place.instance.cluster, place.instance.weight), []).append(place)
        has_own = any(location == own for location, _ in by_locality)
        parts = [delimited_field(1, name.encode())]
        for location, weight in sorted(by_locality):
            # Priorities start at 0 without gaps: if the own place has no endpoints, all others are the first choice.
            priority = int(has_own and location != own)
            parts.append(delimited_field(2, self._locality(by_locality[location, weight], priority)))
        return pack_any(ResourceType.ENDPOINTS.value, b"".join(parts))

    def _locality(self, places: Collection[EndpointAddress], priority: int) -> bytes:
        """Endpoints of one location and one weight."""
        instance = next(iter(places)).instance
        # Endpoints of the usual weight have no sub-zone, so that their connections stay when others get a weight.
        part = "" if instance.weight in (0, DEFAULT_WEIGHT) else f"weight-{instance.weight}"
        about = pb.LocalityLbEndpoints(
            locality=pb.Locality(zone=instance.cluster, sub_zone=part),
            load_balancing_weight=UInt32Value(value=len(places) * (instance.weight or 1)),
            priority=priority,
        )
        return about.SerializeToString() + b"".join([self._endpoint(place) for place in places])

    def _endpoint(self, place: EndpointAddress) -> bytes:
        """One endpoint as a field of its locality: cached, as one of ten thousand may change."""
        weight = place.instance.weight or 1
        where = place.address, place.port, weight
        kept = self._places.get(where)
        if kept is None:
            if len(self._places) >= _MOST_KEPT:
                self._places.clear()
            address = pb.Address(socket_address=pb.SocketAddress(address=place.address, port_value=place.port))
            made = pb.LbEndpoint(endpoint=pb.Endpoint(address=address), load_balancing_weight=UInt32Value(value=weight))
            kept = self._places[where] = delimited_field(2, made.SerializeToString())
        return kept

    def _on_services_changed(self, services: Collection[str]) -> None:
        self._responses.clear()
        if not services:
            self._endpoints.clear()
            self._kept_endpoints = 0
        for service in services:
            self._kept_endpoints -= len(self._endpoints.pop(service, ()))
