"""The installations of HQ that a controller works with: flags, addresses and clients."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import click

from hqclient import BadCredentials, Client, CredentialFiles, Credentials
from serving.flags import CALLED_ADDRESSES, F, Flags, InputFile, together, usage_errors
from serving.sockets import is_loopback

Addresses = dict[str, tuple[str, ...]]  # host:port of each replica, by the name of the location

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FILES: Final = ("ca", "cert", "key", "token_file")


def location_flags(flags: Flags, default: str) -> Callable[[F], F]:
    """Flags for locations and HQ credentials; `default`: the default that --location's help shows."""
    option = flags.under("HQ and CMS").option
    return together(
        option(
            "--location",
            multiple=True,
            type=CALLED_ADDRESSES,
            metavar="NAME=HOST:PORT,...",
            help=f"An installation of HQ and its replicas; repeatable.{default}",
        ),
        option(
            "--hq-ca",
            default="",
            type=InputFile(),
            metavar="FILE",
            help="Use TLS with HQ (and the CMS), and trust this CA (PEM).",
        ),
        option(
            "--hq-cert",
            default="",
            type=InputFile(),
            metavar="FILE",
            help="Client certificate for HQ (and the CMS) (PEM).",
        ),
        option("--hq-key", default="", type=InputFile(), metavar="FILE", help="Its key (PEM)."),
        option(
            "--hq-token-file",
            default="",
            type=InputFile(),
            metavar="FILE",
            help="File with the token for HQ (and the CMS).",
        ),
    )


def locations_of(given: Mapping[str, Any], fallback: str = "") -> Addresses:
    """The value of --location; `fallback`: used if there is none. Raises UsageError."""
    found: Addresses = {}
    for text in given["location"] or filter(None, (fallback,)):
        name, _, listed = text.partition("=")
        replicas = tuple(one.strip() for one in listed.split(",") if one.strip())
        if not _NAME.fullmatch(name) or not replicas:
            form = "NAME=HOST:PORT[,HOST:PORT...], the name in letters, digits and ._-"
            raise click.UsageError(f"--location {text}: write {form}")
        if name in found:
            raise click.UsageError(f"--location {text}: {name} was given before; list all its replicas in one option")
        found[name] = replicas
    return found


@usage_errors(BadCredentials, ValueError)
def credentials_of(given: Mapping[str, Any], addresses: Iterable[str]) -> Credentials:
    """The credentials for these addresses.

    Raises UsageError: a file is invalid, or secrets would leave this machine in plain text.
    """
    files = CredentialFiles(*(given[f"hq_{name}"] for name in _FILES))
    outside = next((one for one in addresses if not is_loopback(one)), "")
    if outside and not files.ca and not given["insecure"]:
        raise click.UsageError(f"connections to {outside} would be in plain text: give --hq-ca for TLS, or --insecure")
    return Credentials(files, prefix="--hq-")


@usage_errors(BadCredentials, ValueError)
def clients_of(locations: Addresses, credentials: Credentials) -> dict[str, Client]:
    """A client for each location; call it inside the running event loop. Raises UsageError."""
    return {name: Client(each, credentials=credentials) for name, each in locations.items()}
