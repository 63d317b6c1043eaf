"""Values of a host that executors fill in: each matches a grammar, so none is an option, a path or another host."""

from __future__ import annotations

import re
from typing import Final

from walle.executors.port import Unfit
from walle.outgoing.destinations import BadAddress, Destinations, not_listed, parse_address
from walle.tables import NAMES
from wallepb.v1.host_pb2 import Host

FIELDS: Final = ("host", "bmc", "inventory", "operation", "id")
_FIELD: Final = re.compile(r"\{([a-z_]+)\}")
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}")


def fields_in(template: str) -> list[str]:
    """The fields that a template names. Raises ValueError: it names an unknown one."""
    found: list[str] = _FIELD.findall(template)
    if unknown := [name for name in found if name not in FIELDS]:
        raise ValueError(f"{{{unknown[0]}}} is not one of {', '.join(f'{{{name}}}' for name in FIELDS)}")
    return found


def field_of(argument: str) -> str:
    """The field that an argument stands for; empty: for itself. Raises ValueError: a field is only a part of it."""
    found = fields_in(argument)
    if found and argument != f"{{{found[0]}}}":
        raise ValueError(f"{{{found[0]}}} must be an argument of its own, not a part of {argument!r}")
    return found[0] if found else ""


def check_argument(number: int, argument: str) -> None:
    """Raises ValueError: the argument of this number, from 0, is a host's value where none belongs."""
    if field_of(argument) and not number:
        raise ValueError("the program must not be a value of the host")


def fill(template: str, host: Host) -> str:
    """The template with the host's values. Raises Unfit: one of them is missing, or not what it should be."""
    return _FIELD.sub(lambda found: value_of(found[1], host), template)


def value_of(field: str, host: Host) -> str:
    """Raises Unfit."""
    if field == "bmc":
        return _bmc(host)
    values = {"host": host.name, "id": host.operation.id, "inventory": str(host.inventory or "")}
    value = NAMES[host.operation.kind] if field == "operation" else values[field]
    if not _WORD.fullmatch(value):
        raise Unfit(f"host {host.name}: {field} is {f'{value[:80]!r}, which is not valid' if value else 'missing'}")
    return value


def listed_bmc(host: Host, destinations: Destinations) -> str:
    """The host's management controller. Raises Unfit: no entry of the configuration covers it."""
    address = value_of("bmc", host)
    if destinations.controller_at(parse_address(address), host.name) is None:
        raise Unfit(f"host {host.name}: {address} is not called: {not_listed('redfish')}")
    return address


def _bmc(host: Host) -> str:
    if not host.bmc:
        raise Unfit(f"host {host.name} has no bmc in Wall-E: add it")
    try:
        return str(parse_address(host.bmc))
    except BadAddress as error:
        raise Unfit(f"host {host.name}: bmc: {error}") from error
