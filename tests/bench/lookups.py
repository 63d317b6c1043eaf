"""GetInstance and FindInstances over gRPC, HTTP proto and HTTP JSON, against constant answers and raw etcd."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from aetcd import rpc
from google.protobuf import json_format
from google.protobuf.message import Message

from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding.jsonio import to_json
from tests.bench import load
from tests.bench.bench import Bench, Side
from tests.bench.load import Shape
from tests.bench.peer_programs import current_etcd
from tests.bench.population import SIZES
from tests.bench.stand import Empty, Stand, stand

GROUP = "lookups"
FLAGS = ("--page-bytes", "12MiB")
_PROTO, _JSON = "application/proto", "application/json"
_MANY = 10_000  # different requests; HQ remembers 4,096 parsed ones


class Lookup(NamedTuple):
    """A request to compare; for etcd, the range of as many bytes."""

    name: str
    method: str
    request: Message
    raw: bytes = b""
    size: float = 0.0


def find(name: str = "", size: float = 0.0, page: int = 0, **filters: object) -> Lookup:
    """FindInstances by a filter."""
    request = service_pb2.FindInstancesRequest(filter=service_pb2.InstanceFilter(**filters), page_size=page)  # type: ignore[arg-type]
    return Lookup(name, "FindInstances", request, size=size)


def of_service(size: int) -> Lookup:
    """All instances of a service that has so many, and etcd's range over as many keys."""
    service = f"lookup-{size}"
    raw = rpc.RangeRequest(key=f"/raw/{service}.".encode(), range_end=f"/raw/{service}/".encode())
    return find(f"Find {size:,}", size, service_id=[service])._replace(raw=raw.SerializeToString())


def get() -> Lookup:
    """One instance by id."""
    raw = rpc.RangeRequest(key=b"/raw/lookup-100.00042").SerializeToString()
    return Lookup("Get", "GetInstance", service_pb2.GetInstanceRequest(id="lookup-100.00042"), raw)


def variants() -> list[Lookup]:
    """A hundred instances, asked for in other ways."""
    masked = service_pb2.FindInstancesRequest(filter={"service_id": ["lookup-100"]})
    masked.field_mask.paths.extend(["meta.id", "spec.node_name", "spec.allocation"])
    return [
        find("Find 100 ready", service_id=["lookup-100"], readiness=service_pb2.READINESS_FILTER_READY),
        find("Find 100 by label", labels={"group": "lookup-100"}),
        Lookup("Find 100 with a field mask", "FindInstances", masked),
        find("Find 100 of 1,000 (a page)", page=100, service_id=["lookup-1000"]),
    ]


async def run(bench: Bench) -> None:
    """The group `lookups`."""
    size = 23_000
    binary = current_etcd()
    bench.results.header["etcd of lookups"] = ".".join(map(str, binary.version))
    async with stand(bench.directory / GROUP, size, FLAGS, binary=binary) as made:
        sizes = SIZES[:4:3] if bench.quick else SIZES
        main = [get(), *(of_service(n) for n in ((100, *sizes) if bench.quick else sizes))]
        others = variants()[:1] if bench.quick else variants()
        empty = await _empty_for(made, [*main, *others])
        for lookup in main:
            await _each_transport(bench, made, empty, lookup)
        for lookup in others:
            await _compare(bench, made, empty, lookup, "gRPC")
            if lookup.name.endswith(("mask", "page)")):
                await _compare(bench, made, empty, lookup, "JSON")
        for lookup in () if bench.quick else (get(), of_service(100)):
            for transport in ("gRPC", "proto", "JSON"):
                for connections in (1, 16, 64):
                    await _compare(bench, made, empty, lookup, transport, connections)
        await _different(bench, made, empty)


async def _empty_for(made: Stand, lookups: Sequence[Lookup]) -> Empty:
    answers = {}
    for lookup in lookups:
        body = await made.ask(lookup.method, lookup.request.SerializeToString())
        parsed = getattr(service_pb2, f"{lookup.method}Response").FromString(body)
        _check(lookup, parsed)
        answers[file_name(lookup)], answers[file_name(lookup) + ".json"] = body, to_json(parsed)
    return await made.empty(answers)


def file_name(lookup: Lookup) -> str:
    """Where the empty handlers serve its answer."""
    return lookup.name.replace(" ", "-").replace(",", "")


def _check(lookup: Lookup, answer: Message) -> None:
    found = len(getattr(answer, "instances", [0]))
    expected = int(lookup.size) or (100 if "100" in lookup.name else 1)
    if found != expected:
        raise AssertionError(f"{lookup.name}: {found} instances in the answer, not {expected}")


async def _each_transport(bench: Bench, made: Stand, empty: Empty, lookup: Lookup) -> None:
    everything = lookup.size in ({100} if bench.quick else {0, 1, 100})  # JSON of 10,000 is in the group `single`
    transports = (
        ["gRPC", "proto", "JSON"] if everything else ["gRPC", "proto"] if lookup.size in (0, 10_000) else ["gRPC"]
    )
    for transport in transports:
        await _compare(bench, made, empty, lookup, transport)


async def _compare(
    bench: Bench, made: Stand, empty: Empty, lookup: Lookup, transport: str, connections: int = 0
) -> None:
    """`connections` (0: the case's own) share 64 calls in flight over gRPC; over HTTP each has one."""
    sides: dict[str, Side] = {}
    own = Shape(4, 16) if lookup.size < 1_000 else Shape(2, 4)
    shape = Shape(connections, 64 // connections) if connections else own
    name = file_name(lookup)
    if transport == "gRPC":
        request = [lookup.request.SerializeToString()]
        sides["hq"] = partial(load.grpc, made.hq(lookup.method), request, shape=shape)
        sides["empty"] = partial(load.grpc, empty.target(name), request, shape=shape)
        if lookup.raw:
            sides["etcd"] = partial(load.grpc, made.raw("KV/Range"), [lookup.raw], shape=shape)
    else:
        is_json = transport == "JSON"
        body = _as_json(lookup.request) if is_json else lookup.request.SerializeToString()
        kind, target = (_JSON, name + ".json") if is_json else (_PROTO, name)
        most = connections or (16 if lookup.size < 1_000 else 4)
        http = partial(load.http, content_type=kind, connections=most)
        sides["hq"] = partial(_http, http, made.hq(lookup.method, http=True), [body])
        sides["empty"] = partial(_http, http, empty.target(target, http=True), [body])
    case = f"{lookup.name}, {transport}" + (f", {connections} connections" if connections else "")
    size = lookup.size if lookup.raw and not connections else 0
    await bench.compare(GROUP, case, sides, size=size)


async def _http(http, target, bodies, seconds):  # type: ignore[no-untyped-def]
    return await http(target, bodies, seconds=seconds)


async def _different(bench: Bench, made: Stand, empty: Empty) -> None:
    """Ten thousand different ids in turn: nothing that HQ remembers of requests helps."""
    ids = [stored.id for stored, _ in zip(made.population, range(_MANY), strict=False)]
    for name, lookup, requests in (
        ("Get, always different, proto", get(), [service_pb2.GetInstanceRequest(id=i) for i in ids]),
        ("Find 1 by id, always different, proto", get(), [_by_id(i) for i in ids]),
    ):
        bodies = [request.SerializeToString() for request in requests]
        http = partial(load.http, content_type=_PROTO)
        method = "GetInstance" if name.startswith("Get") else "FindInstances"
        sides: dict[str, Side] = {
            "hq": partial(_http, http, made.hq(method, http=True), bodies),
            "empty": partial(_http, http, empty.target(file_name(lookup), http=True), bodies),
        }
        await bench.compare(GROUP, name, sides)


def _by_id(instance_id: str) -> service_pb2.FindInstancesRequest:
    return service_pb2.FindInstancesRequest(filter={"instance_id": [instance_id]})


def _as_json(message: Message) -> bytes:
    return json_format.MessageToJson(message, indent=None).encode()


__all__ = ["GROUP", "instance_pb2", "run"]
