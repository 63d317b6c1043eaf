"""Which part of an allocation a running process depends on: a change restarts it, and Nanny plans for that."""

from __future__ import annotations

from hqpb.v1.instance_pb2 import ResourceAllocation


def restarting_part(allocation: ResourceAllocation) -> ResourceAllocation:
    """The fields whose change restarts what runs: host, ports, names and paths of disks, limits.

    Labels and weights are no part of an allocation; they never restart anything.
    """
    part = ResourceAllocation(
        host=allocation.host,
        port=allocation.port,
        cpu_millicores=allocation.cpu_millicores,
        memory_bytes=allocation.memory_bytes,
    )
    for disk in allocation.disk:
        part.disk.add(name=disk.name, path=disk.path)
    return part
