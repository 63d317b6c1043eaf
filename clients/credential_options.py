"""The flags of credentials, the same for every command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False)
_OPTIONS = {
    "--ca": "Trust servers' certificates of this CA (PEM), and speak TLS.",
    "--cert": "Client certificate (PEM), read again when it changes, as all of these are.",
    "--key": "Its key (PEM).",
    "--ticket-file": "A signed ticket, see `hqctl ticket`.",
}


def credential_options(function: F) -> F:
    """--ca, --cert, --key, --ticket-file as keyword arguments; empty: not given. Each is also HQ_CA and so on."""
    for name, text in reversed(_OPTIONS.items()):
        envvar = "HQ_" + name[2:].replace("-", "_").upper()
        option = click.option(name, type=_FILE, default="", envvar=envvar, show_envvar=True, help=text)
        function = option(function)
    return function
