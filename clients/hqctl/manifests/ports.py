"""Ports allocated to two instances on one node. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hqpb.v1 import instance_pb2


@dataclass(frozen=True, slots=True)
class Clash:
    """One port number on a node, and the instances that it was allocated to."""

    node: str
    port: int
    ids: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.ids)


def nodes_with_ports(instances: Iterable[instance_pb2.Instance]) -> list[str]:
    """Nodes on which these instances have ports."""
    return sorted({i.spec.node_name for i in instances if i.spec.node_name and _own_ports(i)})


def clashes(instances: Iterable[instance_pb2.Instance]) -> list[Clash]:
    """Ports allocated twice on a node, by node and port."""
    holders: dict[tuple[str, int], list[str]] = defaultdict(list)
    for instance in instances:
        for number in _own_ports(instance):
            holders[instance.spec.node_name, number].append(instance.meta.id)
    return [Clash(node, number, tuple(ids)) for (node, number), ids in sorted(holders.items()) if len(ids) > 1]


def _own_ports(instance: instance_pb2.Instance) -> list[int]:
    """Ports on the node itself. An instance with its own address uses none of them."""
    host = instance.spec.allocation.host
    if host and host != instance.spec.node_name:
        return []
    return [port.number for port in instance.spec.allocation.port]
