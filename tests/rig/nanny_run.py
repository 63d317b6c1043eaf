"""Nanny under faults: real processes of it, HQ and etcd, agents that follow HQ, orders that contradict each other.

Faults: a process is killed, paused, cut off from HQ or from etcd, or its etcd stalls; a replica of HQ is killed or
paused; a node is dead for a while. Roll-outs have steps, some are aborted, and some are of a snapshot that crashes, at
once or again and again after it was ready: it is ordered while nothing else is, so that what it breaks is its own. A
reader outside counts what is ready;
tests/checker/orders.py judges. A run in which no roll-out ended has said nothing.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hqclient import Client, HqApiError
from hqclient.credential_files import CredentialFiles
from hqpb.v1 import service_pb2 as hq_pb
from nannyctl.nanny_server import NannyServer
from nannypb.v1 import service_pb2 as pb
from store.embedded import EmbeddedEtcd
from tests.checker.orders import ARRIVES, Look, check_bad, check_orders, check_served
from tests.checker.violation import Violation
from tests.rig.controller_faults import Faults, Process, cut, killed, paused, stalled, strike
from tests.support.faulty_proxy import Proxy
from tests.support.following_agents import following_agents
from tests.support.reserved_port import kept_addresses

SERVICE: Final = "web"
SIZE: Final = 6
AWAY: Final = 2
FLOOR: Final = SIZE - AWAY
LEAST_ROLL_OUTS_PER_MINUTE: Final = 1
_TERM_S: Final = 2.0
_ARRIVE_S: Final = 90.0
_DEADLINE_S: Final = 20
_CALL_S: Final = 3.0
_BACK_S: Final = 20.0  # after which a node that was dead serves again
_FREE: Final = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
_ACTIVE: Final = pb.CURRENT_STATE_ACTIVE
_CRASHES: Final = {"loops": ["timeout", "1.5", "run"], "never starts": ["false"]}
"""Commands of the snapshots that crash: their simulated agents end them so long after each start."""
_NAMES: Final = [f"web-{number}" for number in range(SIZE)]


@dataclass
class Seat:
    """A process of Nanny with the networks it needs."""

    process: Process
    to_etcd: Proxy
    to_hq: list[Proxy]


@dataclass
class NannyRun:
    """One run. `looks`, `answers` and `history` are for the checker.

    Attributes:
        arrived: roll-outs that reached ACTIVE.
    """

    directory: Path
    seed: int
    say: Callable[[str], None] = print
    looks: list[Look] = field(default_factory=list)
    answers: dict[str, bool] = field(default_factory=dict)
    history: list[tuple[bytes, str]] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)
    arrived: set[tuple[str, int]] = field(default_factory=set)
    last: str = ""
    bad: dict[str, str] = field(default_factory=dict)

    async def run(self, duration_s: float) -> None:
        """Strike for so long, then see whether it arrives."""
        self.rng = random.Random(self.seed)
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self.loop = asyncio.get_running_loop()
            self._ends = self.loop.time() + duration_s
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(self._read())
                ordering = tasks.create_task(self._order())
                self.struck += await strike(self.rng, self._goes_on, 2.5 * _TERM_S, self.say, self._faults)
                await ordering
                await self._finish()
                reading.cancel()

    def _goes_on(self) -> bool:
        return self.loop.time() < self._ends

    def violations(self) -> Iterator[Violation]:
        """What does not hold."""
        yield from check_served(self.looks, FLOOR)
        yield from check_bad(self.bad)
        yield from check_orders(self.answers, [comment for _, comment in self.history if comment])
        if self.last:
            yield ARRIVES.broken(self.last)

    # --- processes ----------------------------------------------------------------------------------------------------

    async def _start(self, stack: AsyncExitStack) -> None:
        etcd = EmbeddedEtcd(self.directory / "etcd")
        await etcd.start()
        stack.push_async_callback(etcd.stop)
        self._hqs = []
        for name in ("hq-1", "hq-2"):
            words = ("hq.main", "serve", "--etcd", etcd.endpoint, "--cluster", "ams", "--report-interval", "2s")
            self._hqs.append(await self._process(stack, name, (*words, *kept_addresses())))
        self._seats = []
        for name in ("nanny-1", "nanny-2"):
            to_etcd = await stack.enter_async_context(Proxy(etcd.endpoint))
            to_hq = [await stack.enter_async_context(Proxy(hq.grpc)) for hq in self._hqs]
            nanny = (
                "nanny.main",
                "serve",
                "--etcd",
                to_etcd.endpoint,
                "--term",
                f"{_TERM_S:g}s",
                "--drift-every",
                "5s",
            )
            location = f"ams={','.join(proxy.endpoint for proxy in to_hq)}"
            process = await self._process(stack, name, (*nanny, "--location", location, *_FREE))
            self._seats.append(Seat(process, to_etcd, to_hq))
        self._client = await stack.enter_async_context(Client([hq.grpc for hq in self._hqs]))
        self._nodes = await stack.enter_async_context(following_agents(self._client, [SERVICE], self.rng))
        self._dead: dict[str, float] = {}
        await self._fill()

    async def _process(self, stack: AsyncExitStack, name: str, words: tuple[str, ...]) -> Process:
        process = Process(words, self.directory / f"{name}.log")
        stack.push_async_callback(process.kill)
        await process.start()
        return process

    async def _fill(self) -> None:
        """A service with three snapshots, of which the first is active."""
        policy = pb.RolloutPolicy(max_unavailable=str(AWAY), max_failures="0", min_ready_s=1, soak_s=3, roll_back=True)
        policy.progress_deadline_s = _DEADLINE_S
        policy.step.add(instances="1", weight="20%")
        policy.step.add(hold_s=1)
        info = pb.InfoAttributes(rollout=policy)
        await self._asked("CreateService", pb.CreateServiceRequest(service_id=SERVICE, info=info, request_id="create"))
        self._snapshots = []
        for title in ("v1", "v2", "v3", *_CRASHES):
            instances = [{"id": name, "node": f"node-{name}"} for name in _NAMES]
            command = _CRASHES.get(title, ["run", title])
            revision = {"id": title.replace(" ", "-"), "container": [{"name": "main", "command": command}]}
            content = json.dumps({"service": SERVICE, "instances": instances, "revisions": [revision]})
            request = pb.CreateSnapshotRequest(service_id=SERVICE, content=content.encode(), request_id=title)
            self._snapshots.append(str((await self._asked("CreateSnapshot", request)).snapshot.id))
        self._snapshots, self._bad = self._snapshots[: -len(_CRASHES)], self._snapshots[-len(_CRASHES) :]
        await self._send("SetTarget", pb.SetTargetRequest(snapshot_id=self._snapshots[0], target=pb.TARGET_ACTIVE))
        async with asyncio.timeout(_ARRIVE_S):
            while await self._current(self._snapshots[0]) != _ACTIVE:
                await asyncio.sleep(0.2)

    # --- faults -------------------------------------------------------------------------------------------------------

    def _faults(self) -> tuple[str, Faults]:
        seat, hq = self.rng.choice(self._seats), self.rng.choice(self._hqs)
        return seat.process.log.stem, {
            "killed": lambda: killed(seat.process),
            "paused": lambda: paused(seat.process),
            "without_hq": lambda: cut(*seat.to_hq),
            "without_etcd": lambda: cut(seat.to_etcd),
            "etcd_stalls": lambda: stalled(seat.to_etcd),
            "hq_killed": lambda: killed(hq),
            "hq_paused": lambda: paused(hq),
            "node_dead": lambda: self._silent(self.rng.choice(_NAMES)),
        }

    @asynccontextmanager
    async def _silent(self, name: str) -> AsyncIterator[None]:
        node = self._nodes[f"node-{name}"]
        node.silence()
        self._dead[name] = math.inf
        try:
            yield
        finally:
            node.wake()
            self._dead[name] = self.loop.time() + _BACK_S

    # --- orders -------------------------------------------------------------------------------------------------------

    async def _order(self) -> None:
        """Mostly activations, often before the last one has arrived; some are sent to both processes at once."""
        rng = random.Random(f"{self.seed} orders")
        while not self.bad and self.loop.time() < self._ends + _ARRIVE_S:  # one in every run, however short
            await self._order_bad(self._bad[0])  # which a process that is behind may put off
            await asyncio.sleep(0.2)
        while self.loop.time() < self._ends:
            snapshot = rng.choice(self._snapshots)
            kind = rng.choice(("activate", "activate", "activate", "prepare", "create", "pause", "abort", "bad"))
            if kind == "bad":
                await self._order_bad(rng.choice(self._bad))
            elif kind == "abort":
                await self._abort()
            elif kind == "pause":
                await self._send("PauseActions", pb.PauseActionsRequest())
                await asyncio.sleep(rng.uniform(0.0, 2.0))
                await self._send("ResumeActions", pb.ResumeActionsRequest())
            else:
                target = {"activate": pb.TARGET_ACTIVE, "prepare": pb.TARGET_PREPARED, "create": pb.TARGET_CREATED}
                await self._send("SetTarget", pb.SetTargetRequest(snapshot_id=snapshot, target=target[kind]))
            await asyncio.sleep(rng.choice((0.2, 2.0, 8.0, 20.0)))

    async def _abort(self) -> None:
        """Whatever is rolled out now."""
        for one in (await self._service()).snapshot:
            if one.current == pb.CURRENT_STATE_ACTIVATING and one.order.outcome == pb.ORDER_OUTCOME_OPEN:
                order = pb.AbortRolloutRequest(order_id=one.order.id, step_number=one.action.step_number)
                await self._send("AbortRollout", order)

    async def _order_bad(self, snapshot: str) -> None:
        """A snapshot that crashes, if nothing is under way; nothing else is ordered until that has ended."""
        if (await self._service()).state != pb.SERVICE_STATE_ONLINE:
            return
        order = f"order-{len(self.answers)}"
        await self._send("SetTarget", pb.SetTargetRequest(snapshot_id=snapshot, target=pb.TARGET_ACTIVE))
        if not self.answers[order]:
            return
        self.bad[order] = "OPEN"
        with suppress(TimeoutError):
            async with asyncio.timeout(_ARRIVE_S + _DEADLINE_S):
                while self.bad[order] == "OPEN":
                    await asyncio.sleep(0.2)
                    for one in (await self._service()).snapshot:  # of a process that may be behind
                        if one.order.id == order:
                            self.bad[order] = pb.OrderOutcome.Name(one.order.outcome).removeprefix("ORDER_OUTCOME_")

    async def _service(self) -> pb.Service:
        found = (await self._asked("GetService", pb.GetServiceRequest(service_id=SERVICE))).service
        assert isinstance(found, pb.Service)
        return found

    async def _send(self, method: str, request: Any) -> None:
        """One order until it is answered, under one id; its comment is its own."""
        order = f"order-{len(self.answers)}"
        request.service_id, request.request_id, request.by.comment = SERVICE, order, order
        self.answers[order] = False
        asked = [self._asked(method, request) for _ in range(self.rng.choice((1, 1, 2)))]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        self.answers[order] = any(not isinstance(answer, BaseException) for answer in answers)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, HqApiError):
                raise answer
        await self._remember()

    async def _asked(self, method: str, request: Any) -> Any:
        """Ask until somebody answers. Raises HqApiError: it was refused."""
        turn = self.rng.randrange(len(self._seats))
        while True:
            turn += 1
            server = NannyServer((self._seats[turn % len(self._seats)].process.grpc,), _CALL_S, CredentialFiles())
            try:
                return await server.call(method, request)
            except HqApiError as error:
                if error.code.name not in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "INTERNAL", "UNKNOWN"):
                    raise
            await asyncio.sleep(0.2)

    async def _remember(self) -> None:
        """Nanny keeps the last entries only: what is new is added to what was seen before."""
        answer = await self._asked("ListHistory", pb.ListHistoryRequest(service_id=SERVICE))
        now = [(one.SerializeToString(), one.comment) for one in reversed(answer.entry)]
        for overlap in range(min(len(now), len(self.history)), -1, -1):
            if not overlap or self.history[-overlap:] == now[:overlap]:
                self.history += now[overlap:]
                break
        service = await self._service()
        for one in service.snapshot:
            if one.current == _ACTIVE:
                self.arrived.add((one.snapshot_id, one.current_since.ToMilliseconds()))

    async def _finish(self) -> None:
        """No more faults: the last order is carried out."""
        wanted = self.rng.choice(self._snapshots)
        await self._send("ResumeActions", pb.ResumeActionsRequest())
        await self._send("SetTarget", pb.SetTargetRequest(snapshot_id=wanted, target=pb.TARGET_ACTIVE))
        with suppress(TimeoutError):
            async with asyncio.timeout(_ARRIVE_S):
                while await self._current(wanted) != _ACTIVE:
                    await asyncio.sleep(0.5)
        service = await self._service()
        if not any(one.snapshot_id == wanted and one.current == _ACTIVE for one in service.snapshot):
            self.last = f"{wanted} is not ACTIVE after {_ARRIVE_S:g} s: {service}"
        await self._remember()

    async def _current(self, snapshot: str) -> int:
        service = await self._service()
        return next((one.current for one in service.snapshot if one.snapshot_id == snapshot), 0)

    # --- looking ------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Poll HQ every 50 ms."""
        where = hq_pb.InstanceFilter(service_id=[SERVICE], readiness=hq_pb.READINESS_FILTER_READY)
        while True:
            with suppress(HqApiError):
                pages = [page async for page in self._client.find(where)]
                ready = tuple(sorted(one.meta.id for page in pages for one in page.instances))
                now = self.loop.time()
                dead = [name for name, until in self._dead.items() if now < until and name not in ready]
                self.looks.append(Look(now, ready, len(dead)))
            await asyncio.sleep(0.05)
