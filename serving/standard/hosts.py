"""The names by which a server without authentication may be called over plain HTTP/1.1, which browsers speak.

A page of evil.example can let that name mean 127.0.0.1 or an address of the private network (DNS rebinding): its
browser then calls us as if we were the page's own server, and says so in Host.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from serving.rights.patterns import Patterns
from serving.standard.pages import VITAL

_REMEMBERED: Final = 256
_LOOPBACK: Final = ("localhost", "*.localhost")  # no browser asks a DNS server for them


class AllowedHosts:
    def __init__(self, addresses: Iterable[str], patterns: Sequence[str]) -> None:
        """`addresses`: those that the server listens on; `patterns`: further names, without ports; `*` for anything."""
        bound = [host_of(address) for address in addresses if not address.startswith("unix:")]
        self._patterns = Patterns([*_LOOPBACK, *bound, *map(str.lower, patterns)])
        self._is_allowed = lru_cache(_REMEMBERED)(self._matches)

    def allows(self, authority: bytes, target: bytes) -> bool:
        """Whether a request is answered: its Host is allowed, or its path is one that probes and Prometheus read."""
        return self._is_allowed(authority) or target.partition(b"?")[0] in VITAL

    def _matches(self, authority: bytes) -> bool:
        host = host_of(authority.decode("latin-1"))
        if not host:
            return True  # HTTP/1.0; every browser says where it goes
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return host in self._patterns
        return True


def host_of(authority: str) -> str:
    """The host of host[:port], in lower case and without the dot that may end it."""
    host = authority[1:].partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]
    return host.lower().removesuffix(".")
