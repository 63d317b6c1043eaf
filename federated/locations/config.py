"""The YAML file that lists the locations, read again when it changes."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from serving import yamltext
from serving.durations import duration_s
from serving.errors import ServiceError
from serving.sockets import is_loopback

_NAME: Final = re.compile(r"[A-Za-z0-9._:@-]{1,253}")
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.%a-z]+\]|[^\s:/\[\]]+):([0-9]{1,5})")
_KEYS: Final = frozenset({"replicas", "timeout"})
DEFAULT_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class LocationConfig:
    """One installation.

    Attributes:
        name: its cluster, exactly as its replicas name it (`hq serve --cluster`).
        replicas: host:port of the gRPC of each.
        timeout_s: how long a read waits for this location before it goes on without it.
    """

    name: str
    replicas: tuple[str, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """All locations, by name, in order of their names."""

    locations: Mapping[str, LocationConfig]


class BadGatewayConfig(Exception):
    """The file is not a valid configuration; str() says what is wrong, one fault per line."""


def parse(text: str) -> GatewayConfig:
    """Read the YAML of a configuration.

    Raises:
        BadGatewayConfig: with every fault that was found.
    """
    try:
        loaded = yamltext.load(text)
    except yamltext.BadYaml as error:
        raise BadGatewayConfig(f"is not valid YAML: {error}") from None
    faults: list[str] = []
    listed = _mapping(loaded, "the file", faults)
    faults += [f"{key}: unknown setting; only `locations` is known" for key in listed if key != "locations"]
    entries = _mapping(listed.get("locations"), "locations", faults)
    found = [_location(str(name), entry, faults) for name, entry in entries.items()]
    faults += _shared_addresses(found)
    if faults or not found:
        raise BadGatewayConfig("\n".join(faults) or "locations: name at least one, with its replicas")
    return GatewayConfig({one.name: one for one in sorted(found, key=lambda one: one.name)})


def is_name(name: str) -> bool:
    """Whether this is a valid name of a location."""
    return _NAME.fullmatch(name) is not None


def _location(name: str, entry: Any, faults: list[str]) -> LocationConfig:
    where = f"locations.{name}"
    if not is_name(name):
        faults.append(f"{where}: a name has 1 to 253 letters, digits and ._:@-")
    fields = _mapping(entry, where, faults)
    faults += [f"{where}.{key}: unknown setting" for key in fields if key not in _KEYS]
    replicas = fields.get("replicas")
    if not isinstance(replicas, list) or not replicas:
        faults.append(
            f"{where}.replicas: list the address (HOST:PORT) of each replica, as in: {name}: {{replicas: [HOST:PORT]}}"
        )
        replicas = []
    faults += [f"{where}.replicas: {one!r} is not a valid HOST:PORT" for one in replicas if not _is_address(one)]
    return LocationConfig(name, tuple(map(str, replicas)), _timeout_s(fields.get("timeout", "2s"), where, faults))


def _is_address(value: Any) -> bool:
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return found is not None and 0 < int(found[2]) < 65_536


def _timeout_s(value: Any, where: str, faults: list[str]) -> float:
    try:
        timeout_s = duration_s(str(value), "timeout")
    except ServiceError:
        timeout_s = 0.0
    if not 0.01 <= timeout_s <= 60:
        faults.append(f"{where}.timeout: {value!r} is not a duration from 10ms to 60s, such as 2s")
    return timeout_s


def _shared_addresses(found: list[LocationConfig]) -> Iterator[str]:
    owners: dict[str, str] = {}
    for one in found:
        for address in one.replicas:
            if address in owners:
                yield f"locations.{one.name}.replicas: {address} is listed for {owners[address]} already"
            owners[address] = one.name


def _mapping(value: Any, where: str, faults: list[str]) -> dict[Any, Any]:
    if isinstance(value, dict):
        return value
    faults.append(f"{where}: expected a mapping, not {type(value).__name__}")
    return {}


def check_plain(config: GatewayConfig) -> None:
    """Raises BadGatewayConfig: tokens would cross a network in plain text."""
    told = "forwarded tokens would travel in plain text: give --location-ca for TLS, or --insecure"
    faults = [
        f"locations.{one.name}.replicas: {address} is not on this machine, and {told}"
        for one in config.locations.values()
        for address in one.replicas
        if not is_loopback(address)
    ]
    if faults:
        raise BadGatewayConfig("\n".join(faults))


log = logging.getLogger(__name__)


class ConfigFile:
    """The file, polled for changes.

    Attributes:
        current: what is in force.
        fault: why the current file is not in force; empty: it is.
    """

    def __init__(self, path: Path, check: Callable[[GatewayConfig], None] = lambda _: None) -> None:
        """`check` raises BadGatewayConfig for what must not come into force. Raises that, or OSError for the file."""
        self._path, self._check = path, check
        self._text = path.read_text(encoding="utf-8")
        self.current = self._checked_config(self._text)
        self.fault = ""

    def reread(self) -> bool:
        """Return whether `current` changed. A broken or missing file changes nothing but `fault`."""
        try:
            text = self._path.read_text(encoding="utf-8")
            if text == self._text:
                return False
            self._text = text
            changed = self._checked_config(text)
        except (BadGatewayConfig, OSError, UnicodeDecodeError) as error:
            if not isinstance(error, BadGatewayConfig):
                self._text = ""  # the next readable content counts as a change
            self._blame("; ".join(line.strip() for line in str(error).splitlines()))
            return False
        self.fault = ""
        if changed == self.current:
            return False
        self.current = changed
        log.info("%s is in force: %s", self._path, ", ".join(changed.locations))
        return True

    def _checked_config(self, text: str) -> GatewayConfig:
        config = parse(text)
        self._check(config)
        return config

    def _blame(self, fault: str) -> None:
        if fault != self.fault:
            log.error("cannot load %s, its previous contents remain in force: %s", self._path, fault)
        self.fault = fault
