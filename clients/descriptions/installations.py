"""Installations by name, with the addresses of their replicas. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from descriptions.fields import is_name
from hqcli.options import DEFAULT_SERVER, address_of

DEFAULT_NAME = "default"

Installations = Mapping[str, tuple[str, ...]]


def addresses_of(value: Any, path: str, faults: list[str]) -> dict[str, tuple[str, ...]]:
    """`name: [host:port, ...]` lines, as in a description or a configuration file."""
    if not isinstance(value, dict):
        faults.append(f"{path}: must be `name: [host:port, ...]` lines")
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for name, servers in value.items():
        listed = servers.split(",") if isinstance(servers, str) else servers
        try:
            found[_checked_name(str(name))] = _addresses(listed)
        except ValueError as error:
            faults.append(f"{path}.{name}: {error}")
    return found


def parse_option(text: str) -> tuple[str, tuple[str, ...]]:
    """`name=host:port,host:port`. Raises ValueError."""
    name, equals, servers = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r}: write NAME=HOST:PORT,HOST:PORT")
    return _checked_name(name.strip()), _addresses(servers.split(","))


def merge_installations(*by_precedence: Installations, fallback: str = "") -> dict[str, tuple[str, ...]]:
    """The first source that knows each name wins; without any source, `default` at the fallback's addresses."""
    found: dict[str, tuple[str, ...]] = {}
    for source in by_precedence:
        for name, addresses in source.items():
            found.setdefault(name, addresses)
    if not found:
        found[DEFAULT_NAME] = _addresses((fallback or DEFAULT_SERVER).split(","))
    return found


def only(installations: Installations, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The installations with these names, or all if no name is given. Raises ValueError."""
    wanted = list(names)
    for name in wanted:
        if name not in installations:
            raise ValueError(f"unknown installation {name}; known: {', '.join(installations)}")
    return {name: addresses for name, addresses in installations.items() if not wanted or name in wanted}


def _checked_name(name: str) -> str:
    if not is_name(name):
        raise ValueError(f"{name!r} is not a valid installation name: use letters, digits and ._-")
    return name


def _addresses(listed: Any) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise ValueError("must be a list of host:port texts")
    addresses = tuple(address_of(one) for one in listed if one.strip())
    if not addresses:
        raise ValueError("has no server: give at least one HOST:PORT")
    return addresses
