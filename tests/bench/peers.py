"""HQ beside Consul, etcd and Eureka: 100 ready instances of one service among 10,000, each over its native API."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, TypeVar

from aetcd import rpc

from hqpb.v1 import service_pb2
from store.embedded import EmbeddedEtcd
from store.etcd import EtcdConfig, EtcdStore
from store.port import Write
from tests.bench import load, raw
from tests.bench.bench import Bench, Side
from tests.bench.filling import MAX_TXN_OPS, fill
from tests.bench.heartbeats import by_fifty, single
from tests.bench.load import Shape, Target
from tests.bench.lookups import of_service
from tests.bench.peer_programs import Consul, Eureka, Instance, Peer, check, current_etcd
from tests.bench.population import Population, change_of
from tests.bench.report import table
from tests.bench.results import Fact, Results
from tests.bench.stand import SERVICE, Stand, stand
from tests.bench.stats import Sample, percentile, short
from tests.bench.ticking import sequence
from tests.bench.usage import memory_bytes

GROUP: Final = "peers"
HTTP, GRPC, HEARTBEATS = "100 of 10,000, HTTP", "100 of 10,000, gRPC", "Heartbeats, 64 callers"
_SIZE: Final = 10_000
_CHANGES: Final = 100
_PATIENCE_S: Final = 90.0  # with Eureka's caches: each is made anew every half minute
_NAME: Final = "lookup-100"
P = TypeVar("P", Consul, Eureka)


async def run(bench: Bench) -> None:
    """The group `peers`."""
    check()
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(stand(bench.directory / GROUP, 1))
        empty = memory_bytes(made.replicas[0].pid)
        made = await stack.enter_async_context(stand(bench.directory / f"{GROUP}-hq", _SIZE))
        _memory(bench, "HQ", empty, made.replicas[0].pid)
        etcd = await _etcd(bench, stack)
        consul, eureka = await _filled(bench, stack, Consul), await _filled(bench, stack, Eureka)
        await _lookups(bench, made, etcd, consul, eureka)
        await _heartbeats(bench, made, etcd, consul, eureka)
        await _propagation(bench, made, etcd, consul, eureka)


def _instances() -> Iterator[Instance]:
    for number, stored in enumerate(Population(_SIZE)):
        yield Instance(stored.id, stored.service, stored.node, 20_000 + number % 20_000)


def _memory(bench: Bench, who: str, before: int, pid: int) -> None:
    bench.fact(GROUP, f"memory each, {who}", [(memory_bytes(pid) - before) / _SIZE / 1_000], "kB")


async def _etcd(bench: Bench, stack: AsyncExitStack) -> EmbeddedEtcd:
    """A current one, which holds what HQ's holds; its memory is that of the values under two keys each."""
    flags = (f"--max-txn-ops={MAX_TXN_OPS}", "--max-request-bytes=16777216")
    etcd = EmbeddedEtcd(bench.directory / "peer-etcd", binary=current_etcd(), extra_flags=flags)
    await etcd.start()
    stack.push_async_callback(etcd.kill)
    before = memory_bytes(etcd.process.pid)
    await fill(etcd.endpoint, Population(_SIZE), "/hq/v1/")
    _memory(bench, "etcd", before, etcd.process.pid)
    return etcd


async def _filled(bench: Bench, stack: AsyncExitStack, kind: type[P]) -> P:
    peer = await kind.start(bench.directory / kind.__name__)
    stack.push_async_callback(peer.kill)
    before = memory_bytes(peer.pid)
    await asyncio.to_thread(peer.register_all, peer.register, _instances())
    _memory(bench, kind.__name__, before, peer.pid)
    return peer


# --- lookups --------------------------------------------------------------------------------------------------------


async def _lookups(bench: Bench, made: Stand, etcd: EmbeddedEtcd, consul: Consul, eureka: Eureka) -> None:
    find = of_service(100)
    ready = service_pb2.FindInstancesRequest(filter={"service_id": [_NAME]})
    ready.filter.readiness = service_pb2.READINESS_FILTER_READY
    proto = ready.SerializeToString()
    as_json = {"filter": {"serviceId": [_NAME], "readiness": "READINESS_FILTER_READY"}}
    masked = {**as_json, "fieldMask": "meta.id,spec.nodeName,spec.allocation"}
    hq, health = made.hq("FindInstances", http=True), f"/v1/health/service/{_NAME}?passing"
    apps = f"/eureka/apps/{_NAME.upper()}"
    await _check(consul, health, eureka, apps)
    sides: dict[str, Side] = {
        "hq": _post(hq, json.dumps(as_json).encode(), "application/json"),
        "HQ with a mask": _post(hq, json.dumps(masked).encode(), "application/json"),
        "HQ in protobuf": _post(hq, proto, "application/proto"),
        "Consul": _get(consul.target(health)),
        "Consul stale": _get(consul.target(f"{health}&stale")),
        "Consul cached": _get(consul.target(f"{health}&cached")),
        "Eureka": _get(eureka.target(apps)),
    }
    compared = await bench.compare(GROUP, HTTP, sides, note="hq: JSON; 16 connections")
    raw_etcd = Target(etcd.endpoint, "/etcdserverpb.KV/Range", (etcd.process.pid,))
    asked = []
    for connections in (1, 16, 64):
        shape = Shape(connections, 64 // connections)
        grpc_sides: dict[str, Side] = {
            "hq": partial(load.grpc, made.hq("FindInstances"), [proto], shape=shape),
            "etcd": partial(load.grpc, raw_etcd, [find.raw], shape=shape),
        }
        name = f"{GRPC}, {connections} connections"
        note = f"{shape.streams} calls in flight on each"
        asked.append(await bench.compare(GROUP, name, grpc_sides, note=note))
    for one in (compared, asked[0]):
        for side, samples in one.sides.items():
            who = {"hq": "HQ JSON" if one is compared else "HQ gRPC", "etcd": "etcd gRPC"}.get(side, side)
            bench.fact(GROUP, f"bytes of an answer, {who}", [samples[-1].answer_bytes], "B")


def _post(target: Target, body: bytes, content_type: str) -> Side:
    async def side(seconds: float) -> Sample:
        return await load.http(target, [body], content_type, seconds, connections=16)

    return side


def _get(target: Target, method: str = "GET", connections: int = 16) -> Side:
    async def side(seconds: float) -> Sample:
        return await load.http(target, [b""], "application/json", seconds, connections, method=method)

    return side


async def _check(consul: Consul, health: str, eureka: Eureka, apps: str) -> None:
    """All of them answer with a hundred. Raises AssertionError."""
    answers = [await asyncio.to_thread(peer.ask, "GET", path) for peer, path in ((consul, health), (eureka, apps))]
    healthy, app = (json.loads(body) for body, _ in answers)
    assert len(healthy) == len(app["application"]["instance"]) == 100


# --- heartbeats -----------------------------------------------------------------------------------------------------


async def _heartbeats(bench: Bench, made: Stand, etcd: EmbeddedEtcd, consul: Consul, eureka: Eureka) -> None:
    """One by one; by fifty only HQ takes them."""
    lease = rpc.LeaseGrantRequest(TTL=600).SerializeToString()
    granted = rpc.LeaseGrantResponse.FromString(await raw.ask(etcd.endpoint, "/etcdserverpb.Lease/LeaseGrant", lease))
    keep = rpc.LeaseKeepAliveRequest(ID=granted.ID).SerializeToString()
    kept = Target(etcd.endpoint, "/etcdserverpb.Lease/LeaseKeepAlive", (etcd.process.pid,))
    renewed = eureka.target(f"/eureka/apps/{_NAME.upper()}/{_NAME}.00042")
    sides: dict[str, Side] = {
        "hq": partial(load.grpc, made.hq("ReportStatus"), single(made.population, 8), shape=Shape(1, 8)),
        "etcd lease": partial(load.grpc, kept, [keep], shape=Shape(8, 8)),
        "Consul TTL check": _get(consul.target(await asyncio.to_thread(consul.heard)), "PUT", 64),
        "Eureka": _get(renewed, "PUT", 64),
    }
    note = "stored before they are acknowledged by HQ only; the others keep them in memory"
    await bench.compare(GROUP, HEARTBEATS, sides, note=note)
    fifty = {"hq": partial(load.grpc, made.hq("ReportStatuses"), by_fifty(made.population, 8), shape=Shape(1, 8))}
    await bench.compare(GROUP, f"{HEARTBEATS}, by 50", fifty, per_answer=50)


# --- propagation ----------------------------------------------------------------------------------------------------


async def _propagation(bench: Bench, made: Stand, etcd: EmbeddedEtcd, consul: Consul, eureka: Eureka) -> None:
    """From sending a change to its arrival at one who follows the service."""
    instance = next(one for one in _instances() if one.id == f"{_NAME}.00042")
    for who, times_ms in (
        ("HQ", await _of_hq(made)),
        ("etcd", await _of_etcd(etcd)),
        ("Consul", await asyncio.to_thread(_of_consul, consul, instance)),
        ("Eureka", await asyncio.to_thread(_of_eureka, eureka, instance, 1 if bench.quick else 3)),
    ):
        times_ms.sort()
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            value = percentile(times_ms, share)
            bench.fact(GROUP, f"sent to seen, {who}: {name}", [value], "ms", note=f"{len(times_ms)} changes")


async def _of_hq(made: Stand) -> list[float]:
    stored = next(one for one in made.population if one.id == f"{_NAME}.00042")
    watched = service_pb2.WatchInstancesRequest(filter={"service_id": [_NAME]}).SerializeToString()
    first, address = sequence(), made.replicas[0].grpc
    async with raw.channel(address) as watching, raw.channel(address) as writing:
        messages = raw.stream(watching, f"{SERVICE}/WatchInstances")(watched)
        report = raw.unary(writing, f"{SERVICE}/ReportStatus")

        async def change(number: int) -> None:
            await report(change_of(stored, first + number).SerializeToString())

        async def seen() -> None:
            while service_pb2.WatchInstancesResponse.FromString(await messages.read()).kind != wanted:
                pass

        wanted: int = service_pb2.WATCH_KIND_SYNCED
        await seen()
        wanted = service_pb2.WATCH_KIND_EVENTS
        return await _times(change, seen)


async def _of_etcd(etcd: EmbeddedEtcd) -> list[float]:
    store = EtcdStore(EtcdConfig((etcd.endpoint,)))
    key = f"/raw/{_NAME}.00042".encode()
    _, head = await store.get(key)
    async with store.watch(key, key + b"\0", after=head) as stream:
        batches = aiter(stream)

        async def change(number: int) -> None:
            await store.commit((), (Write((), ((key, b"%600d" % number),)),), 5.0)

        async def seen() -> None:
            await anext(batches)

        times_ms = await _times(change, seen)
    await store.close()
    return times_ms


async def _times(change: Callable[[int], Awaitable[None]], seen: Callable[[], Awaitable[None]]) -> list[float]:
    times_ms = []
    for number in range(_CHANGES):
        began = time.monotonic()
        writing = asyncio.ensure_future(change(number))
        await seen()
        times_ms.append((time.monotonic() - began) * 1000)
        await writing
        await asyncio.sleep(0.01)
    return times_ms


def _of_consul(consul: Consul, instance: Instance) -> list[float]:
    path, times_ms, waiter = f"/v1/health/service/{_NAME}?passing", [], ThreadPoolExecutor(1)
    _, headers = consul.ask("GET", path)
    for number in range(_CHANGES):
        asked = f"{path}&index={headers['x-consul-index']}&wait=30s"
        waiting = waiter.submit(_asked, consul, asked)
        time.sleep(0.02)  # until the question waits
        began = time.monotonic()
        consul.put(instance, ("critical", "passing")[number % 2])
        (_, headers), ended = waiting.result()
        times_ms.append((ended - began) * 1000)
    waiter.shutdown()
    return times_ms


def _asked(peer: Peer, path: str) -> tuple[tuple[bytes, dict[str, str]], float]:
    return peer.ask("GET", path), time.monotonic()


def _of_eureka(eureka: Eureka, instance: Instance, changes: int) -> list[float]:
    """Its server caches what it answers, so that this takes up to half a minute."""
    path, times_ms = f"/eureka/apps/{_NAME.upper()}", []
    for number in range(changes):
        status = ("OUT_OF_SERVICE", "UP")[number % 2]
        began = time.monotonic()
        eureka.put(instance, status)
        while _status(eureka, path, instance.id) != status:
            if time.monotonic() - began > _PATIENCE_S:
                raise AssertionError(f"Eureka does not show {status} after {_PATIENCE_S:g} s")
            time.sleep(0.05)
        times_ms.append((time.monotonic() - began) * 1000)
    return times_ms


def _status(peer: Peer, path: str, instance_id: str) -> str:
    found = json.loads(peer.ask("GET", path)[0])["application"]["instance"]
    return next(str(one["status"]) for one in found if one["instanceId"] == instance_id)


# --- the page -------------------------------------------------------------------------------------------------------


def block(results: Results) -> str:
    """Tables of what was measured, and where HQ loses."""
    compared = [c for c in results.comparisons if c.group == GROUP]
    if not compared:
        return "Not measured yet: `make bench CASES=peers`."
    rows: list[tuple[str, ...]] = [("case", "who", "per second", "p99 ms", "CPU µs each", "HQ against it")]
    lost = []
    for comparison in compared:
        for side in comparison.sides:
            share = comparison.ratio(side).median
            name = {"hq": "**HQ**"}.get(side, side)
            told = "" if side == "hq" else f"{short(share)} times"
            numbers = (short(comparison.of(measure, side).median) for measure in ("p99_ms", "cpu_us"))
            rows.append((comparison.name, name, short(comparison.rate(side).median), *numbers, told))
            if side != "hq" and not side.startswith("HQ") and share < 1:
                lost.append(f"{comparison.name}: {side} answers {short(1 / share)} times as often")
    facts = [f for f in results.facts if f.group == GROUP]
    others = [("what", "figure"), *((f.name, f"{short(f.spread().median)} {f.unit}") for f in facts)]
    lost += _least(facts)
    said = "\n".join(f"- {word}" for word in lost) or "- nowhere in this run"
    return f"{table(rows)}\n\n{table(others)}\n\nWhere HQ loses:\n\n{said}"


def _least(facts: Sequence[Fact]) -> list[str]:
    """Numbers of which less is better, and another one has less."""
    lost = []
    for name in dict.fromkeys(fact.name.partition(", ")[0] for fact in facts):
        for tail in ("", ": p50", ": p99"):
            values = {
                f.name.partition(", ")[2].removesuffix(tail): f.spread().median
                for f in facts
                if f.name.startswith(f"{name}, ") and f.name.endswith(tail) and (tail or ": " not in f.name)
            }
            own = [value for who, value in values.items() if who.startswith("HQ")]
            if own:
                least = [f"{who} {short(value)}" for who, value in values.items() if value < min(own)]
                lost += [f"{name}{tail}: {', '.join(least)}, HQ {short(min(own))}"] if least else []
    return lost
