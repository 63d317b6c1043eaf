"""Options that commands share: servers, credential files, time spans."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import click

from hqcli.readable import parse_span
from hqclient.credential_files import CredentialFiles

DEFAULT_PORT = 7071
DEFAULT_SERVER = f"127.0.0.1:{DEFAULT_PORT}"


def addresses_in(given: Iterable[str]) -> tuple[str, ...]:
    """`host:port` of each server; a comma separates several, the port may be left out. Raises ValueError."""
    return tuple(address_of(part) for text in given for part in text.split(",") if part.strip())


def address_of(text: str, default_port: int = DEFAULT_PORT) -> str:
    """`host:port`, of which the port may be left out, or `unix:PATH`. Raises ValueError."""
    text = text.strip()
    if text.startswith("unix:"):
        return text
    if "://" in text:
        raise ValueError(f"{text}: give HOST:PORT, without a scheme")
    host, colon, port = text.rpartition(":")
    if colon and ":" in host and not host.endswith("]"):
        return f"[{text}]:{default_port}"  # a bare IPv6 address
    if not colon or "]" in port:
        return f"{text}:{default_port}"
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"{text}: {port!r} is not a valid port; give HOST:PORT, e.g. 127.0.0.1:{default_port}")
    return text


F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False)
_HELP = {
    "ca": "Use TLS and trust server certificates of this CA (PEM). The credential files are reloaded when they change.",
    "cert": "Client certificate (PEM).",
    "key": "Its key (PEM).",
    "token_file": "File with a signed token (JWT), see `hqctl token sign`.",
}
FILES = tuple(_HELP)


def gone_option(*names: str, instead: str, is_flag: bool = False) -> Callable[[F], F]:
    """Options of the last release: the error for each says what to write now."""

    def refuse(_: click.Context, option: click.Parameter, value: object) -> None:
        if value:
            raise click.UsageError(f"{option.opts[0]} is gone: {instead}")

    def decorate(function: F) -> F:
        for name in names:
            function = click.option(
                name, expose_value=False, hidden=True, is_eager=True, is_flag=is_flag, callback=refuse
            )(function)
        return function

    return decorate


def credential_options(function: F) -> F:
    """--ca, --cert, --key and --token-file (or HQ_CA, ...) as one argument `credentials`, a CredentialFiles."""
    return _options(function, from_environment=True)


def credential_flags(function: F) -> F:
    """As `credential_options`, but the environment is not read: that is left to the command."""
    return _options(function, from_environment=False)


def _options(function: F, *, from_environment: bool) -> F:

    @functools.wraps(function)
    def command(*args: Any, ca: str, cert: str, key: str, token_file: str, **kwargs: Any) -> Any:
        return function(*args, credentials=CredentialFiles(ca, cert, key, token_file), **kwargs)

    made: Any = command
    for name in reversed(FILES):
        flag, envvar = "--" + name.replace("_", "-"), f"HQ_{name.upper()}" if from_environment else None
        made = click.option(flag, name, type=_FILE, default="", metavar="FILE", envvar=envvar, help=_HELP[name])(made)
    return cast("F", made)


class DurationParam(click.ParamType[float]):
    """A span of time, in seconds. `least_s`: shorter spans make no sense, and HQ may treat 0 as its default."""

    name = "span"

    def __init__(self, least_s: float = 0.0) -> None:
        self.least_s = least_s

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = parse_span(value) if isinstance(value, str) else float(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < self.least_s:
            self.fail(f"{value!r} is too short: at least {self.least_s:g}s", param, ctx)
        return seconds
