"""Whatever happens in the store and to the replicas, a watch keeps its promises (tests/support/watch_checkers.py)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hqpb.v1 import service_pb2 as pb
from store.port import Record
from tests.support.reference_instances import Truth
from tests.support.stepped_replica import SteppedReplica
from tests.support.store_histories import Step, World, filters, steps
from tests.support.watch_checkers import Checkers, version_of

some = settings(suppress_health_check=list(HealthCheck))


class Client:
    """Watches with one filter, at one replica after the other."""

    def __init__(self, stage: Stage, wanted: pb.InstanceFilter) -> None:
        self._stage, self._wanted = stage, wanted
        self.checkers = Checkers(stage.truth, wanted)
        self.token = ""
        self._stream: AsyncGenerator[pb.WatchInstancesResponse, None] | None = None

    async def open(self, replica: int) -> None:
        """Open the watch at this replica, from the last token."""
        if self._stream is not None:
            await self._stream.aclose()
        self._stream = self._stage.replicas[replica].watch(self._wanted, self.token)
        self.checkers.opened(self.token)

    async def read(self) -> pb.WatchInstancesResponse:
        """The next message; a bookmark if there is no news."""
        assert self._stream is not None
        message = await anext(self._stream)
        self.checkers.saw(message)
        self.token = message.resume_token or self.token
        if message.kind == pb.WATCH_KIND_RESYNC:
            self.token = ""
        return message

    async def read_all(self) -> None:
        """Read until the watch has reached the version of the store."""
        for _ in range(200):
            message = await self.read()
            if message.kind == pb.WATCH_KIND_BOOKMARK and version_of(message) == self._stage.truth.version:
                return
        raise AssertionError("the watch does not get to the end")

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()


class Stage:
    """A store, two replicas and some clients."""

    def __init__(self, wanted: list[pb.InstanceFilter], **limits: int) -> None:
        self._limits = limits
        self.world, self.truth = World(), Truth()
        self.truth.version = self.world.version
        self._listing: tuple[list[Record], int] = self.world.records(), self.world.version
        self._log: list[Any] = []
        self.replicas = [SteppedReplica(), SteppedReplica()]
        for number in (0, 1):
            self.restart(number)
        self.clients = [Client(self, each) for each in wanted]

    def change(self, step: Step) -> None:
        """Change the store; no replica sees it yet."""
        batch = self.world.step(step)
        if batch.changes:
            self.truth.tell(batch)
            self._log.append(batch)
            for replica in self.replicas:
                replica.held_back.append(batch)

    def restart(self, number: int) -> None:
        """A new process: it lists at the last compaction mark and replays what came since."""
        self.replicas[number] = still = SteppedReplica(f"replica-{number}", **self._limits)
        still.list(*self._listing)
        for batch in self._log:
            still.apply(batch)

    def miss(self, number: int) -> None:
        """Compact the store under a replica, which then gets only the difference."""
        still = self.replicas[number]
        if still.held_back:
            still.held_back.clear()
            known = set(still.replica.cache.keys()) | {self.world.keys.epoch}
            still.apply(self.world.difference(known, still.replica.cache.version), collapsed=True)

    async def close(self) -> None:
        for client in self.clients:
            await client.close()


@st.composite
def acts(draw: st.DrawFn, missing: bool) -> list[tuple[Any, ...]]:
    """A sequence of things that happen."""
    replica, client = st.integers(0, 1), st.integers(0, 2)
    act = st.one_of(
        st.tuples(st.just("change"), steps(spoiled=False)),
        st.tuples(st.just("change"), steps(spoiled=False)),
        st.tuples(st.just("bring"), replica, st.integers(1, 5)),
        st.tuples(st.just("bring"), replica, st.integers(1, 5)),
        st.tuples(st.just("read"), client, st.integers(1, 3)),
        st.tuples(st.just("open"), client, replica),
        st.tuples(st.just("restart"), replica),
        st.tuples(st.just("miss"), replica) if missing else st.nothing(),
    )
    return draw(st.lists(act, max_size=30))


async def play(stage: Stage, plan: list[tuple[Any, ...]]) -> None:
    for client in stage.clients:
        await client.open(0)
    for what, *arguments in plan:
        done = ACTS[what](stage, *arguments)
        if done is not None:
            await done
    await finish(stage)


async def finish(stage: Stage) -> None:
    """Let everything arrive, and read it at one replica and, from the same tokens, at the other."""
    for still in stage.replicas:
        still.catch_up()
    for client in stage.clients:
        token = client.token
        await client.read_all()
        if token:
            client.token = token
            await client.open(1)
            await client.read_all()
    await stage.close()


async def read(stage: Stage, client: int, count: int) -> None:
    for _ in range(count):
        await stage.clients[client].read()


async def restart(stage: Stage, number: int) -> None:
    """Restart a replica: its streams break off, and its clients go to the other one."""
    stage.restart(number)
    for client in stage.clients:
        await client.open(1 - number)


ACTS: dict[str, Callable[..., Awaitable[None] | None]] = {
    "change": Stage.change,
    "bring": lambda stage, replica, count: stage.replicas[replica].catch_up(count),
    "read": read,
    "open": lambda stage, client, replica: stage.clients[client].open(replica),
    "restart": restart,
    "miss": Stage.miss,
}
wanted = st.lists(st.just(pb.InstanceFilter()) | filters(), min_size=3, max_size=3)


@some
@given(wanted, acts(missing=False))
async def test_a_watch_goes_on_at_any_replica_through_restarts_and_lags(
    filters_: list[pb.InstanceFilter], plan: list[tuple[Any, ...]]
) -> None:
    await play(Stage(filters_), plan)


@some
@given(wanted, acts(missing=True), st.sampled_from((300, 16 * 2_000, 1 << 24)), st.sampled_from((900, 5_000, 1 << 20)))
async def test_a_watch_that_cannot_resume_says_so_and_is_right_afterwards(
    filters_: list[pb.InstanceFilter], plan: list[tuple[Any, ...]], buffer_bytes: int, history_bytes: int
) -> None:
    stage = Stage(filters_, watch_buffer_bytes=buffer_bytes, history_bytes=history_bytes)
    for client in stage.clients:
        client.checkers.resumable.excused = ("behind", "history")
    await play(stage, plan)


@some
@given(wanted, acts(missing=False))
async def test_versions_that_are_larger_than_a_message_stay_whole(
    filters_: list[pb.InstanceFilter], plan: list[tuple[Any, ...]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watch_messages.MESSAGE_BYTES", 250)
        await play(Stage(filters_), plan)


@some
@given(wanted, st.lists(steps(spoiled=False), min_size=5, max_size=40), st.integers(1, 4))
async def test_nothing_is_lost_or_doubled_while_the_store_changes_at_every_turn_of_the_loop(
    filters_: list[pb.InstanceFilter], storm: list[Step], patience: int
) -> None:
    stage = Stage(filters_)
    for step in storm[:3]:
        stage.change(step)

    async def blow() -> None:
        for step in storm[3:]:
            await asyncio.sleep(0)
            stage.change(step)
            stage.replicas[0].catch_up()

    blowing = asyncio.create_task(blow())
    while not blowing.done():
        await asyncio.sleep(0)
        for client in stage.clients:
            await client.open(0)
            await read(stage, stage.clients.index(client), patience)
    await finish(stage)
