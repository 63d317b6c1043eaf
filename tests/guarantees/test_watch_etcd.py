"""Watches of two replicas over a real etcd, under concurrent writers, reconnects and a rolling restart.

What should have been seen is read from etcd's own order of changes by a watch of its own
(tests/support/reference_instances.py).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from hq.config import ReplicaConfig
from hq.keys import HqKeys
from hq.process.server import ReplicaServer
from hqpb.v1 import service_pb2 as pb
from hqpb.v1 import service_stubs
from serving.clock import SystemClock
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from store.embedded import EmbeddedEtcd
from store.etcd import EtcdConfig, EtcdStore
from tests.support.etcd import OwnEtcd
from tests.support.reference_instances import Truth
from tests.support.sample_instances import Agent, instance
from tests.support.watch_checkers import Checkers, version_of

FILTERS = (
    pb.InstanceFilter(),
    pb.InstanceFilter(service_id=["s-0"]),
    pb.InstanceFilter(service_id=["s-0", "s-1"], readiness=pb.READINESS_FILTER_READY),
    pb.InstanceFilter(node_name=["node-1"]),
    pb.InstanceFilter(readiness=pb.READINESS_FILTER_NOT_READY),
    pb.InstanceFilter(instance_id=["i-1", "i-10"]),
)
INSTANCES = 12


class Site:
    """Two replicas in this process over one etcd, and the truth."""

    def __init__(self, etcd: EmbeddedEtcd) -> None:
        self._etcd = etcd
        self.truth = Truth()
        self.servers: list[ReplicaServer] = []
        self._serving: list[asyncio.Task[None]] = []
        self._started = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Site]:
        store = self._store()
        self._following = asyncio.create_task(self._follow(store))
        try:
            for number in (0, 1):
                await self.start(number)
            # What comes behind the second of them is replayed by replicas that start.
            while self.servers[1].replica.compactor.compactions < 1:
                await self.servers[1].replica.compactor.once()
                await self.told(await self.servers[1].replica.fence.wait_for_fence())
            yield self
        finally:
            for number in range(len(self.servers)):
                await self.stop(number)
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            await store.close()

    async def start(self, number: int) -> None:
        self._started += 1
        config = ReplicaConfig(replica=f"replica-{self._started}", compact_every_s=0)
        anywhere = Addresses("127.0.0.1:0", "127.0.0.1:0")
        server = ReplicaServer(config, self._store(), SystemClock(), random.Random(), anywhere, Limits(), grace_s=1.0)
        serving = asyncio.create_task(server.serve())
        await server.listening
        await server.replica.loading.loaded.wait()
        self.servers[number : number + 1], self._serving[number : number + 1] = [server], [serving]

    async def stop(self, number: int) -> None:
        self.servers[number].stop()
        await self._serving[number]

    def channel(self, number: int) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(self.servers[number].listening.result().grpc)

    async def told(self, version: int) -> None:
        """Return when the truth is known up to there."""
        while self.truth.version < version:
            assert not self._following.done(), self._following
            await asyncio.sleep(0.01)

    def _store(self) -> EtcdStore:
        return EtcdStore(EtcdConfig((self._etcd.endpoint,)))

    async def _follow(self, store: EtcdStore) -> None:
        names = HqKeys()
        async with store.watch(names.prefix, names.end, after=1) as stream:
            async for batch in stream:
                self.truth.tell(batch)


class Client:
    """Watches with one filter, here and there, and keeps what it saw to be checked once the truth is known."""

    def __init__(self, site: Site, wanted: pb.InstanceFilter, chance: random.Random) -> None:
        self._site, self._wanted, self._chance = site, wanted, chance
        self.seen: list[pb.WatchInstancesResponse | str] = []
        self.token = ""
        self.upto = 0

    async def run(self) -> None:
        while True:
            number = self._chance.randrange(2)
            self.seen.append(self.token)
            known = len(self.seen)
            try:
                async with self._site.channel(number) as channel:
                    await self._read(service_stubs.InstanceServiceStub(channel))
            except grpc.aio.AioRpcError as error:
                # What comes in the very moment of a shutdown, gRPC breaks off before HQ hears of it.
                was_unheard = error.code() == grpc.StatusCode.CANCELLED and len(self.seen) == known
                assert was_unheard or error.code() == grpc.StatusCode.UNAVAILABLE  # noqa: PT017
                await asyncio.sleep(0.05)

    async def _read(self, stub: service_stubs.InstanceServiceStub) -> None:
        """For a while; then it leaves in the middle of whatever comes."""
        left = self._chance.randrange(1, 60)
        async for message in stub.WatchInstances(
            pb.WatchInstancesRequest(filter=self._wanted, resume_token=self.token), timeout=60
        ):
            self.seen.append(message)
            self.token = message.resume_token or self.token
            self.upto = version_of(message) if message.resume_token else self.upto
            left -= 1
            if not left:
                return

    def check(self) -> int:
        """Everything that was seen, against the truth; return how many events there were."""
        checkers, events = Checkers(self._site.truth, self._wanted), 0
        for each in self.seen:
            if isinstance(each, str):
                checkers.opened(each)
            else:
                checkers.saw(each)
                events += len(each.events)
        return events


async def write(site: Site, chance: random.Random, count: int) -> None:
    """One writer and agent of an instance after the other, at either replica."""
    for _ in range(count):
        instance_id = f"i-{chance.randrange(INSTANCES)}"
        async with site.channel(chance.randrange(2)) as channel:
            stub = service_stubs.InstanceServiceStub(channel)
            try:
                await change(stub, instance_id, chance)
            except grpc.aio.AioRpcError as error:
                # Gone, there already, changed by another writer, or the replica shuts down: all of it is fine here.
                if error.code() in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}:
                    raise


async def change(stub: service_stubs.InstanceServiceStub, instance_id: str, chance: random.Random) -> None:
    what = chance.random()
    made = instance(instance_id, service=f"s-{chance.randrange(3)}", node=f"node-{chance.randrange(3)}")
    if what < 0.3:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=made), timeout=10)
    elif what < 0.5:
        await stub.UpdateInstance(pb.UpdateInstanceRequest(instance=made), timeout=10)
    elif what < 0.6:
        await stub.DeleteInstance(pb.DeleteInstanceRequest(id=instance_id), timeout=10)
    else:
        found = await stub.GetInstance(pb.GetInstanceRequest(id=instance_id), timeout=10)
        agent = Agent(stub, instance_id, node=found.instance.spec.node_name)
        await agent.begin()
        for _ in range(3):
            await agent.report(ready=chance.random() < 0.7, message=str(chance.random()))


@pytest.mark.long
async def test_watches_keep_their_promises_through_writers_reconnects_and_a_rolling_restart(
    own_etcd: OwnEtcd,
) -> None:
    chance = random.Random(1)
    async with Site(await own_etcd()).open() as site:
        clients = [Client(site, wanted, random.Random(chance.random())) for wanted in FILTERS * 2]
        watching = [asyncio.create_task(client.run()) for client in clients]
        writing = [asyncio.create_task(write(site, random.Random(chance.random()), 60)) for _ in range(4)]
        for number in (0, 1):
            await asyncio.sleep(0.7)
            await site.stop(number)
            await site.start(number)
        await asyncio.gather(*writing)
        async with site.channel(0) as channel:
            strong = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
            stub = service_stubs.InstanceServiceStub(channel)
            last = (await stub.FindInstances(pb.FindInstancesRequest(read=strong))).sources[0].version
        async with asyncio.timeout(20):
            while min(client.upto for client in clients) < last:
                for task in watching:
                    if task.done():
                        task.result()  # what ended it
                await asyncio.sleep(0.05)
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await site.told(max(client.upto for client in clients))
        assert sum(client.check() for client in clients) > 500
        assert sum(server.replica.fanout.resyncs for server in site.servers) == 0
