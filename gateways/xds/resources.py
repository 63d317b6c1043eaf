"""The four resources of a target, encoded once for all clients in one place.

Listener, routes and cluster of a target are always the same, whether it has instances or not: what changes are its
endpoints. An empty list is only sent once every location has confirmed it; until then none is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import Enum
from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.wrappers_pb2 import UInt32Value

from gateways.picture.addresses import Addressing, EndpointAddress
from gateways.picture.knowledge import Knowledge
from gateways.picture.picture import EndpointView
from gateways.xds.targets import XdsTarget, read_target
from hqclient.discovery.endpoint import DEFAULT_WEIGHT, with_traffic
from xdspb.v1 import xds_pb2 as pb

_PREFIX: Final = "type.googleapis.com/envoy."
_MANAGER: Final = _PREFIX + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER: Final = _PREFIX + "extensions.filters.http.router.v3.Router"
_MOST_KEPT: Final = 100_000
_MOST_RESPONSES: Final = 64  # each may have the endpoints of many services


class ResourceType(Enum):
    """Types of resources, in the order in which changes are sent: so that nothing refers to a resource not yet sent."""

    CLUSTER = _PREFIX + "config.cluster.v3.Cluster"
    ENDPOINTS = _PREFIX + "config.endpoint.v3.ClusterLoadAssignment"
    LISTENER = _PREFIX + "config.listener.v3.Listener"
    ROUTES = _PREFIX + "config.route.v3.RouteConfiguration"


IS_COMPLETE: Final = {
    ResourceType.CLUSTER: True,
    ResourceType.LISTENER: True,
    ResourceType.ENDPOINTS: False,
    ResourceType.ROUTES: False,
}
"""Whether an answer has all resources of its type: what it lacks does not exist."""


class Resources:
    """Makes resources from the picture, and keeps them until their service changes."""

    def __init__(self, picture: EndpointView, addressing: Addressing, began: int = 0) -> None:
        """`began`: a number of this process, for versions."""
        self._picture, self._addressing, self._began = picture, addressing, began
        self._responses: dict[tuple[ResourceType, tuple[bytes, ...]], tuple[str, bytes]] = {}  # of one version
        self._nonces = 0
        self._endpoints: dict[str, dict[tuple[str, str], bytes]] = {}  # by service, by name and place
        self._places: dict[tuple[str, int, int], bytes] = {}
        self._targets: dict[str, XdsTarget | None] = {}
        self._settled: set[str] = set()  # names whose hosts were all looked up once
        picture.listen(self._on_services_changed)

    def target(self, name: str) -> XdsTarget | None:
        """What a name means."""
        if name not in self._targets:
            if len(self._targets) >= _MOST_KEPT:
                self._targets.clear()
            self._targets[name] = read_target(name)
        return self._targets[name]

    def names(self) -> list[str]:
        """The targets for clients that request all: each service at its own port."""
        return sorted(self._picture.services)

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
        return _MADE_OF_NAMES[kind](name) if self.exists(name) else None

    def response(self, kind: ResourceType, resources: Iterable[bytes]) -> tuple[str, bytes]:
        """A DiscoveryResponse of encoded resources, and its nonce: made once for all streams that get the same."""
        content = kind, tuple(resources)
        made = self._responses.get(content)
        if made is None:
            if len(self._responses) >= _MOST_RESPONSES:
                self._responses.clear()
            self._nonces += 1
            made = self._responses[content] = str(self._nonces), self._encoded_response(*content)
        return made

    def _encoded_response(self, kind: ResourceType, resources: Iterable[bytes]) -> bytes:
        version = f"{self._began}.{self._picture.changes}"
        about = pb.DiscoveryResponse(version_info=version, nonce=str(self._nonces), type_url=kind.value)
        return about.SerializeToString() + b"".join([_delimited_field(2, resource) for resource in resources])

    # --- endpoints ----------------------------------------------------------------------------------------------------

    def _assignment(self, name: str, place: str) -> bytes | None:
        target = self.target(name)
        if target is None or self._picture.knowledge(target.service) is Knowledge.UNKNOWN:
            return None
        kept = self._endpoints.setdefault(target.service, {})
        if (name, place) not in kept:
            made = self._make_assignment(name, target, place)
            if made is None:
                return None
            kept[name, place] = made
        return kept[name, place]

    def _make_assignment(self, name: str, target: XdsTarget, place: str) -> bytes | None:
        """None: there are instances whose addresses are unknown, so clients keep what they have."""
        chosen = with_traffic([one for one in self._picture.ready(target.service) if target.fits(one)])
        places = self._addressing.places_with_port(chosen, target.number)
        if places.is_unknown or (places.is_pending and name not in self._settled):
            return None
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
        parts = [_delimited_field(1, name.encode())]
        for location, weight in sorted(by_locality):
            # Priorities start at 0 without gaps: if the own place has no endpoints, all others are the first choice.
            priority = int(has_own and location != own)
            parts.append(_delimited_field(2, self._locality(by_locality[location, weight], priority)))
        return _any(ResourceType.ENDPOINTS.value, b"".join(parts))

    def _locality(self, places: Collection[EndpointAddress], priority: int) -> bytes:
        """Endpoints of one location and one weight."""
        instance = next(iter(places)).instance
        # The usual weight has no part of its own, so that connections stay while others are weighed.
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
            kept = self._places[where] = _delimited_field(2, made.SerializeToString())
        return kept

    def _on_services_changed(self, services: Collection[str]) -> None:
        self._responses.clear()
        if not services:
            self._endpoints.clear()
        for service in services:
            self._endpoints.pop(service, None)
        if len(self._settled) > _MOST_KEPT:
            self._settled.clear()


def _source() -> pb.ConfigSource:
    return pb.ConfigSource(ads=pb.AggregatedConfigSource(), resource_api_version=pb.API_VERSION_V3)


def _listener(name: str) -> bytes:
    router = pb.HttpFilter(name="router", typed_config=Any(type_url=_ROUTER))
    manager = pb.HttpConnectionManager(
        rds=pb.Rds(config_source=_source(), route_config_name=name), http_filters=[router]
    )
    called = pb.ApiListener(api_listener=Any(type_url=_MANAGER, value=manager.SerializeToString()))
    return _any(ResourceType.LISTENER.value, pb.Listener(name=name, api_listener=called).SerializeToString())


def _routes(name: str) -> bytes:
    # The empty prefix must be there: clients refuse a route without one.
    route = pb.Route(match=pb.RouteMatch(prefix=""), route=pb.RouteAction(cluster=name))
    host = pb.VirtualHost(name=name, domains=["*"], routes=[route])
    return _any(ResourceType.ROUTES.value, pb.RouteConfiguration(name=name, virtual_hosts=[host]).SerializeToString())


def _cluster(name: str) -> bytes:
    made = pb.Cluster(
        name=name,
        type=pb.Cluster.DISCOVERY_TYPE_EDS,
        eds_cluster_config=pb.EdsClusterConfig(eds_config=_source(), service_name=name),
    )
    return _any(ResourceType.CLUSTER.value, made.SerializeToString())


_MADE_OF_NAMES: Final[dict[ResourceType, Callable[[str], bytes]]] = {
    ResourceType.LISTENER: _listener,
    ResourceType.ROUTES: _routes,
    ResourceType.CLUSTER: _cluster,
}


def _any(type_url: str, value: bytes) -> bytes:
    return Any(type_url=type_url, value=value).SerializeToString()


def _delimited_field(field: int, value: bytes) -> bytes:
    """A field of bytes, as protobuf encodes it."""
    size, length = bytearray(), len(value)
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return bytes((field << 3 | 2,)) + bytes(size) + value
