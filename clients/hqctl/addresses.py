"""Addresses of servers as people write them. No I/O."""

from __future__ import annotations

import click

DEFAULT_PORT = 7071


def addresses(given: tuple[str, ...]) -> tuple[str, ...]:
    """`host:port` of each server; a comma separates several, the port may be left out."""
    named = [part.strip() for text in given for part in text.split(",") if part.strip()]
    if not named:
        raise click.UsageError("no server is named: give --server HOST:PORT or set HQ_SERVER")
    return tuple(_with_port(address) for address in named)


def _with_port(address: str) -> str:
    if "://" in address:
        raise click.UsageError(f"{address}: give HOST:PORT, without a scheme")
    host, colon, port = address.rpartition(":")
    if colon and not host.endswith("]") and ":" in host:
        return f"[{address}]:{DEFAULT_PORT}"  # a bare IPv6 address
    if colon and "]" not in port:
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise click.UsageError(f"{address}: {port!r} is no port; give HOST:PORT, e.g. 127.0.0.1:{DEFAULT_PORT}")
        return address
    return f"{address}:{DEFAULT_PORT}"
