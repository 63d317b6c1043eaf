"""Where the ready instances of a service are: kept by a watch, at hand even when HQ is away.

    async with Discovery(["hq-1:7071", "hq-2:7071"]).service("web", port="http") as web:
        await web.ready(10)
        with web.using() as endpoint:
            await ask(endpoint.host, endpoint.port)

What is not here: connections (see `balanced` for gRPC, examples/discovery for httpx) and retries.
"""

from clients.discovery.changes import EndpointChanges
from clients.discovery.discovery import Discovery, DiscoverySettings
from clients.discovery.ejection import EjectionSettings
from clients.discovery.endpoint import Endpoint
from clients.discovery.errors import NoEndpoints, NotReady
from clients.discovery.picking import LeastUsed, Picker, Random, RoundRobin, near
from clients.discovery.roster import Origin
from clients.discovery.service import Service
from clients.discovery.services import Services

__all__ = [
    "Discovery",
    "DiscoverySettings",
    "EjectionSettings",
    "Endpoint",
    "EndpointChanges",
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
