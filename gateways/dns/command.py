"""The command `hq-gateway dns`: settings become objects."""

from __future__ import annotations

import asyncio
import ipaddress
import random
import time
from collections.abc import Mapping
from typing import Any

import click

from gateways.dns import sockets, wire
from gateways.dns.metrics import METRICS, DnsMetricSources
from gateways.dns.names import is_label
from gateways.dns.responder import Responder
from gateways.dns.zone import Zone, ZoneSettings
from gateways.flags import FLAGS, discovery_of, following, listening, publishing, running
from gateways.process import DiscoveryGateway, check_http, run_gateway
from hqclient.discovery import Discovery
from serving.clock import SystemClock
from serving.flags import OWN_ADDRESS, ServerCommand, limits_of
from serving.listeners import Addresses
from serving.process import when_told_to_stop


@click.command("dns", cls=ServerCommand)
@following
@listening.option(
    "--dns",
    default="127.0.0.1:7653",
    type=OWN_ADDRESS,
    metavar="HOST:PORT",
    help="Address to serve DNS on, UDP and TCP.",
)
@listening.option(
    "--http",
    default="127.0.0.1:7682",
    type=OWN_ADDRESS,
    metavar="HOST:PORT",
    help="Address of /metrics and health pages.",
)
@listening.option(
    "--max-udp-size",
    type=click.IntRange(wire.PLAIN_BYTES, 65_000),
    metavar="BYTES",
    help="Largest answer over UDP that clients may ask for; 4096 for loopback and private addresses, else 1232.",
)
@publishing.option("--zone", default="hq.internal", metavar="NAME", help="The zone that is served.")
@publishing.option(
    "--ttl", type=click.IntRange(0, 3600), default=1, help="Seconds for which resolvers may keep answers."
)
@running
@FLAGS.logs()
@FLAGS.under("Limits").option(
    "--max-queries-per-peer-s",
    type=click.IntRange(min=0),
    default=1_000,
    help="Queries per second of one address; more are dropped. 0: no limit.",
)
@FLAGS.limits()
def dns(**given: Any) -> None:
    """Serve HQ as a DNS zone: WEB.service.hq.internal has the addresses of ready instances of WEB."""
    discovery, services = discovery_of(given)
    check_http(given, "http")
    zone = _zone(given["zone"])
    run_gateway(given, lambda: _serve(given, discovery, services, zone))


def _zone(name: str) -> tuple[bytes, ...]:
    labels = name.lower().rstrip(".").split(".")
    if not all(map(is_label, labels)):
        raise click.UsageError(f"--zone {name}: not a valid zone name")
    return tuple(label.encode() for label in labels)


async def _serve(
    given: Mapping[str, Any], discovery: Discovery, services: tuple[str, ...], labels: tuple[bytes, ...]
) -> None:
    gateway = DiscoveryGateway("dns", discovery, services, SystemClock(), limits_of(given), None, given["grace"])
    udp_socket, tcp_socket = sockets.bind_udp_and_tcp(given["dns"])
    settings = ZoneSettings(labels, given["ttl"], _own_address(udp_socket.getsockname()[0]))
    zone = Zone(settings, gateway.picture, gateway.addressing, int(time.time()))
    responder = Responder(zone, random.Random(), given["max_udp_size"])
    gateway.picture.listen(responder.on_services_changed)
    rate = sockets.Rate(given["max_queries_per_peer_s"], gateway.clock)
    udp, tcp = sockets.Udp(udp_socket, responder, rate), sockets.Tcp(tcp_socket, responder, rate)
    gateway.count(METRICS, DnsMetricSources(zone, responder.counts, tcp))
    gateway.listen(Addresses(given["http"], given["http"], allowed_hosts=given["allowed_host"], env="HQ_GATEWAY_"))

    async def answer() -> None:
        udp.open()
        await tcp.open()
        sockets.log.info("answering DNS for %s on %s:%d", given["zone"], *udp_socket.getsockname()[:2])
        try:
            await asyncio.Event().wait()
        finally:
            udp.close()
            await tcp.close()

    when_told_to_stop(gateway.stop)
    await gateway.serve(answer)


def _own_address(host: str) -> str:
    """The address of `ns.ZONE`; empty: it listens on all addresses, and the right one is unknown."""
    return "" if ipaddress.ip_address(host).is_unspecified else host
