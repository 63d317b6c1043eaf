"""A random history over three real installations: whatever restarts, a watch loses and doubles nothing."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb
from store.embedded import EtcdBinary
from tests.federated.federated_process import FederatedProcess
from tests.federated.watcher import Watcher
from tests.federated.worlds import NAMES, World
from tests.support.sample_instances import eventually, instance

STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
Change = tuple[str, str, int]


class Writer:
    """Creates, changes and deletes instances of one location through a gateway; `done` is what was acknowledged."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.done = name, list[Change]()
        self.unsure: set[str] = set()  # ids of writes whose outcome nobody knows: not looked at
        self._rng = random.Random(f"{name}-{seed}")
        self._known: set[str] = set()

    async def run(self, gateways: list[FederatedProcess], stop: asyncio.Event) -> None:
        while not stop.is_set():
            instance_id = f"{self.name}-{self._rng.randrange(20)}"
            try:
                async with gateways[-1].stub() as stub:
                    for _ in range(10):
                        await self._change(stub, instance_id)
                        instance_id = f"{self.name}-{self._rng.randrange(20)}"
            except grpc.aio.AioRpcError:
                self.unsure.add(instance_id)
                self._known.discard(instance_id)
                await asyncio.sleep(0.2)

    async def _change(self, stub: object, instance_id: str) -> None:
        if instance_id in self.unsure:
            return
        header = (("x-hq-cluster", self.name),)
        if instance_id in self._known and self._rng.random() < 0.3:
            gone = await stub.DeleteInstance(  # type: ignore[attr-defined]
                pb.DeleteInstanceRequest(id=instance_id), metadata=header, timeout=8
            )
            self._known.discard(instance_id)
            self.done.append((self.name, instance_id, gone.version))
            return
        made = instance(instance_id, text=str(self._rng.random()))
        made.meta.cluster = self.name
        if instance_id in self._known:
            answer = await stub.UpdateInstance(pb.UpdateInstanceRequest(instance=made), timeout=8)  # type: ignore[attr-defined]
        else:
            answer = await stub.CreateInstance(pb.CreateInstanceRequest(instance=made), timeout=8)  # type: ignore[attr-defined]
        self._known.add(instance_id)
        self.done.append((self.name, instance_id, answer.instance.meta.version))


@pytest.fixture
async def world(tmp_path: Path, etcd35: EtcdBinary):  # type: ignore[no-untyped-def]
    made = World(tmp_path, etcd35)
    try:
        await made.start()
        yield made
    finally:
        await made.end()


@pytest.mark.long
async def test_restarts_of_a_location_and_of_the_gateway_lose_and_double_no_event(world: World) -> None:
    gateways = [await world.gateway()]
    writers = [Writer(name, seed=1) for name in NAMES]
    stop = asyncio.Event()
    async with gateways[0].stub() as stub:
        watcher = Watcher(stub)
        await eventually(lambda: watcher.synced == set(NAMES))
        writing = [asyncio.create_task(writer.run(gateways, stop)) for writer in writers]
        await asyncio.sleep(1.0)
        await world.restart("north", 0, kill=False)
        await asyncio.sleep(0.5)
        await world.restart("north", 1, kill=True)
        world.gates["east"][0].reset()
        await asyncio.sleep(0.5)
        successor = await world.gateway()
        await gateways[0].kill()
        gateways.append(successor)
        await eventually(lambda: watcher.error, what="the watch breaks with its gateway")
        await watcher.end()
    async with successor.stub() as stub:
        second = Watcher(stub, watcher.token, watcher)
        await asyncio.sleep(1.0)
        for gate in world.gates["west"]:
            gate.cut()
        await asyncio.sleep(1.0)
        for gate in world.gates["west"]:
            gate.heal()
        await eventually(lambda: all(len(w.done) > 20 for w in writers), timeout_s=60, what="enough was written")
        await asyncio.sleep(2.0)
        stop.set()
        await asyncio.gather(*writing)
        done = {change for writer in writers for change in writer.done}

        def all_shown() -> bool:
            assert second.error is None, second.error
            return done <= set(second.shown)

        await eventually(all_shown, what="everything acknowledged was shown")
        shown = Counter(second.shown)
        assert [change for change, times in shown.items() if times > 1] == []
        assert all("RESYNC" not in w.kinds[name] for w in (watcher, second) for name in NAMES)
        unsure = {instance_id for writer in writers for instance_id in writer.unsure}
        assert {change for change in shown if change[1] not in unsure} <= done

        async def is_as_stored() -> bool:  # a write that nobody knows the outcome of may be shown last of all
            answer = await stub.FindInstances(pb.FindInstancesRequest(read=STRONG))
            stored = {(i.meta.cluster, i.meta.id, i.meta.version) for i in answer.instances}
            return stored == {(c, i, v) for c, known in second.known.items() for i, v in known.items()}

        await eventually(is_as_stored, what="the watch shows what is stored")
        await second.end()
