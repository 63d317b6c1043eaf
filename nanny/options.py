"""Flags of `nanny serve` and `nanny dev`. Each is also an environment variable: `--cms` is NANNY_CMS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from control.process import dev_flags, kit_flags
from hqcli.documents import BadDocument
from hqclient import BadCredentials, Client, CredentialFiles, Credentials
from nanny.world.cms import CmsLeave
from nanny.world.leave import Leave, NoCms
from nannyctl.descriptions.installations import merged, parse_option
from nannyctl.descriptions.reading import read_installations
from serving.auth import security as settings
from serving.clock import SystemClock
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
    kit_flags(FLAGS, "/nanny/v1/"),
    _option("--drift-every", type=Duration(), default="60s", help="How often idle services are compared with HQ."),
    _option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)
dev: Final = dev_flags(FLAGS, ".nanny")
limits: Final = FLAGS.limits()
logs: Final = FLAGS.logs()


def world_of(given: Mapping[str, Any]) -> tuple[dict[str, Client], Leave]:
    """Clients of all locations, and who gives leave. Raises UsageError."""
    files = CredentialFiles(*(given[f"hq_{name}"] for name in _KEYS))
    addresses = _locations(given)
    cms = [part.strip() for part in given["cms"].split(",") if part.strip()]
    _check_plain([*cms, *(one for each in addresses.values() for one in each)], files, given)
    try:
        credentials = Credentials(files)
        clients = {name: Client(each, credentials=credentials) for name, each in addresses.items()}
        return clients, CmsLeave(cms, SystemClock(), credentials) if cms else NoCms()
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
