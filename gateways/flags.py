"""Flags that all gateways have, and what they say."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from hqclient.credential_files import BadCredentials, CredentialFiles
from hqclient.credentials import Credentials
from hqclient.discovery import Discovery, DiscoverySettings
from hqclient.discovery.feed import FeedSettings
from serving.auth import security as settings
from serving.auth.security import Security
from serving.auth.watched_files import BadSecurity
from serving.clock import SystemClock
from serving.flags import CALLED_ADDRESSES, Duration, Flags, InputFile, together, usage_errors
from serving.sockets import is_loopback

F = TypeVar("F", bound=Callable[..., Any])

FLAGS: Final = Flags("HQ_GATEWAY_")
listening, publishing = FLAGS.under("Listening"), FLAGS.under("Publishing")
_hq, _processes = FLAGS.under("HQ"), FLAGS.under("Processes")

_KEYS: Final = ("ca", "cert", "key", "token_file")
_SAVE_AFTER_S: Final = 2.0  # a list of 10,000 takes a third of a second to write

following: Final = together(
    _hq.option(
        "--hq",
        required=True,
        type=CALLED_ADDRESSES,
        metavar="HOST:PORT[,HOST:PORT...]",
        help="Replicas of HQ, or federation gateways.",
    ),
    publishing.option("--service", multiple=True, metavar="NAME", help="Publish this service. Repeatable."),
    publishing.option("--all-services", is_flag=True, help="Publish all services that this gateway may read."),
    _hq.option(
        "--hq-ca", default="", type=InputFile(), metavar="FILE", help="Use TLS with HQ and trust this CA (PEM)."
    ),
    _hq.option(
        "--hq-cert", default="", type=InputFile(), metavar="FILE", help="Client certificate of this gateway (PEM)."
    ),
    _hq.option("--hq-key", default="", type=InputFile(), metavar="FILE", help="Its key (PEM)."),
    _hq.option(
        "--hq-token-file",
        default="",
        type=InputFile(),
        metavar="FILE",
        help="File with this gateway's own token for HQ.",
    ),
    _hq.option(
        "--state-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=".hq/gateways",
        metavar="DIR",
        help="Keeps the last good list for restarts while HQ is away. Gateways may share it.",
    ),
)
security_flags: Final = settings.flags(FLAGS, "gateway")
security_flags_of_http: Final = settings.flags(FLAGS, "gateway", serves_grpc=False)
running: Final = together(
    FLAGS.allowed_hosts(),
    listening.option("--insecure", is_flag=True, help="Serve on non-loopback addresses without TLS or authentication."),
    _processes.option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)


def discovery_of(given: Mapping[str, Any]) -> tuple[Discovery, tuple[str, ...]]:
    """How HQ is followed, and which services; none: all.

    Raises:
        UsageError: naming the flag.
    """
    services: tuple[str, ...] = tuple(given["service"])
    if bool(services) == given["all_services"]:
        raise click.UsageError(
            "give --service or --all-services, not both"
            if services
            else "name the services to publish with --service (repeatable), or give --all-services"
        )
    servers = [server for server in given["hq"].split(",") if server]
    files = CredentialFiles(*(given[f"hq_{key}"] for key in _KEYS))
    _check_plain(servers, files, given)
    try:
        discovery = Discovery(
            servers,
            state_dir=given["state_dir"],
            settings=DiscoverySettings(feed=FeedSettings(save_after_s=_SAVE_AFTER_S)),
            credentials=Credentials(files, prefix="--hq-"),
            rng=random.SystemRandom(),
        )
    except BadCredentials as error:
        raise click.UsageError(str(error)) from error
    except ValueError as error:
        raise click.UsageError(f"--hq: {error}") from error
    return discovery, services


def _check_plain(servers: list[str], files: CredentialFiles, given: Mapping[str, Any]) -> None:
    if not servers:
        raise click.UsageError("--hq names no server: write HOST:PORT")
    if files.tls or given["insecure"]:
        return
    for server in servers:
        if not is_loopback(server):
            raise click.UsageError(f"--hq {server} is on another machine: give --hq-ca for TLS, or --insecure")


@usage_errors(BadSecurity)
def security_from(given: Mapping[str, Any]) -> Security | None:
    """How callers are authenticated; None: without authentication, in plain text.

    Raises:
        UsageError: naming the flag.
    """
    settings.check_exposure(given)
    return settings.security_of(given, SystemClock(), "")
