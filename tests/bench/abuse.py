"""A well-behaved client alone, and beside somebody with another identity and address who does the worst they can."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from hqpb.v1 import service_pb2 as pb
from tests.bench import load, lookups
from tests.bench.abuser import KINDS, WATCHES
from tests.bench.bench import Bench
from tests.bench.load import Shape, Target
from tests.bench.machine import ROOT
from tests.bench.probe import Found, Probing, probing
from tests.bench.stand import SERVICE, stand
from tests.bench.stats import percentile
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import instance
from tests.support.secured import Secured
from tests.support.token_issuer import ISSUER

GROUP = "abuse"
RATE, RATE_OF_REPORTS, RATE_OF_BEGINS = 200.0, 50.0, 10.0
ALONE = "alone"
HEARTBEATS, STARTS = (
    f"{RATE_OF_REPORTS:.0f} heartbeats/s at the agents' listener",
    f"{RATE_OF_BEGINS:.0f} starts of agents/s there",
)
FAILED = "calls of a well-behaved client that failed beside all of these"
_BEGIN_S = 1.0
# What an operator sets who expects abuse, in proportion to a client of 200 calls a second.
_FLAGS = ("--max-calls-per-peer-s", "500", "--max-connections-per-peer", "400", "--slow-request", "3s")
# Two addresses of one machine without a relay between: IPv6 for one, IPv4 for the other.
_EVERYWHERE = ("--grpc", "[::]:0", "--http", "[::]:0", "--agents", "[::]:0", "--insecure")

Abuse = Callable[[float], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Parties:
    """The replica, the tokens of both, and an agent with a report of one revision, and the start of another."""

    replica: ReplicaProcess
    good: str
    bad: str
    agent: str
    report: bytes
    begin: bytes

    def target(self, method: str, token: str) -> Target:
        """The target as the abuser names it."""
        return Target(f"127.0.0.1:{_port(self.replica.grpc)}", f"{SERVICE}/{method}", (), token)

    @property
    def http(self) -> str:
        """The address that the abuser calls over HTTP."""
        return f"127.0.0.1:{_port(self.replica.http)}"

    def probing(self, seconds: float) -> Probing:
        """The lookups of the well-behaved one."""
        lookup = lookups.get()
        body = lookup.request.SerializeToString().hex()
        address = f"[::1]:{_port(self.replica.grpc)}"
        return Probing(address, f"{SERVICE}/{lookup.method}", body, self.good, RATE, seconds)

    def reporting(self, seconds: float) -> Probing:
        """The heartbeats of the agent."""
        return self._agent("ReportStatus", self.report, RATE_OF_REPORTS, seconds)

    def beginning(self, seconds: float) -> Probing:
        """Starts of the agent: each is a write."""
        return self._agent("BeginReporting", self.begin, RATE_OF_BEGINS, seconds)

    def _agent(self, method: str, message: bytes, rate: float, seconds: float) -> Probing:
        """At the agents' listener."""
        found = re.search(r"for agents \S+:(\d+)", self.replica.log_text())
        assert found
        return Probing(f"[::1]:{found[1]}", f"{SERVICE}/{method}", message.hex(), self.agent, rate, seconds)


async def run(bench: Bench) -> None:
    """The group `abuse`."""
    async with stand(bench.directory / GROUP, 23_000) as made:
        files = Secured(bench.directory / "abused")
        tokens = ("--jwks", str(files.issuer.jwks), "--issuer", ISSUER, "--policy", str(files.policy))
        replica = await made.replica(*tokens, *_FLAGS, *_EVERYWHERE, "--audit-log", str(files.audit))
        good, bad = (files.issuer.token(f"reader/{name}", good_for_s=7_200) for name in ("good", "bad"))
        agent, admin = (files.issuer.token(name, good_for_s=7_200) for name in ("agent/abused", "admin"))
        await _measure(bench, Parties(replica, good, bad, agent, *await _begun(replica, admin, agent)))


async def _begun(replica: ReplicaProcess, admin: str, agent: str) -> tuple[bytes, bytes]:
    """Two instances of a node of its own: a report of one, and the start of reports of the other; sent once."""
    async with replica.stub() as stub:
        for name in ("abused", "restarted"):
            request = pb.CreateInstanceRequest(instance=instance(name, node="abused"))
            await stub.CreateInstance(request, metadata=_bearer(admin))
        begin, other = (
            pb.BeginReportingRequest(instance_id=name, revision_id="r1", node="abused")
            for name in ("abused", "restarted")
        )
        begun = await stub.BeginReporting(begin, metadata=_bearer(agent))
        await stub.BeginReporting(other, metadata=_bearer(agent))
        report = pb.ReportStatusRequest(instance_id="abused", uid=begun.uid, node="abused")
        report.revision.id, report.revision.incarnation, report.revision.sequence = "r1", begun.incarnation, 1
        await stub.ReportStatus(report, metadata=_bearer(agent))
    return report.SerializeToString(), other.SerializeToString()


def _bearer(token: str) -> tuple[tuple[str, str]]:
    return (("authorization", f"Bearer {token}"),)


async def _measure(bench: Bench, parties: Parties) -> None:
    seconds = 2.0 if bench.quick else 8.0
    probes = {
        f"{RATE:.0f} lookups/s": parties.probing(seconds),
        HEARTBEATS: parties.reporting(seconds),
        STARTS: parties.beginning(seconds),
    }
    kinds: dict[str, Abuse] = {ALONE: lambda _: nullcontext(), **_kinds(parties)}
    p99_ms: dict[tuple[str, str], list[float]] = {(kind, name): [] for kind in kinds for name in probes}
    failed, calls = 0, 0
    for _ in range(1 if bench.quick else 3):
        for kind, abuse in kinds.items():
            for name, found in zip(probes, await _beside(abuse, [*probes.values()]), strict=True):
                p99_ms[kind, name].append(percentile(sorted(found.ms), 0.99))
                failed, calls = failed + sum(found.failed.values()), calls + len(found.ms)
                if found.failed:
                    bench.say(f"{GROUP:10} {name} {_beside_words(kind)}: {found.failed} failed")
    for (kind, name), values in p99_ms.items():
        bench.fact(GROUP, f"{name} {_beside_words(kind)}: p99", values, "ms")
    bench.fact(GROUP, "calls of a well-behaved client beside all of these", [calls], "calls")
    bench.fact(GROUP, FAILED, [failed], "calls")
    for name, count in (await asyncio.to_thread(_refused, parties)).items():
        bench.fact(GROUP, f"refused to the others, {name}", [count], "times")


def _beside_words(kind: str) -> str:
    return kind if kind == ALONE else f"beside {kind}"


async def _beside(abuse: Abuse, probes: Sequence[Probing]) -> list[Found]:
    async with abuse(probes[0].seconds + 2 * _BEGIN_S):
        await asyncio.sleep(_BEGIN_S)
        return await asyncio.gather(*map(probing, probes))


def _kinds(parties: Parties) -> dict[str, Abuse]:
    get, everything = lookups.get(), lookups.find()
    flood = partial(_flood, parties.target(get.method, parties.bad), get.request.SerializeToString(), Shape(8, 32))
    strangers = partial(_flood, parties.target(get.method, ""), get.request.SerializeToString(), Shape(8, 32))
    listing = everything.request.SerializeToString()
    listings = partial(_flood, parties.target(everything.method, parties.bad), listing, Shape(4, 2))
    return {
        "a flood of calls beyond its rate": flood,
        "a flood of calls without a token": strangers,
        "listings of 23,000 instances without pause": listings,
        "watches, each left for the next one at once": partial(_abuser, WATCHES, parties),
        **{f"{_HTTP[kind]} (HTTP)": partial(_abuser, kind, parties) for kind in KINDS},
    }


_HTTP = {
    "connections": "1,000 connections, of which it may have 400",
    "slow": "300 bodies that drip",
    "oversize": "8 bodies without end",
}


@asynccontextmanager
async def _flood(target: Target, message: bytes, shape: Shape, seconds: float) -> AsyncIterator[None]:
    with tempfile.NamedTemporaryFile() as body:
        body.write(load.grpc_frame(message))
        body.flush()
        brought = [word for header in (*load.GRPC, *target.headers()) for word in ("-H", header)]
        shaped = (f"-c{shape.connections}", f"-m{shape.streams}", "-t1", f"-D{seconds:.0f}", "-d", body.name)
        async with _niced("h2load", *shaped, *brought, target.url):
            yield


def _abuser(kind: str, parties: Parties, _seconds: float) -> AbstractAsyncContextManager[None]:
    return _niced(sys.executable, "-m", "tests.bench.abuser", kind, parties.http, parties.bad)


@asynccontextmanager
async def _niced(*command: str) -> AsyncIterator[None]:
    """A process until the end of the block; the well-behaved client, on the same machine, comes before it."""
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", "10", *command),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
        if process.returncode:
            raise RuntimeError(f"{command[0]} ended with {process.returncode}: it was no burden")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _refused(parties: Parties) -> dict[str, float]:
    """What the replica says that it refused, by limit or code: that the others were a burden, and were told so."""
    asking = urllib.request.Request(
        f"http://{parties.http}/metrics", headers={"authorization": f"Bearer {parties.good}"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asking, timeout=30) as answer:
        told = answer.read().decode()
    found = re.findall(r'^hq_(?:refused|denied)_total\{\w+="(\w+)"\} (\S+)$', told, re.MULTILINE)
    return {name: float(count) for name, count in found if float(count)}


def _port(address: str) -> str:
    return address.rpartition(":")[2]
