"""The servers that the command line names."""

from __future__ import annotations

import click

from hqcli.connection import addresses_in


def addresses(given: tuple[str, ...]) -> tuple[str, ...]:
    """`host:port` of each server; a comma separates several, the port may be left out."""
    try:
        named = addresses_in(given)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if not named:
        raise click.UsageError("no server given: use --server HOST:PORT or set HQ_SERVER")
    return named
