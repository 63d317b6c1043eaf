"""Addresses of servers as people write them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

DEFAULT_PORT = 7071
DEFAULT_SERVER = f"127.0.0.1:{DEFAULT_PORT}"


def addresses_in(given: Iterable[str]) -> tuple[str, ...]:
    """`host:port` of each server; a comma separates several, the port may be left out. Raises ValueError."""
    return tuple(address_of(part) for text in given for part in text.split(",") if part.strip())


def address_of(text: str) -> str:
    """`host:port`; the port may be left out. Raises ValueError."""
    text = text.strip()
    if "://" in text:
        raise ValueError(f"{text}: give HOST:PORT, without a scheme")
    host, colon, port = text.rpartition(":")
    if colon and ":" in host and not host.endswith("]"):
        return f"[{text}]:{DEFAULT_PORT}"  # a bare IPv6 address
    if not colon or "]" in port:
        return f"{text}:{DEFAULT_PORT}"
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"{text}: {port!r} is not a valid port; give HOST:PORT, e.g. {DEFAULT_SERVER}")
    return text
