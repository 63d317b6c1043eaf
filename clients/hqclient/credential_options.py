"""The flags of credentials, the same for every command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from hqclient.credential_files import CredentialFiles

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False)
_HELP = {
    "ca": "Use TLS and trust server certificates of this CA (PEM).",
    "cert": "Client certificate (PEM). All these files are reloaded when they change.",
    "key": "Its key (PEM).",
    "ticket_file": "File with a signed token (JWT), see `hqctl ticket`.",
}
FILES = tuple(_HELP)


def credential_options(function: F) -> F:
    """--ca, --cert, --key and --ticket-file (or HQ_CA, ...) as one argument `credentials`, a CredentialFiles."""
    return _options(function, from_environment=True)


def credential_flags(function: F) -> F:
    """The same, but the environment is left to the command."""
    return _options(function, from_environment=False)


def _options(function: F, *, from_environment: bool) -> F:

    @functools.wraps(function)
    def command(*args: Any, ca: str, cert: str, key: str, ticket_file: str, **kwargs: Any) -> Any:
        return function(*args, credentials=CredentialFiles(ca, cert, key, ticket_file), **kwargs)

    made: Any = command
    for name in reversed(FILES):
        flag, envvar = "--" + name.replace("_", "-"), f"HQ_{name.upper()}" if from_environment else None
        made = click.option(flag, name, type=_FILE, default="", metavar="FILE", envvar=envvar, help=_HELP[name])(made)
    return cast("F", made)
