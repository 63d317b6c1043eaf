"""Resources in a description: what instances request and what they are allocated, with ports by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from descriptions.fields import NAME_RULE, is_name, message_of
from hqcli.shape import kind
from hqpb.v1 import instance_pb2

MAX_PORT = 65_535


def request_of(value: Any, path: str, faults: list[str]) -> instance_pb2.ResourceRequest:
    """`resources`: hq.v1.ResourceRequest with `ports`, a list of names or `name: number` (0: any number)."""
    spelled = _spelled_out(value, path, faults, lowest=0)
    return message_of(spelled, instance_pb2.ResourceRequest(), path, faults)


def allocation_of(
    value: Any, defaults: Mapping[str, Any], path: str, faults: list[str]
) -> instance_pb2.ResourceAllocation:
    """`allocation`: hq.v1.ResourceAllocation with `ports: {name: number}`; missing fields come from the defaults."""
    own = value if isinstance(value, dict) else {}
    if value is not None and not isinstance(value, dict):
        faults.append(f"{path}: must be fields, not {kind(value)}")
    spelled = _spelled_out({**defaults, **own}, path, faults, lowest=1)
    return message_of(spelled, instance_pb2.ResourceAllocation(), path, faults)


def _spelled_out(value: Any, path: str, faults: list[str], lowest: int) -> dict[str, Any]:
    """`ports` by name written as the list `port` that the message has."""
    if not isinstance(value, dict):
        faults.append(f"{path}: must be fields, not {kind(value)}")
        return {}
    spelled = {name: inner for name, inner in value.items() if name != "ports"}
    if "port" in spelled:
        faults.append(f"{path}.port: unknown field; write `ports: {{http: 8080}}`")
        del spelled["port"]
    numbers = _numbers(value.get("ports"), f"{path}.ports", faults, lowest)
    if numbers:
        spelled["port"] = [{"name": name, "number": number} for name, number in numbers.items()]
    return spelled


def _numbers(value: Any, path: str, faults: list[str], lowest: int) -> dict[str, int]:
    if isinstance(value, list) and lowest == 0:
        value = {name if isinstance(name, str) else str(name): 0 for name in value}
    if value is None:
        return {}
    if not isinstance(value, dict):
        faults.append(f"{path}: must be `name: number` lines, not {kind(value)}")
        return {}
    numbers: dict[str, int] = {}
    owners: dict[int, str] = {}
    for name, number in value.items():
        if what := _fault_of(name, number, owners, lowest):
            faults.append(f"{path}.{name}: {what}")
        else:
            numbers[name] = number
            owners[number] = name
    return numbers


def _fault_of(name: Any, number: Any, owners: Mapping[int, str], lowest: int) -> str:
    if not isinstance(name, str) or not is_name(name):
        return f"is not a valid port name: {NAME_RULE}"
    if isinstance(number, bool) or not isinstance(number, int) or not lowest <= number <= MAX_PORT:
        return f"{number!r} is not a valid port: use {lowest} to {MAX_PORT}"
    owner = owners.get(number) if number else None
    return f"{number} is already port {owner}" if owner else ""
