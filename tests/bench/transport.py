"""The transport against the empty handlers of grpc.aio and uvicorn, and a range of etcd; and what idle watches cost."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import Coroutine
from dataclasses import replace
from functools import cache, partial
from itertools import cycle
from typing import Any, Final, NamedTuple

from hqpb.v1 import service_pb2
from serving.encoding.jsonio import to_json
from serving.transport.client import Channel
from tests.bench import load, tools
from tests.bench.bench import Bench, Side
from tests.bench.load import Shape, Target
from tests.bench.lookups import Lookup, file_name, get, of_service
from tests.bench.stand import SERVICE, Empty, Stand, stand
from tests.bench.stats import Sample
from tests.bench.usage import cpu_s, memory_bytes
from tests.support.replicas import ReplicaProcess
from tests.support.secured import Secured
from tests.support.token_issuer import ISSUER

GROUP: Final = "transport"
SHAPES: Final = (Shape(1, 64), Shape(16, 8), Shape(64, 4))
NARROW: Final = "Find 100, gRPC, 1 connection, windows of 64 KiB"
AWAKE: Final = f"{NARROW}, cores kept awake"
OPENED: Final = "idle watch: CPU to open"
FRESH: Final = "Get, gRPC, fresh deadlines, tokens and trace ids"
ALONE: Final = "idle watch on a connection of its own: memory"
ALONE_WITH_TLS: Final = f"{ALONE}, TLS"
WAYS: Final = ("TLS", "tokens", "TLS and tokens")
_WEB_CONNECTIONS: Final = 64
_CALLERS: Final = 100
_CHANNELS, _WATCHES, _BOOKMARKS_S = 4, 3_000, 12.0
_BURST: Final = 1_000  # opened at once: of 3,000 at once grpc.aio cancels some
_ALONE: Final = 500  # watches that have a connection each
_PATIENCE_S: Final = 60.0


class _Row(NamedTuple):
    name: str
    sides: dict[str, Side]


async def run(bench: Bench) -> None:
    """The group `transport`."""
    async with stand(bench.directory / GROUP, 3_000) as made:
        lookups = [get(), of_service(100)]
        answers: dict[str, bytes] = {}
        for one in lookups:
            answer = await made.ask(one.method, one.request.SerializeToString())
            parsed = getattr(service_pb2, f"{one.method}Response").FromString(answer)
            answers |= {file_name(one): answer, f"{file_name(one)}.json": to_json(parsed)}
        empty = await made.empty(answers)
        files = Secured(bench.directory / "secured")
        ways = await _ways(made, files)
        empty_with_tls = await made.empty(answers, files.server)
        for one in lookups:
            rows = [_plain(made, empty, one, shape) for shape in (SHAPES[1:2] if bench.quick else SHAPES)]
            rows += [_secured(made, empty_with_tls if "TLS" in way else empty, one, way, ways[way]) for way in WAYS]
            rows += [_web(made, empty, one, kind) for kind in ("proto", "json")]
            if one is lookups[1]:
                narrow = _plain(made, empty, one, Shape(1, 64, window_bits=16))
                rows.append(narrow._replace(name=NARROW))
                rows.append(_Row(AWAKE, {name: _awake(side) for name, side in narrow.sides.items()}))
            for row in rows:
                await bench.compare(GROUP, row.name, row.sides)
        await _fresh(bench, ways["tokens"], empty, files)
        interpreted = await made.replica(enter=("env", "SERVING_INTERPRETED=1"))
        for one in lookups:
            row = _plain(made, empty, one, SHAPES[1])
            call = partial(load.grpc, messages=[one.request.SerializeToString()], shape=SHAPES[1])
            target = Target(interpreted.grpc, f"{SERVICE}/{one.method}", (interpreted.pid,))
            sides = {"hq": row.sides["hq"], "interpreted": _loading(call, target), "empty": row.sides["empty"]}
            await bench.compare(GROUP, f"{one.name}, gRPC, compiled and interpreted", sides)
        await _idle_watches(bench, made)
        tls = await made.replica(*_tls(files), "--insecure", ca=files.authority.cert)
        burst = await made.replica(*_tls(files), "--insecure", ca=files.authority.cert)
        await _alone(bench, ALONE, await made.replica(), _ALONE // 10)
        await _alone(bench, ALONE_WITH_TLS, tls, _ALONE // 10)
        await _alone(bench, f"{ALONE_WITH_TLS}, all at once", burst, _ALONE)


def case_name(name: str, shape: Shape) -> str:
    """The case's name in the table."""
    return f"{name}, gRPC, {shape.connections} connections x {shape.streams}"


def _plain(made: Stand, empty: Empty, lookup: Lookup, shape: Shape) -> _Row:
    call = partial(load.grpc, messages=[lookup.request.SerializeToString()], shape=shape)
    etcd = partial(load.grpc, messages=[lookup.raw], shape=shape)
    sides = {
        "hq": _loading(call, made.hq(lookup.method)),
        "empty": _loading(call, empty.target(file_name(lookup))),
        "etcd": _loading(etcd, made.raw("KV/Range")),
    }
    return _Row(case_name(lookup.name, shape), sides)


def _secured(made: Stand, empty: Empty, lookup: Lookup, way: str, hq: Target) -> _Row:
    call = partial(load.grpc, messages=[lookup.request.SerializeToString()], shape=SHAPES[1])
    sides = {
        "hq": _loading(call, replace(hq, path=f"{SERVICE}/{lookup.method}")),
        "empty": _loading(call, replace(empty.target(file_name(lookup)), tls="TLS" in way)),
        "plain": _loading(call, made.hq(lookup.method)),
    }
    return _Row(f"{lookup.name}, gRPC, {way}", sides)


def _web(made: Stand, empty: Empty, lookup: Lookup, kind: str) -> _Row:
    body = to_json(lookup.request) if kind == "json" else lookup.request.SerializeToString()
    call = partial(load.http, messages=[body], content_type=f"application/{kind}", connections=_WEB_CONNECTIONS)
    file = file_name(lookup) + (".json" if kind == "json" else "")
    sides = {
        "hq": _loading(call, made.hq(lookup.method, http=True)),
        "empty": _loading(call, empty.target(file, http=True)),
    }
    return _Row(f"{lookup.name}, HTTP/1.1 {kind}", sides)


def _loading(call: partial[Coroutine[Any, Any, Sample]], target: Target) -> Side:
    return lambda seconds: call(target, seconds=seconds)


def _awake(side: Side) -> Side:
    """The same, while a process of the lowest priority runs on each core.

    Client and server wait for each other twice in an answer, and to wake an idle virtual core can take longer than all
    that either of them does.
    """

    async def run(seconds: float) -> Sample:
        spin = ("nice", "-n", "19", sys.executable, "-c", "while True: pass")
        spinning = [await asyncio.create_subprocess_exec(*spin) for _ in range(os.cpu_count() or 1)]
        try:
            return await side(seconds)
        finally:
            for process in spinning:
                process.kill()
                await process.wait()

    return run


async def _ways(made: Stand, files: Secured) -> dict[str, Target]:
    """Replicas with TLS, tokens, and both."""
    tls = _tls(files)
    tokens = ("--jwks", str(files.issuer.jwks), "--issuer", ISSUER, "--policy", str(files.policy))
    found = {}
    for way, flags in zip(WAYS, ((*tls, "--insecure"), tokens, (*tls, *tokens)), strict=True):
        replica = await made.replica(*flags, ca=files.authority.cert if "TLS" in way else None)
        bearer = files.issuer.token("reader/bench", good_for_s=7200) if "tokens" in way else ""
        found[way] = Target(replica.grpc, "", (replica.pid,), bearer, tls="TLS" in way)
    return found


async def _fresh(bench: Bench, hq: Target, empty: Empty, files: Secured) -> None:
    """Calls of which no two have the same headers, so that the table of HPACK changes with each."""
    program = await tools.go_program("lookups", bench.directory / "go-lookups")
    if program is None:
        bench.say(f"{GROUP:10} {FRESH}: {tools.NO_GO}")
        return
    one, tokens = get(), bench.directory / "tokens"
    tokens.write_text("\n".join(files.issuer.token(f"reader/{n}", good_for_s=7200) for n in range(_CALLERS)))
    call = partial(load.fresh, program, message=one.request.SerializeToString(), shape=SHAPES[1], tokens=tokens)
    targets = {"hq": replace(hq, path=f"{SERVICE}/{one.method}"), "empty": empty.target(file_name(one))}
    await bench.compare(GROUP, FRESH, {side: _loading(call, target) for side, target in targets.items()})


def _tls(files: Secured) -> tuple[str, ...]:
    return "--tls-cert", str(files.server.cert), "--tls-key", str(files.server.key)


class _Crowd:
    """Watches of one instance each, so that nothing happens on them but bookmarks."""

    def __init__(self, replica: ReplicaProcess, channels: int = _CHANNELS) -> None:
        tls = cache(partial(ssl.create_default_context, cafile=replica.ca)) if replica.ca else None
        self._pid = replica.pid
        self._channels = [Channel(replica.grpc, tls) for _ in range(channels)]
        self._turns = cycle(self._channels)
        self._following: list[asyncio.Task[None]] = []
        self.messages = 0

    async def opened(self, count: int) -> float:
        """Open `count` more. Returns the replica's processor time in seconds until each has its snapshot."""
        before = cpu_s([self._pid])
        events = [asyncio.Event() for _ in range(count)]
        self._following += [asyncio.create_task(self._follow(next(self._turns), event)) for event in events]
        async with asyncio.timeout(_PATIENCE_S):
            await asyncio.gather(*(event.wait() for event in events))
        return cpu_s([self._pid]) - before

    async def close(self) -> None:
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        await asyncio.gather(*(channel.close() for channel in self._channels))

    async def _follow(self, channel: Channel, synced: asyncio.Event) -> None:
        request = service_pb2.WatchInstancesRequest(filter={"instance_id": ["lookup-100.00042"]}).SerializeToString()
        async for message in channel.stream(f"{SERVICE}/WatchInstances", request):
            self.messages += 1
            if service_pb2.WatchInstancesResponse.FromString(message).kind == service_pb2.WATCH_KIND_SYNCED:
                synced.set()


async def _idle_watches(bench: Bench, made: Stand) -> None:
    ours = made.replicas[0]
    crowd = _Crowd(ours)
    try:
        await crowd.opened(100)
        quiet_s = await _spent(ours.pid)
        before_bytes = memory_bytes(ours.pid)
        await crowd.opened(_WATCHES)
        each_bytes = (memory_bytes(ours.pid) - before_bytes) / _WATCHES
        crowd.messages = 0
        spent_s = await _spent(ours.pid) - quiet_s
    finally:
        await crowd.close()
    each_us = spent_s / max(1, crowd.messages) * 1e6
    bench.fact(GROUP, "idle watch: memory", [each_bytes / 1024], "KiB", note=f"{_WATCHES:,} on {_CHANNELS} connections")
    bench.fact(GROUP, "idle watch: CPU per bookmark", [each_us], "µs", note=f"{crowd.messages:,} bookmarks")
    # 10,000 a second: as many per cent as microseconds.
    bench.fact(GROUP, "50,000 idle watches: bookmarks every 5 s", [each_us], "% of a core")
    bench.fact(GROUP, OPENED, [await _open_us(ours) for _ in range(bench.rounds)], "µs")


async def _alone(bench: Bench, name: str, replica: ReplicaProcess, at_once: int) -> None:
    """Measure a replica that has served nobody yet, so that its memory holds nothing of others."""
    crowd = _Crowd(replica, _ALONE + 50)
    try:
        await crowd.opened(50)
        before_bytes = memory_bytes(replica.pid)
        for _ in range(_ALONE // at_once):
            await crowd.opened(at_once)
        each_bytes = (memory_bytes(replica.pid) - before_bytes) / _ALONE
    finally:
        await crowd.close()
    bench.fact(GROUP, name, [each_bytes / 1024], "KiB", note=f"{_ALONE} connections, {at_once} made at once")


async def _open_us(replica: ReplicaProcess) -> float:
    crowd = _Crowd(replica)
    try:
        return sum([await crowd.opened(_BURST) for _ in range(_WATCHES // _BURST)]) / _WATCHES * 1e6
    finally:
        await crowd.close()


async def _spent(pid: int) -> float:
    """Processor time of a while in which nobody asks for anything."""
    before = cpu_s([pid])
    await asyncio.sleep(_BOOKMARKS_S)
    return cpu_s([pid]) - before
