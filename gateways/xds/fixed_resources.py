"""Listeners, routes and clusters: made of names alone. What HQ knows is in the endpoints; see `resources`.

Every target has a listener without an address, for gRPC's clients, routes and a cluster. Beside them there is one
listener with an address, for an Envoy that says where it listens: its routes lead to all services, by the host's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from gateways.xds.responses import pack_any
from gateways.xds.targets import XdsTarget
from xdspb.v1 import xds_pb2 as pb

_PREFIX: Final = "type.googleapis.com/envoy."
_MANAGER_NAME: Final = "envoy.filters.network.http_connection_manager"
_MANAGER: Final = _PREFIX + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER_NAME: Final = "envoy.filters.http.router"
_ROUTER: Final = _PREFIX + "extensions.filters.http.router.v3.Router"
_HTTP_OPTIONS_NAME: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_HTTP_OPTIONS: Final = f"type.googleapis.com/{_HTTP_OPTIONS_NAME}"
TO_ALL: Final = "/all"  # no target has this name
_RETRIES: Final = 2  # of what reached no server


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


def _source() -> pb.ConfigSource:
    return pb.ConfigSource(ads=pb.AggregatedConfigSource(), resource_api_version=pb.API_VERSION_V3)


def _manager(routes: str) -> Any:
    router = pb.HttpFilter(name=_ROUTER_NAME, typed_config=Any(type_url=_ROUTER))
    made = pb.HttpConnectionManager(
        stat_prefix="hq", rds=pb.Rds(config_source=_source(), route_config_name=routes), http_filters=[router]
    )
    return Any(type_url=_MANAGER, value=made.SerializeToString())


def _listener(name: str, _: XdsTarget) -> bytes:
    made = pb.Listener(name=name, api_listener=pb.ApiListener(api_listener=_manager(name)))
    return pack_any(ResourceType.LISTENER.value, made.SerializeToString())


def _routes(name: str, _: XdsTarget) -> bytes:
    # The empty prefix must be there: clients refuse a route without one.
    route = pb.Route(match=pb.RouteMatch(prefix=""), route=pb.RouteAction(cluster=name))
    host = pb.VirtualHost(name=name, domains=["*"], routes=[route])
    return pack_any(
        ResourceType.ROUTES.value, pb.RouteConfiguration(name=name, virtual_hosts=[host]).SerializeToString()
    )


def _cluster(name: str, target: XdsTarget) -> bytes:
    made = pb.Cluster(
        name=name,
        type=pb.Cluster.DISCOVERY_TYPE_EDS,
        eds_cluster_config=pb.EdsClusterConfig(eds_config=_source(), service_name=name),
    )
    if target.is_http2:
        http2 = pb.ExplicitHttpConfig(http2_protocol_options=pb.Http2ProtocolOptions())
        options = pb.HttpProtocolOptions(explicit_http_config=http2).SerializeToString()
        made.typed_extension_protocol_options[_HTTP_OPTIONS_NAME].CopyFrom(Any(type_url=_HTTP_OPTIONS, value=options))
    return pack_any(ResourceType.CLUSTER.value, made.SerializeToString(deterministic=True))


MADE_OF_NAMES: Final[dict[ResourceType, Callable[[str, XdsTarget], bytes]]] = {
    ResourceType.LISTENER: _listener,
    ResourceType.ROUTES: _routes,
    ResourceType.CLUSTER: _cluster,
}


def encode_listener(host: str, port: int) -> bytes:
    """The listener of an Envoy, with the routes to all services."""
    passed = pb.Filter(name=_MANAGER_NAME, typed_config=_manager(TO_ALL))
    made = pb.Listener(
        name=TO_ALL,
        address=pb.Address(socket_address=pb.SocketAddress(address=host, port_value=port)),
        filter_chains=[pb.FilterChain(filters=[passed])],
    )
    return pack_any(ResourceType.LISTENER.value, made.SerializeToString())


def encode_routes(clusters: Mapping[str, str]) -> bytes:
    """The routes to services, each with its cluster: by `Host: web`, or `web.service.` and any domain."""
    hosts, names = [], set[str]()
    for service in sorted(clusters):
        if service.lower() in names:  # Envoy refuses all routes where two have the same domain, in whichever case
            continue
        names.add(service.lower())
        hosts.append(
            pb.VirtualHost(name=service, domains=[service, f"{service}.service.*"], routes=[_route(clusters[service])])
        )
    made = pb.RouteConfiguration(name=TO_ALL, virtual_hosts=hosts, ignore_port_in_host_matching=True)
    return pack_any(ResourceType.ROUTES.value, made.SerializeToString())


def _route(cluster: str) -> pb.Route:
    # Calls of gRPC say themselves how long they may take, and streams stay open.
    retries = pb.RetryPolicy(retry_on="connect-failure,refused-stream", num_retries=UInt32Value(value=_RETRIES))
    action = pb.RouteAction(cluster=cluster, timeout=Duration(), retry_policy=retries)
    return pb.Route(match=pb.RouteMatch(prefix="/"), route=action)
