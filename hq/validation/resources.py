"""What an instance asks for and what it was given."""

import re
from collections.abc import Sequence

from hq.validation.faults import Faults, shown
from hq.validation.files import MAX_PATH_BYTES
from hq.validation.ids import check_bytes, check_id, check_name
from hqpb.v1.instance_pb2 import (
    DiskAllocation,
    DiskRequest,
    PortAllocation,
    PortRequest,
    ResourceAllocation,
    ResourceLimit,
    ResourceRequest,
)

MAX_CPU_MILLICORES = 10_000_000
MAX_MEMORY_BYTES = 1 << 50
MAX_DISK_BYTES = 1 << 60
MAX_NETWORK_BYTES_PER_SECOND = 1 << 50

is_host = re.compile(r"[!-~]{1,253}").fullmatch


def note_request(faults: Faults, request: ResourceRequest, path: str) -> None:
    note_amounts(faults, request, path)
    note_disks(faults, request.disk, f"{path}.disk")
    note_ports(faults, request.port, f"{path}.port", lowest=0)


def note_allocation(faults: Faults, allocation: ResourceAllocation, path: str) -> None:
    note_amounts(faults, allocation, path)
    note_disks(faults, allocation.disk, f"{path}.disk")
    note_ports(faults, allocation.port, f"{path}.port", lowest=1)
    for index, disk in enumerate(allocation.disk):
        faults.note(check_bytes(disk.path, f"{path}.disk[{index}].path", MAX_PATH_BYTES))
    if allocation.host:
        note_host(faults, allocation.host, f"{path}.host")


def note_host(faults: Faults, host: str, path: str) -> None:
    if not is_host(host):
        faults.add(path, f"{shown(host)} is malformed: use one name or address in ASCII, without a port")


def note_amounts(faults: Faults, amounts: ResourceRequest | ResourceAllocation, path: str) -> None:
    note_limit(faults, amounts, path)
    network = amounts.network_bytes_per_second
    note_amount(faults, network, MAX_NETWORK_BYTES_PER_SECOND, f"{path}.network_bytes_per_second")


def note_limit(faults: Faults, amounts: ResourceRequest | ResourceAllocation | ResourceLimit, path: str) -> None:
    note_amount(faults, amounts.cpu_millicores, MAX_CPU_MILLICORES, f"{path}.cpu_millicores")
    note_amount(faults, amounts.memory_bytes, MAX_MEMORY_BYTES, f"{path}.memory_bytes")


def note_amount(faults: Faults, value: int, limit: int, path: str) -> None:
    """A negative number that was encoded as one arrives as a huge one: the fields are unsigned."""
    if not 0 <= value <= limit:
        faults.add(path, f"{value} is out of range: use 0 to {limit} (mind the unit in the field's name)")


def note_disks(faults: Faults, disks: Sequence[DiskRequest | DiskAllocation], path: str) -> None:
    for index, disk in enumerate(disks):
        faults.note(check_name(disk.name, f"{path}[{index}].name"))
        note_amount(faults, disk.size_bytes, MAX_DISK_BYTES, f"{path}[{index}].size_bytes")
        if disk.storage_class:
            faults.note(check_id(disk.storage_class, f"{path}[{index}].storage_class"))
    faults.note_repeats((f"{path}[{index}].name", disk.name) for index, disk in enumerate(disks))


def note_ports(faults: Faults, ports: Sequence[PortRequest | PortAllocation], path: str, lowest: int) -> None:
    """The number 0, where it is the lowest, stands for any port and may repeat."""
    for index, port in enumerate(ports):
        faults.note(check_name(port.name, f"{path}[{index}].name"))
        if not lowest <= port.number <= 65_535:
            faults.add(f"{path}[{index}].number", f"{port.number} is not a valid port: use {lowest} to 65535")
    faults.note_repeats((f"{path}[{index}].name", port.name) for index, port in enumerate(ports))
    faults.note_repeats((f"{path}[{index}].number", port.number) for index, port in enumerate(ports))
