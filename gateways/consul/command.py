"""The command `hq-gateway consul`: settings become objects."""

from __future__ import annotations

import random
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from gateways.consul.answers import ConsulAnswers, ConsulSettings
from gateways.consul.api import ConsulApi
from gateways.consul.indexes import ConsulIndexes
from gateways.consul.metrics import METRICS
from gateways.flags import (
    FLAGS,
    discovery_of,
    following,
    listening,
    publishing,
    running,
    security_flags_of_http,
    security_from,
)
from gateways.process import DiscoveryGateway, run_gateway
from hqclient.discovery import Discovery
from serving.clock import SystemClock
from serving.flags import OWN_ADDRESS, ServerCommand, limits_of
from serving.listeners import Addresses
from serving.process import when_told_to_stop


@click.command("consul", cls=ServerCommand)
@following
@listening.option(
    "--http",
    default="127.0.0.1:7680",
    type=OWN_ADDRESS,
    metavar="HOST:PORT",
    help="Address to serve HTTP on; port 0: a free one.",
)
@publishing.option(
    "--datacenter",
    default="",
    metavar="NAME",
    help="Location whose instances are shown to callers that name no datacenter; empty: all locations.",
)
@publishing.option(
    "--port",
    "ports",
    multiple=True,
    default=("http", "grpc"),
    metavar="NAME",
    help="Name of the port to publish. Repeatable: the first of these names that an instance has is used.",
)
@running
@security_flags_of_http
@FLAGS.logs()
@FLAGS.limits()
def consul(**given: Any) -> None:
    """Serve the read side of Consul's HTTP API: /v1/health, /v1/catalog, with blocking queries."""
    discovery, services = discovery_of(given)
    run_gateway(given, lambda: _serve(given, discovery, services))


async def _serve(given: Mapping[str, Any], discovery: Discovery, services: tuple[str, ...]) -> None:
    security = security_from(given)
    gateway = DiscoveryGateway("consul", discovery, services, SystemClock(), limits_of(given), security, given["grace"])
    picture = gateway.picture
    indexes = ConsulIndexes(picture, gateway.clock)
    settings = ConsulSettings(given["datacenter"], tuple(given["ports"]), _version())
    answers = ConsulAnswers(settings, picture, indexes)
    api = ConsulApi(picture, indexes, answers, gateway.context, random.Random())
    gateway.count(METRICS, api)
    gateway.listen(
        Addresses(given["http"], given["http"], allowed_hosts=given["allowed_host"], env="HQ_GATEWAY_"), site=api.answer
    )
    when_told_to_stop(gateway.stop)
    await gateway.serve()


def _version() -> str:
    try:
        return version("hq-registry")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0"
