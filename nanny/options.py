"""Flags of `nanny serve` and `nanny dev`. Each is also an environment variable: `--cms` is NANNY_CMS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from control.locations import clients_of, credentials_of, location_flags, locations_of
from control.process import dev_flags, kit_flags, listening_flags
from descriptions.installations import merge_installations
from descriptions.reading import read_installations
from hqcli.documents import BadDocument
from hqclient import Client
from nanny.world.cms import CmsLeave
from nanny.world.leave import ApprovalPort, NoCms
from nanny.world.prometheus import PrometheusPort, read_prometheus
from serving.auth import security as settings
from serving.clock import SystemClock
from serving.flags import CALLED_ADDRESSES, Duration, Flags, InputFile, together
from serving.storage.flags import etcd_flags

FLAGS: Final = Flags("NANNY_")
_world, _rollouts = FLAGS.under("HQ and CMS"), FLAGS.under("Roll-outs")

etcd: Final = etcd_flags(FLAGS)
listening: Final = listening_flags(FLAGS, "127.0.0.1:7371", "127.0.0.1:7380")
security: Final = settings.flags(FLAGS, "nanny")
world: Final = together(
    location_flags(FLAGS, "  [default: default=127.0.0.1:7071]"),
    _world.option(
        "--locations",
        default="",
        type=InputFile(),
        metavar="FILE",
        help="File with locations, instead of --location: `installations: {name: [host:port]}`.",
    ),
    _world.option(
        "--cms",
        default="",
        type=CALLED_ADDRESSES,
        metavar="HOST:PORT[,HOST:PORT...]",
        help="gRPC addresses of the CMS; empty: roll-outs go by max_unavailable alone.",
    ),
)
behaviour: Final = together(
    _rollouts.option(
        "--prometheus",
        default="",
        type=InputFile(),
        metavar="FILE",
        help="File with what checks may ask: `prometheus: {NAME: {url: ..., ca: FILE, token-file: FILE}}`.",
    ),
    _rollouts.option(
        "--drift-every", type=Duration(), default="60s", help="How often idle services are compared with HQ."
    ),
    kit_flags(FLAGS, "/nanny/v1/"),
)
dev: Final = dev_flags(FLAGS, ".nanny")
limits: Final = FLAGS.limits()
logs: Final = FLAGS.logs()


def world_of(given: Mapping[str, Any]) -> tuple[dict[str, Client], ApprovalPort]:
    """Clients of all locations, and who gives leave. Raises UsageError."""
    locations = _locations(given)
    cms = [part.strip() for part in given["cms"].split(",") if part.strip()]
    credentials = credentials_of(given, [*cms, *(one for each in locations.values() for one in each)])
    return clients_of(locations, credentials), CmsLeave(cms, SystemClock(), credentials) if cms else NoCms()


def prometheus_of(given: Mapping[str, Any]) -> PrometheusPort:
    """Raises UsageError."""
    try:
        return PrometheusPort(read_prometheus(given["prometheus"]) if given["prometheus"] else {})
    except BadDocument as error:
        raise click.UsageError(f"--prometheus: {error}") from error


def _locations(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    try:
        return merge_installations(
            locations_of(given), read_installations(given["locations"]) if given["locations"] else {}
        )
    except (BadDocument, ValueError) as error:
        raise click.UsageError(f"--locations: {error}") from error
