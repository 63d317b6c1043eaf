"""Clients that others wrote, each following a gateway: gRPC in four languages, DNS tools and resolvers, Consul's."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import yaml
from google.protobuf.descriptor import FieldDescriptor

from tests.judges import tools
from tests.judges.gateway_world import MANY, PAIR, World, follow, within, world
from tests.judges.processes import ROOT, environment, must, run, started
from tests.judges.verdict import Missing, Verdict
from tests.support.reserved_port import quiet_port
from xdspb.v1 import xds_pb2

_WEB: Final = "web.service.hq.internal"
XDS_TARGET: Final = "xds:///web/http;app-protocol=grpc"  # its cluster says HTTP/2, for Envoys
_CALL_MS: Final = "5"
_LIBC_SERVER: Final = "127.0.0.77"  # any address of the loopback network: another one may have port 53 of 127.0.0.1
_START_S: Final = 120.0  # Java compiles its program first
_WEIGHED: Final = 1_000
_CACHED_CHANGES: Final = 20  # through a cache each takes the second that an answer is kept
_SETTLED: Final = 5  # so many answers in a row are of the right one


# --- xDS ----------------------------------------------------------------------------------------------------------


async def xds_python(directory: Path) -> Verdict:
    """grpcio."""
    import grpc

    order = (sys.executable, "-m", "tests.judges.xds_caller")
    return await _calls(directory, f"grpcio {grpc.__version__}", order)


async def xds_go(directory: Path) -> Verdict:
    """google.golang.org/grpc/xds."""
    path, version = await tools.go_program("xdsfollow", "google.golang.org/grpc")
    return await _calls(directory, version, (path,))


async def xds_node(directory: Path) -> Verdict:
    """@grpc/grpc-js-xds."""
    folder, version = await tools.node("@grpc/grpc-js-xds")
    return await _calls(directory, version, ("node", folder / "xds_caller.mjs"))


async def xds_java(directory: Path) -> Verdict:
    """io.grpc:grpc-xds."""
    folder, version = await tools.java()
    source = Path(__file__).parent / "java" / "XdsCaller.java"
    return await _calls(directory, version, ("java", "-cp", f"{folder}/*", source))


async def _calls(directory: Path, version: str, order: Sequence[str | Path]) -> Verdict:
    """A client that calls without a pause, and whose calls must not fail."""
    verdict, log = Verdict(version), directory / "calls.log"
    async with AsyncExitStack() as stack:
        at = await stack.enter_async_context(world(directory, "xds"))
        (directory / "bootstrap.json").write_text(json.dumps(bootstrap(at)))
        env = {"GRPC_XDS_BOOTSTRAP": str(directory / "bootstrap.json")}
        await stack.enter_async_context(started((*order, XDS_TARGET, _CALL_MS), log, env))

        def lines() -> list[str]:
            return log.read_text(errors="replace").splitlines()

        async def both() -> None:
            await within(lambda: {f"ok {id_}" for id_ in PAIR} <= {*lines()[-50:]}, _START_S)

        async def none_failed() -> None:
            failed = [(number, line) for number, line in enumerate(lines(), 1) if line.startswith("error ")]
            assert not failed, f"{len(failed)} of {len(lines())} calls failed: {failed[:3]}"

        async def by_weight() -> None:
            await at.weigh(web_1=90, web_2=10)
            told = len(lines())  # most of the calls before were answered by `many`
            # A whole window of the new shares: with equal ones, 35 of 100 would be rarer than one in a thousand.
            await within(
                lambda: len(lines()) >= told + 100 and _said(lines(), 100).count("ok web-2") < 30,
                _START_S,
            )
            begin = len(lines())
            await within(lambda: len(lines()) > begin + _WEIGHED, _START_S)
            light = lines()[begin : begin + _WEIGHED].count("ok web-2")
            assert 0.06 < light / _WEIGHED < 0.14, f"{light} of {_WEIGHED} calls"
            await at.weigh(web_1=100, web_2=100)

        async def growth() -> None:
            await at.grow()
            await within(lambda: _said(lines(), 10).count("ok many") >= _SETTLED, _START_S)
            await at.shrink()
            await within(lambda: "ok many" not in _said(lines(), 20), _START_S)

        await verdict.case("both instances are called", both(), _START_S)
        await verdict.case(f"2 to {MANY} to 2", growth(), 2 * _START_S)
        await verdict.case("weights of 90 and 10 are the shares of calls", by_weight(), _START_S)
        await follow(verdict, at, _settled(log))
        await verdict.case("no call failed", none_failed())
        await verdict.case("an unknown service fails at once", _unknown(order, directory, env), _START_S)
    return verdict


def _settled(log: Path) -> Callable[[str], Awaitable[None]]:
    async def shows(id_: str) -> None:
        await within(
            lambda: _said(log.read_text(errors="replace").splitlines())[-_SETTLED:] == [f"ok {id_}"] * _SETTLED
        )

    return shows


def _said(lines: Sequence[str], last: int = 50) -> list[str]:
    """The client's last lines without its own log."""
    return [line for line in lines[-last:] if line.startswith(("ok ", "error "))]


async def _unknown(order: Sequence[str | Path], directory: Path, env: dict[str, str]) -> None:
    """Well before the 15 s for which clients wait for a resource that nobody speaks of, or their call's deadline."""
    log = directory / "unknown.log"
    async with started((*order, "xds:///nobody", "100"), log, env):
        await within(lambda: bool(_said(log.read_text(errors="replace").splitlines())), _START_S)
        said = _said(log.read_text(errors="replace").splitlines())[0].lower()
        assert said.startswith("error"), said
        assert "deadline" not in said, said


def bootstrap(at: World) -> dict[str, Any]:
    server = {"server_uri": at.gateway.grpc, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}
    node = {"id": "judge", "locality": {"zone": "default"}}
    return {"xds_servers": [server], "node": node, "certificate_providers": {}}  # Node's client wants the last two


_ENVOY: Final = {
    "service.discovery.v3": (
        *("DiscoveryRequest", "DiscoveryResponse", "DeltaDiscoveryRequest", "DeltaDiscoveryResponse", "Resource"),
    ),
    "config.core.v3": (
        *("Node", "Locality", "ConfigSource", "Address", "SocketAddress", "AggregatedConfigSource"),
        "Http2ProtocolOptions",
    ),
    "config.listener.v3": ("Listener", "ApiListener", "FilterChain", "Filter"),
    "extensions.filters.network.http_connection_manager.v3": ("HttpConnectionManager", "Rds", "HttpFilter"),
    "extensions.filters.http.router.v3": ("Router",),
    "extensions.upstreams.http.v3": ("HttpProtocolOptions", "HttpProtocolOptions.ExplicitHttpConfig"),
    "config.route.v3": ("RouteConfiguration", "VirtualHost", "Route", "RouteMatch", "RouteAction", "RetryPolicy"),
    "config.cluster.v3": ("Cluster", "Cluster.EdsClusterConfig"),
    "config.endpoint.v3": ("ClusterLoadAssignment", "LocalityLbEndpoints", "LbEndpoint", "Endpoint"),
}
_KINDS: Final = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_MESSAGE: "message",
    FieldDescriptor.TYPE_ENUM: "enum",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_INT32: "int32",
}


async def xds_numbers(_: Path) -> Verdict:
    """Every field of our messages has the name, number and kind that Envoy's API gives it."""
    path, version = await tools.go_program("xdsnumbers", "google.golang.org/grpc")
    verdict = Verdict(version)
    names = {f"envoy.{package}.{name}": name for package, found in _ENVOY.items() for name in found}
    names["google.rpc.Status"] = "Status"
    theirs = {*(await must((path, *names), 60.0)).splitlines()}
    for full, name in names.items():
        ours = xds_pb2.DESCRIPTOR.message_types_by_name[name.rpartition(".")[2]]
        wanted = {f"{full} {one.name} {one.number} {_KINDS[one.type]}" for one in ours.fields}
        verdict.count(full, ", ".join(sorted(wanted - theirs)))
    return verdict


# --- DNS ----------------------------------------------------------------------------------------------------------


async def dig(directory: Path) -> Verdict:
    """dig, over UDP; then through dnsmasq, which caches."""
    path, _ = await tools.on_path("dig", "bind9-dnsutils")
    verdict = Verdict((await run((path, "-v"), 10.0)).text)
    async with world(directory, "dns") as at:
        host, port = at.gateway.dns
        await follow(verdict, at, _looked_up((path, f"@{host}", "-p", str(port), "+short"), at))
        await verdict.case("SRV with a port", _srv((path, f"@{host}", "-p", str(port), "+short"), at))
    return verdict


async def kdig(directory: Path) -> Verdict:
    """kdig, over TCP."""
    path, version = await tools.on_path("kdig", "knot-dnsutils")
    verdict = Verdict(version)
    async with world(directory, "dns") as at:
        host, port = at.gateway.dns
        await follow(verdict, at, _looked_up((path, f"@{host}", "-p", str(port), "+tcp", "+short"), at))
    return verdict


async def dnsmasq(directory: Path) -> Verdict:
    """dnsmasq in front, which caches; dig asks it."""
    path, version = await tools.on_path("dnsmasq", "dnsmasq-base")
    asking, _ = await tools.on_path("dig", "bind9-dnsutils")
    verdict, port = Verdict(version), quiet_port()
    async with world(directory, "dns") as at:
        host, upstream = at.gateway.dns
        flags = (f"--port={port}", "--no-resolv", "--no-hosts", "--listen-address=127.0.0.1", "--bind-interfaces")
        forward = f"--server=/hq.internal/{host}#{upstream}"
        order = (path, "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root", *flags, forward)
        async with started(order, directory / "dnsmasq.log"):
            shows = _looked_up((asking, "@127.0.0.1", "-p", str(port), "+short", "+timeout=1"), at)
            await follow(verdict, at, shows, changes=_CACHED_CHANGES)
    return verdict


async def coredns(directory: Path) -> Verdict:
    """CoreDNS in front, with the example's cache; dig asks it."""
    path, version = await tools.go_program("coredns", "github.com/coredns/coredns", "coredns_go")
    asking, _ = await tools.on_path("dig", "bind9-dnsutils")
    verdict, port = Verdict(version), quiet_port()
    async with world(directory, "dns") as at:
        config = (ROOT / "examples/gateways/Corefile").read_text().replace(":1053", f":{port}")
        config = config.replace("127.0.0.1:7653 127.0.0.1:7654", at.gateway.dns_address)
        (directory / "Corefile").write_text(config)
        async with started((path, "-conf", directory / "Corefile"), directory / "coredns.log"):
            shows = _looked_up((asking, "@127.0.0.1", "-p", str(port), "+short"), at)
            await follow(verdict, at, shows, changes=_CACHED_CHANGES)
    return verdict


async def dns_go(directory: Path) -> Verdict:
    """Go's own resolver."""
    path, version = await tools.go_program("dnsfollow", "google.golang.org/grpc")
    verdict, log = Verdict(version.replace("google.golang.org/grpc", "Go, beside grpc")), directory / "found.log"
    async with world(directory, "dns") as at, started((path, at.gateway.dns_address, _WEB), log):

        async def shows(id_: str) -> None:
            await within(lambda: _last(log) == f"found {_address(id_)}")

        await follow(verdict, at, shows)
    return verdict


async def dns_grpc(directory: Path) -> Verdict:
    """gRPC's `dns:///`, whose resolver is c-ares: it asks for addresses with a server that is named."""
    import grpc

    verdict, log = Verdict(f"grpcio {grpc.__version__}"), directory / "calls.log"
    async with world(directory, "dns") as at:
        host, port = at.gateway.dns
        target = f"dns://{host}:{port}/{_WEB}:{at.ports['web-1']}"
        order = (sys.executable, "-m", "tests.judges.xds_caller", target, _CALL_MS, "anew")
        async with started(order, log, {"GRPC_DNS_RESOLVER": "ares"}):
            await follow(verdict, at, _settled(log))
    return verdict


async def dns_libc(directory: Path) -> Verdict:
    """getaddrinfo of the C library: it asks port 53 of what /etc/resolv.conf names, here in a mount namespace."""
    path, version = await tools.on_path("unshare", "util-linux")
    if os.geteuid() != 0:
        raise Missing("needs root, for port 53 and a mount namespace")
    verdict, log = Verdict(f"{' '.join(platform.libc_ver())}, {version}"), directory / "found.log"
    (directory / "resolv.conf").write_text(f"nameserver {_LIBC_SERVER}\noptions timeout:1 attempts:5\n")
    mount = f"mount --bind '{directory / 'resolv.conf'}' /etc/resolv.conf"
    look = f"exec '{sys.executable}' -m tests.judges.name_follower {_WEB}"
    async with (
        world(directory, "dns", "--dns", f"{_LIBC_SERVER}:53") as at,
        started((path, "--mount", "sh", "-c", f"{mount} && {look}"), log),
    ):

        async def shows(id_: str) -> None:
            await within(lambda: _last(log) == f"found {_address(id_)}")

        await follow(verdict, at, shows)
    return verdict


def _address(id_: str) -> str:
    return f"127.0.0.{PAIR.index(id_) + 1}"


def _looked_up(order: Sequence[str | Path], at: World) -> Callable[[str], Awaitable[None]]:
    async def shows(id_: str) -> None:
        async with asyncio.timeout(30):
            while True:
                try:
                    found = (await must((*order, _WEB), 10.0)).split()
                except (RuntimeError, TimeoutError):  # nobody answers: the gateway was killed a moment ago
                    found = []
                if found == [_address(id_)]:
                    return

    return shows


async def _srv(order: Sequence[str | Path], at: World) -> None:
    found = (await must((*order, f"_http._tcp.{_WEB}", "SRV"), 10.0)).split()
    assert found[2] == str(at.ports[at.ready]), found


# --- Consul -------------------------------------------------------------------------------------------------------


async def consul_template(directory: Path) -> Verdict:
    """consul-template over the example's template, with its defaults but that it never gives up."""
    path, version = await tools.go_tool("consul-template")
    verdict, out = Verdict(version), directory / "out"
    async with world(directory, "consul") as at:
        template = f"{ROOT / 'examples/gateways/web.ctmpl'}:{out}"
        flags = ("-consul-addr", at.gateway.http, "-consul-retry-attempts=0", "-template", template)
        async with started((path, *flags), directory / "template.log"):

            async def shows(id_: str) -> None:
                await within(lambda: out.exists() and out.read_text().split() == ["server", f"{_place(at, id_)};"])

            await follow(verdict, at, shows)
    return verdict


async def consul_go(directory: Path) -> Verdict:
    """HashiCorp's Go client, with blocking queries."""
    path, version = await tools.go_program("consulfollow", "github.com/hashicorp/consul/api")
    verdict, log = Verdict(version), directory / "found.log"
    async with world(directory, "consul") as at, started((path, at.gateway.http, "web"), log):

        async def shows(id_: str) -> None:
            await within(lambda: _last(log) == f"found {_place(at, id_)}")

        async def never_empty() -> None:
            assert "found " not in {line[:7] for line in log.read_text().splitlines() if line.strip() == "found"}

        await follow(verdict, at, shows)
        await verdict.case("it was never told that there is nobody", never_empty())
    return verdict


async def consul_python(directory: Path) -> Verdict:
    """py-consul, with blocking queries, as its users write them."""
    path = f"{tools.packages('py-consul')}:{environment()['PYTHONPATH']}"
    verdict, log = Verdict(f"py-consul {tools.PY_CONSUL}"), directory / "found.log"
    order = (sys.executable, "-m", "tests.judges.consul_follower")
    async with world(directory, "consul") as at, started((*order, at.gateway.http, "web"), log, {"PYTHONPATH": path}):

        async def shows(id_: str) -> None:
            await within(lambda: _last(log) == f"found {_place(at, id_)}")

        await follow(verdict, at, shows)
    return verdict


async def consul_prometheus(directory: Path) -> Verdict:
    """Prometheus' discovery of Consul, set up as in the example, as a library: Debian's program is built without it."""
    path, version = await tools.go_program("promfollow", "github.com/prometheus/prometheus")
    verdict, log = Verdict(version), directory / "found.log"
    async with (
        world(directory, "consul") as at,
        started((path, json.dumps(_consul_sd(at.gateway.http))), log),
    ):

        async def shows(id_: str) -> None:
            await within(lambda: _last(log) == f"found {_place(at, id_)}", 60.0)  # it waits for 15 s after an error

        await follow(verdict, at, shows)
    return verdict


def _consul_sd(address: str) -> dict[str, Any]:
    """Of the example, where it is a comment."""
    _, _, text = (ROOT / "examples/gateways/prometheus.yml").read_text().partition("`hq-gateway consul`:\n")
    [job] = yaml.safe_load(re.sub("^  # ?", "", text, flags=re.MULTILINE))
    [found] = job["consul_sd_configs"]
    return {**found, "server": address, "refresh_interval": "20ms"}  # the least time between two questions


async def consul_traefik(directory: Path) -> Verdict:
    """Traefik's provider of Consul's catalog, as a library: its program cannot be built from its module."""
    path, version = await tools.go_program("traefikfollow", "github.com/traefik/traefik/v3", "traefik_go")
    verdict, log = Verdict(version), directory / "found.log"
    async with world(directory, "consul") as at, started((path, at.gateway.http, "web"), log):

        async def shows(id_: str) -> None:
            await within(lambda: _last(log) == f"found {_place(at, id_)}")

        await follow(verdict, at, shows)
    return verdict


def _place(at: World, id_: str) -> str:
    return f"{_address(id_)}:{at.ports[id_]}"


def _last(path: Path) -> str:
    """The last line that is no error."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("found")] if path.exists() else []
    return lines[-1] if lines else ""
