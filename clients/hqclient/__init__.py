"""HQ's client library: calls with fail-over, watches that resume, and discovery of a service's ready endpoints.

    from hqclient import Client, Discovery

    async with Client(["hq-1:7071", "hq-2:7071"]) as client:
        answer = await client.get("web-1")

    async with Discovery(["hq-1:7071", "hq-2:7071"]).service("web", port="http") as web:
        await web.ready(10)
        endpoint = web.pick()

Messages (filters, instances, sources) are those of `hqpb.v1`. A name is imported when it is used first: commands that
only parse their flags do not wait for gRPC.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hqclient.client import Client, ClientSettings
    from hqclient.credential_files import BadCredentials, CredentialFiles
    from hqclient.credentials import Credentials
    from hqclient.discovery import (
        Discovery,
        DiscoverySettings,
        EjectionSettings,
        Endpoint,
        EndpointChanges,
        LeastUsed,
        NoEndpoints,
        NotReady,
        Origin,
        Picker,
        Random,
        RoundRobin,
        Service,
        Services,
        near,
    )
    from hqclient.discovery.balanced import BalancedChannel
    from hqclient.errors import HqApiError, Violation
    from hqclient.reads import STRONG
    from hqclient.retry import RetrySettings, Safety
    from hqclient.watch import Watch, WatchSettings
    from hqclient.watch_items import (
        Bookmark,
        Changes,
        Interrupted,
        Resync,
        Shown,
        SnapshotPart,
        Synced,
        WatchItem,
    )

# gRPC reads this when it is imported, and would write each failed handshake to stderr in its own words (decision 217).
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

_MODULES = {
    "client": ("Client", "ClientSettings"),
    "credential_files": ("BadCredentials", "CredentialFiles"),
    "credentials": ("Credentials",),
    "discovery": (
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
    ),
    "discovery.balanced": ("BalancedChannel",),
    "errors": ("HqApiError", "Violation"),
    "reads": ("STRONG",),
    "retry": ("RetrySettings", "Safety"),
    "watch": ("Watch", "WatchSettings"),
    "watch_items": (
        "Bookmark",
        "Changes",
        "Interrupted",
        "Resync",
        "Shown",
        "SnapshotPart",
        "Synced",
        "WatchItem",
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "STRONG",
    "BadCredentials",
    "BalancedChannel",
    "Bookmark",
    "Changes",
    "Client",
    "ClientSettings",
    "CredentialFiles",
    "Credentials",
    "Discovery",
    "DiscoverySettings",
    "EjectionSettings",
    "Endpoint",
    "EndpointChanges",
    "HqApiError",
    "Interrupted",
    "LeastUsed",
    "NoEndpoints",
    "NotReady",
    "Origin",
    "Picker",
    "Random",
    "Resync",
    "RetrySettings",
    "RoundRobin",
    "Safety",
    "Service",
    "Services",
    "Shown",
    "SnapshotPart",
    "Synced",
    "Violation",
    "Watch",
    "WatchItem",
    "WatchSettings",
    "near",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__]
