"""A store restored under running processes: one that has seen more than it holds acts only after it was opened."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack, suppress

import pytest
from google.protobuf import wrappers_pb2

from control import ControlConfig, Controller, Kind, RecordChanged
from serving.errors import ServiceError
from store.memory import MemoryStore
from store.port import Write
from tests.support.controllers import running
from tests.support.faulty_store import FaultyStore, rewound
from tests.support.virtual_time import VirtualClock, run_virtually

TERM_S = 10.0
ASKED = Kind("asked", wrappers_pb2.StringValue)
GRANTED = Kind("granted", wrappers_pb2.StringValue)


class Process:
    """A controller that takes requests at any process and grants them at the one that acts."""

    def __init__(self, store: MemoryStore, name: str, rng: random.Random) -> None:
        self.store = FaultyStore(store, rng)
        config = ControlConfig("/granting/v1/", name, TERM_S)
        self.controller = Controller(config, self.store, VirtualClock(), random.Random(rng.random()))
        self.asked, self.granted = self.controller.records(ASKED), self.controller.records(GRANTED)
        deciding = self.controller.reconcile("decide", self._grant, lambda: list(self.asked))
        self.asked.listen(deciding.trigger)

    async def ask(self, name: str) -> None:
        change = self.controller.creation()
        change.get(ASKED, name)
        change.put(ASKED, name, wrappers_pb2.StringValue(value=name))
        await change.commit(1.0)

    async def until_granted(self, *names: str) -> None:
        while not all(name in self.granted for name in names):
            await asyncio.sleep(0.01)

    async def _grant(self, name: str) -> None:
        change = self.controller.change()
        if change.get(ASKED, name) is not None and change.get(GRANTED, name) is None:
            change.put(GRANTED, name, wrappers_pb2.StringValue(value=name))
            await change.commit()


class World:
    """Processes over one store, and a snapshot of it that `restore` puts back."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.store = MemoryStore()
        self.processes = [Process(self.store, name, self.rng) for name in ("one", "two")]
        self._snapshot = 0

    async def begin(self, stack: AsyncExitStack) -> None:
        for process in self.processes:
            await stack.enter_async_context(running(process.controller))
            await process.controller.loaded.wait()
        await self.processes[0].ask("before")
        for process in self.processes:
            await process.until_granted("before")
        self._snapshot = self.store._revision

    def restore(self) -> None:
        """Cut every process off from the store, and undo what came after the snapshot."""
        for process in self.processes:
            process.store.go_away()
        self.store = rewound(self.store, self._snapshot)
        for process in self.processes:
            process.store.store = self.store


def play(seed: int) -> None:
    """Restore a snapshot older than what both processes have seen; they come back in any order, under requests."""

    async def asked_all_the_time(world: World, names: list[str]) -> None:
        while True:
            name = f"new-{len(names)}"
            with suppress(ServiceError, RecordChanged):
                await world.rng.choice(world.processes).ask(name)
                names.append(name)
            await asyncio.sleep(world.rng.uniform(0.0, 0.5))

    async def main() -> None:
        world, names = World(seed), list[str]()
        async with AsyncExitStack() as stack:
            await world.begin(stack)
            epoch = world.processes[0].controller.epoch
            await world.rng.choice(world.processes).ask("lost")
            for process in world.processes:
                await process.until_granted("lost")
                process.store.delay_s = world.rng.choice([0.01, 0.3])
            await asyncio.sleep(world.rng.uniform(0, TERM_S))
            world.restore()
            asking = asyncio.create_task(asked_all_the_time(world, names))
            for process in world.processes:
                late_s = world.rng.uniform(0, 2 * TERM_S)
                asyncio.get_running_loop().call_later(late_s, setattr, process.store, "away", False)
            await asyncio.sleep(5 * TERM_S)
            asking.cancel()
            await asyncio.sleep(TERM_S)
            for process in world.processes:
                assert process.controller.epoch != epoch
                assert not process.controller.is_open
                assert sorted(process.granted) == ["before"]
                assert names
                assert {*names} <= {*process.asked}
            await world.rng.choice(world.processes).controller.open("ann", "it was looked at")
            async with asyncio.timeout(3 * TERM_S):
                await world.processes[0].until_granted(*names)

    run_virtually(main)


@pytest.mark.parametrize("seed", range(20))
def test_no_process_that_has_seen_more_than_the_snapshot_acts_before_it_is_opened(seed: int) -> None:
    play(seed)


def test_replicas_without_newer_knowledge_act_until_one_with_it_returns() -> None:
    """The limit of a restore under running processes, as docs/operations.md says it."""

    async def main() -> None:
        world = World(1)
        knowing, ignorant = world.processes
        async with AsyncExitStack() as stack:
            await world.begin(stack)
            epoch = knowing.controller.epoch
            ignorant.store.away = True
            ignorant.store.store.disconnect()
            await knowing.ask("lost")
            await knowing.until_granted("lost")
            world.restore()
            ignorant.store.away = False
            while not ignorant.controller.is_acting:
                await asyncio.sleep(0.01)
            await ignorant.ask("new")
            await ignorant.until_granted("new")
            knowing.store.away = False
            await asyncio.sleep(TERM_S)
            for process in world.processes:
                assert process.controller.epoch != epoch
                assert not process.controller.is_open

    run_virtually(main)


def test_a_process_whose_refreshes_are_refused_retries_with_pauses() -> None:
    """Another process has begun a new epoch, which this one has not seen yet."""

    async def main() -> None:
        world = World(1)
        process = world.processes[0]
        async with AsyncExitStack() as stack:
            await world.begin(stack)
            while not process.controller.is_acting:
                await asyncio.sleep(0.01)
            for each in world.processes:
                each.store.delay_s = 0.01
                each.store.silence()
            await world.store.commit((), (Write((), ((b"/granting/v1/epoch", b"another"),)),), 1.0)
            sent = len(process.store.sent)
            await asyncio.sleep(TERM_S / 2)
            assert len(process.store.sent) < sent + 20

    run_virtually(main)
