"""A campaign: requests by the thousand, from one seed, and the verdict on each answer."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.service_stubs import InstanceServiceStub
from tests.fuzz import http, requests, verdict
from tests.fuzz.grpc_call import GrpcAttack, exchange
from tests.fuzz.verdict import HANG_S, Asked, Got

_WORKERS: Final = 8
_ENOUGH: Final = 20  # faults
_FEWEST, _LATEST_S = 1_500, 60.0
_TOKEN: Final = re.compile(rb"eyJ[\w.-]{20,}")


@dataclass(slots=True)
class Report:
    """What came of it; `faults` must be empty."""

    seed: int
    seconds: float = 0.0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)  # transport, status or code
    refusals: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # those of the server, with their reason
    faults: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """How many were sent."""
        return self.outcomes.total()

    def table(self) -> str:
        """For people."""
        rows = [f"  {transport:5} {code:25} {count:9,}" for (transport, code), count in sorted(self.outcomes.items())]
        asked = [
            f"  {t:5} {code:25} {count:9,}  {reason}" for (t, code, reason), count in sorted(self.refusals.items())
        ]
        return "\n".join([*rows, "refusals of the server's own, each asked for:", *asked])

    def note(self, asked: Asked, got: Got, fault: str = "") -> None:
        """One request and its answer; `fault` beside what the verdict finds."""
        self.outcomes[got.transport, got.outcome] += 1
        if got.is_of_the_server:
            self.refusals[got.transport, got.outcome, got.reason or got.code] += 1
        if found := verdict.fault(asked, got) or fault:
            self.faults.append(f"{got.transport} {got.outcome}: {found}: {asked.words}: {got.body[:300]!r}")


class Campaign:
    """Attacks one replica that asks nobody who they are, until the time is up or the first few faults are found."""

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
            rngs = [random.Random(f"{self.report.seed}-{n}") for n in range(_WORKERS)]
            works = [self._over_http(rng) if n % 2 else self._over_grpc(rng, channel) for n, rng in enumerate(rngs)]
            await until(began + duration_s, self.report, *works)
        self.report.seconds = time.monotonic() - began
        return self.report

    async def _over_http(self, rng: random.Random) -> AsyncIterator[None]:
        while True:
            made = http.attack(rng, self._known)
            got = await over_http(made, self._host, self._port)
            self.report.note(asked_over_http(made), got)
            yield

    async def _over_grpc(self, rng: random.Random, channel: grpc.aio.Channel) -> AsyncIterator[None]:
        while True:
            made = GrpcAttack.made(rng, self._known)
            self.report.note(made.asked, await exchange(channel, made))
            yield

    async def _populate(self, stub: Any) -> None:
        """Instances to be hit, and tokens to be forged."""
        for name in ("fuzz-1", "fuzz-2", "fuzz-11"):
            instance = instance_pb2.Instance()
            instance.meta.id, instance.meta.service_id = name, "svc"
            instance.spec.node_name = "node-1"
            instance.spec.revision.add(id="r1", target=instance_pb2.REVISION_TARGET_READY)
            with suppress(grpc.aio.AioRpcError):  # a campaign before this one has made it
                await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance), timeout=HANG_S)
        self._known.tokens = await tokens(stub)


async def until(end: float, report: Report, *works: AsyncIterator[None]) -> None:
    """All of the work side by side until the time is up, or there are faults enough.

    A machine that is busy with other things takes longer, so that there are some requests at least.
    """

    def is_done() -> bool:
        late_s = time.monotonic() - end
        return late_s > _LATEST_S or (late_s > 0 and report.requests >= _FEWEST) or len(report.faults) > _ENOUGH

    async def repeat(work: AsyncIterator[None]) -> None:
        async for _ in work:
            if is_done():
                return

    await asyncio.gather(*map(repeat, works))


async def tokens(stub: Any, metadata: tuple[tuple[str, str], ...] = ()) -> dict[str, str]:
    """Real ones, by field."""
    page = await stub.FindInstances(pb.FindInstancesRequest(page_size=1), timeout=HANG_S, metadata=metadata)
    found = {"page_token": page.next_page_token, "epoch": page.sources[0].epoch}
    watch = stub.WatchInstances(pb.WatchInstancesRequest(), timeout=HANG_S, metadata=metadata)
    async for message in watch:
        if message.resume_token:
            found["resume_token"] = message.resume_token
            break
    watch.cancel()
    return found


async def over_http(made: http.Attack, host: str, port: int, tls: Any = None) -> Got:
    """The answer; one that is no HTTP, or that takes too long, is a fault of the server."""
    try:
        answer = await http.exchange(host, port, made.data, HANG_S, tls)
    except TimeoutError:
        return Got("http", "unknown", "hang")
    except Exception as error:  # not HTTP, or nobody there
        return Got("http", "unknown", f"no answer: {error!r}")
    return Got("http", answer.code, answer.reason, answer.status, answer.body)


def asked_over_http(made: http.Attack) -> Asked:
    """What the verdict looks at."""
    method = made.method.name if made.method is not None else ""
    words = repr(_TOKEN.sub(b"(a token)", made.data)[:2_000])
    return Asked(words, method, made.is_spoiled, made.has_deadline, made.names_version)
