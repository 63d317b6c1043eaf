"""The gateway over three installations against a single HQ that holds as much, and its hedge when a replica is slow."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from hqpb.v1 import service_pb2
from serving.encoding.jsonio import to_json
from store.embedded import EmbeddedEtcd, find_etcd
from tests.bench import load
from tests.bench.bench import Bench, Side
from tests.bench.filling import MAX_TXN_OPS, fill
from tests.bench.load import Shape, Target
from tests.bench.population import Population
from tests.bench.stand import SERVICE
from tests.bench.stats import Sample
from tests.federated.federated_process import FederatedProcess, write_config
from tests.support.faulty_proxy import Proxy
from tests.support.replicas import ReplicaProcess

GROUP = "federated"
_EACH = 34  # instances of a service at each location; the single HQ has three times as many
_NAMES = ("east", "north", "west")
_SLOW_S = 2.0


class World:
    """Three installations with two replicas each over one etcd, and a single HQ beside them, all of them real."""

    def __init__(self, directory: Path, stack: AsyncExitStack) -> None:
        self._directory, self._stack = directory, stack
        self._etcd = EmbeddedEtcd(
            directory / "etcd",
            binary=find_etcd(),
            extra_flags=(f"--max-txn-ops={MAX_TXN_OPS}", "--max-request-bytes=16777216"),
        )
        self.replicas: dict[str, list[ReplicaProcess]] = {}

    async def start(self) -> None:
        await self._etcd.start()
        self._stack.push_async_callback(self._etcd.kill)
        for name in _NAMES:
            await self._installation(name, _EACH, replicas=2)
        await self._installation("single", 3 * _EACH, replicas=1)

    async def gateway(self, name: str, addresses: dict[str, list[str]]) -> FederatedProcess:
        """A gateway over replicas by location."""
        config = self._directory / f"{name}.yaml"
        write_config(config, addresses, "5s")
        gateway = FederatedProcess(config, self._directory / f"{name}.log")
        self._stack.push_async_callback(gateway.kill)
        await gateway.start()
        return gateway

    def addresses(self) -> dict[str, list[str]]:
        """Addresses of the replicas, by location."""
        return {name: [replica.grpc for replica in self.replicas[name]] for name in _NAMES}

    async def _installation(self, name: str, size: int, replicas: int) -> None:
        prefix = f"/{name}/"
        await fill(self._etcd.endpoint, Population(size, name), prefix)
        self.replicas[name] = []
        for index in range(replicas):
            log = self._directory / f"{name}-{index}.log"
            replica = ReplicaProcess([self._etcd.endpoint], prefix, log, ["--cluster", name])
            self._stack.push_async_callback(replica.kill)
            self.replicas[name].append(replica)
            await replica.start()


async def run(bench: Bench) -> None:
    """The group `gateway`."""
    directory = bench.directory / GROUP
    directory.mkdir()
    async with AsyncExitStack() as stack:
        world = World(directory, stack)
        await world.start()
        gateway = await world.gateway("gateway", world.addresses())
        single = world.replicas["single"][0]
        service = service_pb2.FindInstancesRequest(filter={"service_id": ["filler-00000"]})
        one = service_pb2.GetInstanceRequest(id="filler-00000.001.east")
        here = service_pb2.GetInstanceRequest(id="filler-00000.001.single")
        for name, method, request, direct in (
            ("Find 102 of three installations, gRPC", "FindInstances", service, service),
            ("Get of three installations, gRPC", "GetInstance", one, here),
        ):
            shape = Shape(4, 4)
            targets = {
                "hq": (Target(gateway.grpc, f"{SERVICE}/{method}", (gateway.pid,)), request),
                "single": (Target(single.grpc, f"{SERVICE}/{method}", (single.pid,)), direct),
            }
            sides: dict[str, Side] = {
                side: partial(load.grpc, target, [asked.SerializeToString()], shape=shape)
                for side, (target, asked) in targets.items()
            }
            await bench.compare(
                GROUP, name, sides, note="hq: the federation gateway; single: one HQ with all instances"
            )
        await _over_http(bench, gateway, single, service)
        await _hedge(bench, world, stack, service.SerializeToString())


async def _over_http(
    bench: Bench, gateway: FederatedProcess, single: ReplicaProcess, request: service_pb2.FindInstancesRequest
) -> None:
    for kind, body in (("proto", request.SerializeToString()), ("JSON", to_json(request))):
        sides: dict[str, Side] = {
            side: partial(_http, Target(one.http, f"{SERVICE}/FindInstances", (one.pid,)), body, kind)
            for side, one in (("hq", gateway), ("single", single))
        }
        name = f"Find 102 of three installations, {kind}"
        await bench.compare(GROUP, name, sides, note="hq: the federation gateway; single: one HQ with all instances")


async def _http(target: Target, body: bytes, kind: str, seconds: float) -> Sample:
    return await load.http(target, [body], f"application/{kind.lower()}", seconds)


async def _hedge(bench: Bench, world: World, stack: AsyncExitStack, request: bytes) -> None:
    """The first replica of one location answers 2 s late, from the middle of the load on."""
    gates = {
        name: [await stack.enter_async_context(Proxy(a)) for a in listed] for name, listed in world.addresses().items()
    }
    gateway = await world.gateway(
        "hedging", {name: [gate.endpoint for gate in listed] for name, listed in gates.items()}
    )
    target = Target(gateway.grpc, f"{SERVICE}/FindInstances", (gateway.pid,))
    calm = await load.grpc(target, [request], bench.seconds, Shape(2, 2, 100.0))
    for gate in gates["east"][:1]:
        gate.delay(_SLOW_S / 2)
    slow = await load.grpc(target, [request], max(5.0, bench.seconds), Shape(2, 2, 100.0))
    bench.fact(GROUP, "federation gateway at 100/s: p99", [calm.p99_ms], "ms")
    bench.fact(GROUP, "federation gateway at 100/s, one replica 2 s late: p50", [slow.p50_ms], "ms")
    bench.fact(GROUP, "federation gateway at 100/s, one replica 2 s late: p99", [slow.p99_ms], "ms")
    bench.fact(GROUP, "federation gateway at 100/s, one replica 2 s late: slowest", [slow.max_ms], "ms")
