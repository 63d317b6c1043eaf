"""What the cloud is made of: names, numbers and times."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hqpb.v1 import instance_pb2

ROOT: Final = Path(__file__).resolve().parent.parent.parent

LOCATIONS: Final = ("east", "north", "west")
SERVICES: Final = ("web", "api", "cart", "mail", "auth")
PER_SERVICE: Final = 20  # instances of each service in each location
REPLICAS: Final = 2
FIRST_REVISION: Final = "r1"

LIVENESS_TIMEOUT_S: Final = 10.0
START_S: Final = 60.0  # two cores start fourteen processes at once


def node_name(location: str, number: int) -> str:
    return f"{location}-n{number:02}"


def instances_of(location: str, nodes: int) -> list[instance_pb2.Instance]:
    """All instances that shall run there, spread over so many nodes, each with its first revision wanted READY."""
    return [_instance(location, service, i, nodes) for service in SERVICES for i in range(PER_SERVICE)]


def revision(revision_id: str) -> instance_pb2.InstanceRevision:
    """A revision that is wanted READY."""
    return instance_pb2.InstanceRevision(id=revision_id, target=instance_pb2.REVISION_TARGET_READY)


def _instance(location: str, service: str, index: int, nodes: int) -> instance_pb2.Instance:
    made = instance_pb2.Instance()
    made.meta.id, made.meta.service_id = f"{service}-{location}-{index + 1:02}", service
    made.spec.node_name = node_name(location, index % nodes + 1)
    made.spec.allocation.port.add(name="http", number=20_000 + SERVICES.index(service) * 1000 + index)
    made.spec.revision.append(revision(FIRST_REVISION))
    return made
