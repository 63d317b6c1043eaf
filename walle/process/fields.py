"""Reads a part of the configuration file as a dataclass: what does not fit is refused, with the path of the field."""

from __future__ import annotations

import ipaddress
import math
import ssl
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final, TypeVar

from serving.rights.patterns import Patterns
from walle.outgoing.destinations import BadAddress, IpNetwork, Url, parse_address, parse_url

T = TypeVar("T")
Folder = Path | None
"""Where files are that are named from it; None: on another machine, so they are not read."""
_MAX_PORT: Final = 65_535


class BadConfig(Exception):
    """The file cannot be used; the message names the place."""


def read_fields(where: str, given: Any, kind: type[T], folder: Folder) -> T:
    """The dataclass `kind` from names and values. Files are named from the folder of the configuration.

    Raises:
        BadConfig: a field is unknown, missing, or of another type.
    """
    written = {_FILES.get(one.name, one.name): one for one in fields(kind)}  # type: ignore[arg-type]
    check_names(f"{where}.", given, tuple(written))
    values: dict[str, Any] = {}
    for name, one in written.items():
        if name in given:
            reader = _READERS[one.name] if one.name in _READERS else _READERS[str(one.type)]
            values[one.name] = reader(f"{where}.{name}", given[name], folder)
        elif one.default is MISSING and one.default_factory is MISSING:
            raise BadConfig(f"{where}.{name}: is missing")
    return kind(**values)


def read_all(where: str, given: Any, kind: type[T], folder: Folder) -> tuple[T, ...]:
    """A list of such dataclasses. Raises BadConfig."""
    if not isinstance(given, list):
        raise BadConfig(f"{where}: write a list")
    return tuple(read_fields(f"{where}[{number}]", one, kind, folder) for number, one in enumerate(given))


def check_names(where: str, given: Any, known: tuple[str, ...]) -> None:
    """Raises BadConfig: these are not names and values, or a name is not known."""
    if not isinstance(given, Mapping):
        raise BadConfig(f"{where.rstrip('.') or 'the file'}: write names and values below it")
    if unknown := sorted(set(map(str, given)) - set(known)):
        raise BadConfig(f"{where}{unknown[0]}: unknown setting; known settings: {', '.join(known)}")


def _text(where: str, value: Any, _: Folder) -> str:
    if not isinstance(value, str):
        raise BadConfig(f"{where}: {value!r} is not a text (write numbers in quotes)")
    return value


def _texts(where: str, value: Any, folder: Folder) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise BadConfig(f"{where}: write a list of texts")
    return tuple(_text(f"{where}[{number}]", one, folder) for number, one in enumerate(value))


def _seconds(where: str, value: Any, _: Folder) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise BadConfig(f"{where}: {value!r} is not a number above 0")
    return float(value)


def _count(where: str, value: Any, _: Folder) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadConfig(f"{where}: {value!r} is not a whole number above 0")
    return value


def _port(where: str, value: Any, folder: Folder) -> int:
    if _count(where, value, folder) > _MAX_PORT:
        raise BadConfig(f"{where}: {value!r} is not one of 1 to {_MAX_PORT}")
    return int(value)


def _flag(where: str, value: Any, _: Folder) -> bool:
    if not isinstance(value, bool):
        raise BadConfig(f"{where}: {value!r} is neither true nor false")
    return value


def _patterns(where: str, value: Any, folder: Folder) -> Patterns:
    return Patterns(_texts(where, value, folder))


def _url(where: str, value: Any, folder: Folder) -> Url:
    try:
        return parse_url(_text(where, value, folder))
    except BadAddress as error:
        raise BadConfig(f"{where}: {error}") from error


def _match(where: str, value: Any, folder: Folder) -> IpNetwork | str:
    """A network, one IP address, or the end of names."""
    text = _text(where, value, folder)
    try:
        if "/" in text:
            return ipaddress.ip_network(text)
        address = parse_address(f"[{text}]" if ":" in text else text.removeprefix("."))
    except ValueError as error:
        raise BadConfig(
            f"{where}: {error}: write a network (10.7.0.0/16), an IP address, or the end of names"
        ) from None
    return address.host if address.ip is None else ipaddress.ip_network(address.host)


def _secret(where: str, value: Any, folder: Folder) -> str:
    """Secrets are files, never values."""
    name = _text(where, value, folder)
    if folder is None:
        return "not read"
    try:
        return (folder / name).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"{where}: {getattr(error, 'strerror', '') or 'is not text'}: {folder / value}") from error


def _tls(where: str, value: Any, folder: Folder) -> ssl.SSLContext:
    """Trusts the CA in this file, and no other."""
    name = _text(where, value, folder)
    if folder is None:
        return ssl.create_default_context()
    path = folder / name
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:  # an SSLError is one
        raise BadConfig(f"{where}: {error.strerror or 'is not a PEM certificate'}: {path}") from error


_FILES: Final = {"password": "password_file", "token": "token_file", "key": "key_file", "tls": "ca_file"}
# By the name of a field, else by its type.
_READERS: Final[Mapping[str, Callable[[str, Any, Folder], Any]]] = {
    **dict.fromkeys(("password", "token", "key"), _secret),
    "tls": _tls,
    "port": _port,
    "match": _match,
    "str": _text,
    "tuple[str, ...]": _texts,
    "float": _seconds,
    "int": _count,
    "bool": _flag,
    "Patterns": _patterns,
    "Url": _url,
}
