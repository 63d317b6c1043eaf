"""Which port of an instance is meant where nobody names one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hqclient.discovery import KnownInstance

PREFERRED: Final = ("grpc", "http")


def port_of(instance: KnownInstance, preferred: Sequence[str] = PREFERRED) -> int:
    """The first of these that it has, else its only one; 0: none, or several and nothing tells which."""
    for name in preferred:
        if name in instance.ports:
            return instance.ports[name]
    return next(iter(instance.ports.values())) if len(instance.ports) == 1 else 0
