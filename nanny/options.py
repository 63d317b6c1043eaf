"""Flags of `nanny serve` and `nanny dev`. Each is also an environment variable: `--cms` is NANNY_CMS."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from control import Config
from hqcli.documents import BadDocument
from hqclient import BadCredentials, Client, CredentialFiles, Credentials
from nanny.world.cms import CmsLeave
from nanny.world.leave import Leave, NoCms
from nannyctl.descriptions.installations import merged, parse_option
from nannyctl.descriptions.reading import read_installations
from serving.auth import security as settings
from serving.flags import Duration, Flags, is_loopback, together
from serving.storage.flags import etcd_flags

FLAGS: Final = Flags("NANNY_")
_option = FLAGS.option
_KEYS: Final = ("ca", "cert", "key", "token_file")

etcd: Final = etcd_flags(FLAGS)
listening: Final = together(
    _option("--grpc", default="127.0.0.1:7371", metavar="HOST:PORT", help="Address to serve on; port 0: a free one."),
    _option("--http", default="127.0.0.1:7380", metavar="HOST:PORT", help="Second address to serve on."),
    FLAGS.transport(),
    FLAGS.cors(),
    _option("--insecure", is_flag=True, help="Use non-loopback addresses without TLS or authentication."),
)
security: Final = settings.flags(FLAGS)
world: Final = together(
    _option(
        "--location",
        multiple=True,
        metavar="NAME=HOST:PORT,...",
        help="An installation of HQ and its replicas; repeatable.  [default: default=127.0.0.1:7071]",
    ),
    _option(
        "--locations", default="", metavar="FILE", help="The same as a file: `installations: {name: [host:port]}`."
    ),
    _option("--hq-ca", default="", metavar="FILE", help="Use TLS with HQ and the CMS, and trust this CA (PEM)."),
    _option("--hq-cert", default="", metavar="FILE", help="Client certificate of Nanny for HQ and the CMS (PEM)."),
    _option("--hq-key", default="", metavar="FILE", help="Its key (PEM)."),
    _option("--hq-token-file", default="", metavar="FILE", help="File with Nanny's own token for HQ and the CMS."),
    _option(
        "--cms",
        default="",
        metavar="HOST:PORT[,HOST:PORT...]",
        help="gRPC addresses of the CMS; empty: roll-outs go by max_unavailable alone.",
    ),
)
behaviour: Final = together(
    _option("--prefix", default="/nanny/v1/", help="Prefix of all keys of Nanny in the store."),
    _option("--process", default="", help="Name of this process, never reused; default: generated."),
    _option("--term", type=Duration(), default="10s", help="A silent acting process is succeeded after this long."),
    _option("--drift-every", type=Duration(), default="60s", help="How often services at rest are compared with HQ."),
    _option("--compact-every", type=Duration(), default="0s", help="Compact the store's history; 0s: HQ does."),
    _option("--stop-file", default="", metavar="FILE", help="While it exists, this process changes nothing in HQ."),
    _option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)
limits: Final = FLAGS.limits()
logs: Final = FLAGS.logs()


def config_of(given: Mapping[str, Any]) -> Config:
    """How the kit runs."""
    name = given["process"] or f"{socket.gethostname()}-nanny-{secrets.token_hex(4)}"
    stop_file = Path(given["stop_file"]) if given["stop_file"] else None
    return Config(given["prefix"], name, given["term"], given["compact_every"], stop_file)


def world_of(given: Mapping[str, Any]) -> tuple[dict[str, Client], Leave]:
    """Clients of all locations, and who gives leave. Raises UsageError."""
    files = CredentialFiles(*(given[f"hq_{name}"] for name in _KEYS))
    addresses = _locations(given)
    cms = [part.strip() for part in given["cms"].split(",") if part.strip()]
    _check_plain([*cms, *(one for each in addresses.values() for one in each)], files, given)
    try:
        credentials = Credentials(files)
        clients = {name: Client(each, credentials=credentials) for name, each in addresses.items()}
        return clients, CmsLeave(cms, credentials) if cms else NoCms()
    except (BadCredentials, ValueError) as error:
        raise click.UsageError(str(error)) from error


def _locations(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    try:
        told = dict(parse_option(text) for text in given["location"])
        return merged(told, read_installations(given["locations"]) if given["locations"] else {})
    except (BadDocument, ValueError) as error:
        raise click.UsageError(f"--location: {error}") from error


def _check_plain(addresses: list[str], files: CredentialFiles, given: Mapping[str, Any]) -> None:
    outside = [one for one in addresses if not is_loopback(one)]
    if outside and not files.ca and not given["insecure"]:
        raise click.UsageError(f"{outside[0]} would be spoken to in plain text: give --hq-ca for TLS, or --insecure")
