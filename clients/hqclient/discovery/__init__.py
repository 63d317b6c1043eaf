"""Where the ready instances of a service are: kept up to date by a watch, available even when HQ is away.

    async with Discovery(["hq-1:7071", "hq-2:7071"]).service("web", port="http") as web:
        await web.ready(10)
        with web.using() as endpoint:
            await ask(endpoint.host, endpoint.port)

Not included: connections (see `balanced` for gRPC, examples/discovery for httpx) and retries.
"""

from hqclient.discovery.discovery import Discovery, DiscoverySettings
from hqclient.discovery.endpoint import Endpoint, EndpointChanges, KnownInstance, NoEndpoints, NotReady
from hqclient.discovery.instances import FollowedInstances
from hqclient.discovery.picking import EjectionSettings, LeastUsed, Picker, Random, RoundRobin, near
from hqclient.discovery.roster import Delta, Origin
from hqclient.discovery.service import Service, Services

__all__ = [
    "Delta",
    "Discovery",
    "DiscoverySettings",
    "EjectionSettings",
    "Endpoint",
    "EndpointChanges",
    "FollowedInstances",
    "KnownInstance",
    "LeastUsed",
    "NoEndpoints",
    "NotReady",
    "Origin",
    "Picker",
    "Random",
    "RoundRobin",
    "Service",
    "Services",
    "near",
]
