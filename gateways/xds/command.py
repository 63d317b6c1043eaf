"""The command `hq-gateway xds`: settings become real parts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from gateways.flags import FLAGS, discovery_of, following, listening, publishing, running, security_flags, security_from
from gateways.process import DiscoveryGateway, run_gateway
from gateways.xds.ads import Ads
from gateways.xds.metrics import METRICS
from gateways.xds.resources import Resources
from hqclient.discovery import Discovery
from serving.clock import SystemClock
from serving.flags import OWN_ADDRESS, ServerCommand, limits_of
from serving.listeners import Addresses
from serving.process import when_told_to_stop


@click.command("xds", cls=ServerCommand)
@following
@listening.option(
    "--grpc",
    default="127.0.0.1:7671",
    type=OWN_ADDRESS,
    metavar="HOST:PORT",
    help="Address to serve xDS on; port 0: a free one.",
)
@listening.option(
    "--http",
    default="127.0.0.1:7681",
    type=OWN_ADDRESS,
    metavar="HOST:PORT",
    help="Address of /metrics and health pages.",
)
@publishing.option(
    "--location",
    default="",
    metavar="NAME",
    help="Location preferred by clients whose node names none as its zone or region.",
)
@running
@security_flags
@FLAGS.logs()
@FLAGS.limits()
def xds(**given: Any) -> None:
    """Serve xDS (ADS) to gRPC clients: xds:///WEB calls the ready instances of WEB."""
    discovery, services = discovery_of(given)
    run_gateway(given, lambda: _serve(given, discovery, services))


async def _serve(given: Mapping[str, Any], discovery: Discovery, services: tuple[str, ...]) -> None:
    gateway = DiscoveryGateway(
        "xds", discovery, services, SystemClock(), limits_of(given), security_from(given), given["grace"]
    )
    resources = Resources(gateway.picture, gateway.addressing, int(time.time()))
    ads = Ads(gateway.picture, resources, given["location"])
    gateway.count(METRICS, ads.counts)
    mtls = given["grpc_mtls"]
    gateway.listen(
        Addresses(given["grpc"], given["http"], mtls, allowed_hosts=given["allowed_host"], env="HQ_GATEWAY_"),
        ads.methods(),
    )
    when_told_to_stop(gateway.stop)
    await gateway.serve()
