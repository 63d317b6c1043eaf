"""Names of resources: SERVICE[/PORT][;KEY=VALUE]... as in `xds:///web/grpc;zone=east`. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from gateways.picture.addresses import port_of
from hqclient.discovery import KnownInstance

PROTOCOL: Final = "app-protocol"
_MOST_CONDITIONS: Final = 20  # valid names are cached, even those that a caller made up: so their size is limited
HTTP2: Final = frozenset({"grpc", "h2", "h2c", "http2"})
"""Names of ports, and values of the label `app-protocol`, that say that servers speak HTTP/2."""


@dataclass(frozen=True, slots=True)
class XdsTarget:
    """Some instances of a service, at a port.

    Attributes:
        port: by name; empty: `grpc`, else `http`, else the only one.
        labels: instances with all of these only.
    """

    service: str
    port: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def is_http2(self) -> bool:
        """Whether its name says that servers speak HTTP/2. It must not depend on instances, which may be unknown."""
        return self.port in HTTP2 or any(key == PROTOCOL and value in HTTP2 for key, value in self.labels)

    def fits(self, instance: KnownInstance) -> bool:
        """Whether an instance is one of the target's."""
        return all(instance.labels.get(key) == value for key, value in self.labels)

    def number(self, instance: KnownInstance) -> int:
        """The port of an instance; 0: it has no suitable one."""
        return instance.ports.get(self.port, 0) if self.port else port_of(instance)


def read_target(name: str) -> XdsTarget | None:
    """The target of a resource's name; None: no service can have it."""
    head, *conditions = unquote(name).split(";")
    service, _, port = head.partition("/")
    if len(conditions) > _MOST_CONDITIONS:
        return None
    pairs = [condition.partition("=") for condition in conditions]
    if not service or "/" in port or any(not key or not sign for key, sign, _ in pairs):
        return None
    return XdsTarget(service, port, tuple((key, value) for key, _, value in pairs))


def http2_name(instance: KnownInstance) -> str:
    """The target at an instance's HTTP/2 port; empty: neither its label nor the port's name says HTTP/2."""
    if (value := instance.labels.get(PROTOCOL, "")) in HTTP2:
        return f"{instance.service};{PROTOCOL}={value}"
    number = port_of(instance)
    ports = [name for name, port in sorted(instance.ports.items()) if port == number and name in HTTP2]
    return f"{instance.service}/{ports[0]}" if ports else ""
