"""One instance as Consul shows it: a service of a node, with one check: its readiness in HQ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from gateways.picture.addresses import port_of
from hqclient.discovery import KnownInstance

PASSING: Final = "passing"
WARNING: Final = "warning"
CRITICAL: Final = "critical"
_OUTPUTS: Final = {
    PASSING: "ready",
    WARNING: "ready, but takes no new traffic: its weight is 0",
    CRITICAL: "not ready: `hqctl why` shows the reason",
}


def status(instance: KnownInstance, *, has_traffic: bool) -> str:
    """Status of an instance's check. `has_traffic`: its weight is above 0, or every ready instance has weight 0."""
    if not instance.is_ready:
        return CRITICAL
    return PASSING if has_traffic else WARNING


def _weights(instance: KnownInstance) -> dict[str, int]:
    """Consul knows no passing weight of 0."""
    return {"Passing": max(instance.weight, 1), "Warning": min(instance.weight, 1)}


def tags(instance: KnownInstance) -> list[str]:
    """A label is both a tag `key=value` and metadata."""
    return [f"{key}={value}" for key, value in sorted(instance.labels.items())]


def meta(instance: KnownInstance) -> dict[str, str]:
    """Labels, every port by its name, and HQ's fields that have no counterpart in Consul."""
    found = dict(instance.labels)
    found.update({f"hq-port-{name}": str(number) for name, number in sorted(instance.ports.items())})
    if instance.revisions:
        found["hq-revision"] = instance.revisions[0]
    return found


def check(instance: KnownInstance, index: int, status: str) -> dict[str, Any]:
    """Its readiness in HQ, as a check."""
    return {
        "Node": instance.node,
        "CheckID": f"service:{instance.id}",
        "Name": "HQ readiness",
        "Status": status,
        "Notes": "",
        "Output": _OUTPUTS[status],
        "ServiceID": instance.id,
        "ServiceName": instance.service,
        "ServiceTags": tags(instance),
        "Type": "",
        "Definition": {},
        **_indexes(index),
    }


def node(instance: KnownInstance, index: int) -> dict[str, Any]:
    """The node that it is on."""
    return {
        "ID": "",
        "Node": instance.node,
        "Address": instance.host,
        "Datacenter": instance.cluster,
        "TaggedAddresses": {},
        "Meta": {},
        **_indexes(index),
    }


def service(instance: KnownInstance, index: int, preferred: Sequence[str]) -> dict[str, Any]:
    """The instance as a service of its node."""
    return {
        "ID": instance.id,
        "Service": instance.service,
        "Tags": tags(instance),
        "Address": instance.host,
        "TaggedAddresses": {},
        "Meta": meta(instance),
        "Port": port_of(instance, preferred),
        "Weights": _weights(instance),
        "EnableTagOverride": False,
        **_indexes(index),
    }


def entry(instance: KnownInstance, index: int, preferred: Sequence[str], status: str) -> dict[str, Any]:
    """An entry of /v1/health/service."""
    return {
        "Node": node(instance, index),
        "Service": service(instance, index, preferred),
        "Checks": [check(instance, index, status)],
    }


def catalog_entry(instance: KnownInstance, index: int, preferred: Sequence[str]) -> dict[str, Any]:
    """An entry of /v1/catalog/service."""
    return {
        "ID": "",
        "Node": instance.node,
        "Address": instance.host,
        "Datacenter": instance.cluster,
        "TaggedAddresses": {},
        "NodeMeta": {},
        "ServiceID": instance.id,
        "ServiceName": instance.service,
        "ServiceTags": tags(instance),
        "ServiceAddress": instance.host,
        "ServiceTaggedAddresses": {},
        "ServiceMeta": meta(instance),
        "ServicePort": port_of(instance, preferred),
        "ServiceWeights": _weights(instance),
        "ServiceEnableTagOverride": False,
        **_indexes(index),
    }


def encode_json(value: Any) -> bytes:
    """Encode as JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _indexes(index: int) -> dict[str, int]:
    return {"CreateIndex": index, "ModifyIndex": index}
