"""A campaign: requests by the thousand, from one seed, and the verdict on each answer."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.service_pb2_grpc import InstanceServiceStub
from tests.fuzz import http, requests

# Answers that were designed: 501 is Connect's for an encoding that is not read, 503 and 504 are for versions that have
# not come yet and deadlines that are over, both of which the requests ask for.
_DESIGNED_5XX: Final = {501: "unimplemented", 503: "unavailable", 504: "deadline_exceeded"}
_OUR_FAULT: Final = {"internal", "unknown", "data_loss"}
_HANG_S: Final = 60.0
_WORKERS: Final = 8


@dataclass(slots=True)
class Report:
    """What came of it; `faults` must be empty."""

    seed: int
    seconds: float = 0.0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)  # transport, status or code
    faults: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many were sent."""
        return self.outcomes.total()

    def table(self) -> str:
        """For people."""
        rows = [f"  {transport:5} {code:25} {count:9,}" for (transport, code), count in sorted(self.outcomes.items())]
        return "\n".join(rows)


class Campaign:
    """Attacks one replica until the time is up or the first few faults are found."""

    def __init__(self, grpc_address: str, http_address: str, seed: int) -> None:
        self._grpc, (self._host, _, port) = grpc_address, http_address.partition(":")
        self._port = int(port)
        self._known = requests.Known()
        self.report = Report(seed)

    async def run(self, duration_s: float) -> Report:
        """The report."""
        began = time.monotonic()
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_metadata_size", 1 << 17))
        async with grpc.aio.insecure_channel(self._grpc, options=options) as channel:
            await self._populate(InstanceServiceStub(channel))
            workers = [self._work(random.Random(f"{self.report.seed}-{n}"), channel, n) for n in range(_WORKERS)]
            until = began + duration_s
            await asyncio.gather(*(self._repeat(worker, until) for worker in workers))
        self.report.seconds = time.monotonic() - began
        return self.report

    async def _repeat(self, work: Any, until: float) -> None:
        async for _ in work:
            if time.monotonic() > until or len(self.report.faults) > 20:
                return

    async def _work(self, rng: random.Random, channel: grpc.aio.Channel, number: int) -> Any:
        while True:
            if number % 2:
                await self._over_http(rng)
            else:
                await self._over_grpc(rng, channel)
            yield

    async def _over_http(self, rng: random.Random) -> None:
        data = http.attack(rng, self._known)
        try:
            answer = await http.exchange(self._host, self._port, data, _HANG_S)
        except TimeoutError:
            self._note("http", "hang", data)
            return
        except Exception as error:  # not HTTP, or nobody there
            self._note("http", f"no answer: {error!r}", data)
            return
        bad = answer.status >= 500 and _DESIGNED_5XX.get(answer.status) != answer.code and not _is_page(data)
        self._note("http", str(answer.status), data if bad or answer.code in _OUR_FAULT else None)

    async def _over_grpc(self, rng: random.Random, channel: Any) -> None:
        method = rng.choice(requests.METHODS)
        made = requests.message(rng, method, self._known)
        body = made.SerializeToString(deterministic=True)
        body = requests.spoiled(rng, body) if rng.random() < 0.4 else body
        path = requests.path_of(method) + ("" if rng.random() < 0.98 else rng.choice(("x", "/", "%00")))
        metadata = _metadata(rng)
        patience_s = rng.choice((0.001, 0.3, _HANG_S)) if not method.server_streaming else 0.3
        compression = rng.choice((None, None, grpc.Compression.Gzip))
        began = time.monotonic()
        try:
            if method.server_streaming:
                stream = channel.unary_stream(path)(body, timeout=patience_s, metadata=metadata)
                async for _ in stream:
                    pass
            else:
                await channel.unary_unary(path)(body, timeout=patience_s, metadata=metadata, compression=compression)
            code = "ok"
        except grpc.aio.AioRpcError as error:
            code = error.code().name.lower()
        hung = time.monotonic() - began >= _HANG_S
        self._note("grpc", "hang" if hung else code, body if hung or code in _OUR_FAULT else None, path)

    def _note(self, transport: str, outcome: str, culprit: bytes | None, path: str = "") -> None:
        self.report.outcomes[transport, outcome] += 1
        if culprit is not None:
            self.report.faults.append(f"{transport} {outcome} {path} {culprit[:2_000]!r}")

    async def _populate(self, stub: Any) -> None:
        """Instances to be hit, and tokens to be forged."""
        for name in ("fuzz-1", "fuzz-2", "fuzz-11"):
            instance = instance_pb2.Instance()
            instance.meta.id, instance.meta.service_id = name, "svc"
            instance.spec.node_name = "node-1"
            instance.spec.revision.add(id="r1", target=instance_pb2.REVISION_TARGET_READY)
            with suppress(grpc.aio.AioRpcError):  # a campaign before this one has made it
                await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance), timeout=_HANG_S)
        page = await stub.FindInstances(pb.FindInstancesRequest(page_size=1), timeout=_HANG_S)
        self._known.tokens = {"page_token": page.next_page_token, "epoch": page.sources[0].epoch}
        watch = stub.WatchInstances(pb.WatchInstancesRequest(), timeout=_HANG_S)
        async for message in watch:
            if message.resume_token:
                self._known.tokens["resume_token"] = message.resume_token
                break
        watch.cancel()


def _is_page(data: bytes) -> bool:
    """/readyz?fresh= answers 503 in plain text."""
    return b" /readyz" in data.split(b"\n", 1)[0]


def _metadata(rng: random.Random) -> tuple[tuple[str, str | bytes], ...]:
    odd = (
        ("x-request-id", rng.choice(("mine", "a" * 300, "a b"))),
        ("x-hq-cluster", rng.choice(("default", "other", "../x"))),
        ("authorization", rng.choice(("Bearer x.y.z", "Bearer", "Basic eDp5"))),
        ("grpc-status-details-bin", rng.randbytes(20)),
        ("x-large", "a" * rng.choice((10, 20_000, 40_000))),
    )
    return tuple(rng.sample(odd, rng.choice((0, 0, 0, 1, 2))))
