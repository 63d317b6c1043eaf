"""Three locations, a federation gateway, agents and Nanny as real processes, and a reader outside of them all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict

from hqclient import Client, HqApiError
from hqclient.credential_files import CredentialFiles
from hqpb.v1 import service_pb2 as hq_pb
from nannyctl.nanny_server import NannyServer, new_request_id
from nannypb.v1 import service_pb2 as pb
from tests.clients.instancectl.supervised import Ctl
from tests.support.gateway_process import Program, Registry
from tests.support.sample_instances import eventually

LOCATIONS = ("sas", "man", "vla")
SERVICE = "web"
BAD = "exit 1"


class Reader:
    """Polls discovery through the gateway every 50 ms. `seen` are the numbers of ready instances, `floor` must hold."""

    def __init__(self, gateway: str) -> None:
        self._client = Client([gateway])
        self.floor = 0
        self.seen: list[int] = []
        self.below: list[str] = []
        self.during = ""

    async def run(self) -> None:
        where = hq_pb.InstanceFilter(service_id=[SERVICE], readiness=hq_pb.READINESS_FILTER_READY)
        while True:
            await self._look(where)
            await asyncio.sleep(0.05)

    async def _look(self, where: hq_pb.InstanceFilter) -> None:
        try:
            pages = [page async for page in self._client.find(where)]
        except HqApiError:
            return
        if any(source.error for page in pages for source in page.sources):
            return  # a location that does not answer is no word on its instances
        ready = [instance.meta.id for page in pages for instance in page.instances]
        self.seen.append(len(ready))
        if len(ready) < self.floor:
            self.below.append(f"{self.during}: {len(ready)} of {self.floor}: {sorted(ready)}")

    async def close(self) -> None:
        await self._client.close()


class Cloud:
    """Everything together. Orders go to whichever Nanny answers."""

    def __init__(self, directory: Path, etcd: str, prefix: str) -> None:
        self.directory, self._etcd, self._prefix = directory, etcd, prefix
        self.registries = {name: Registry(directory, f"hq-{name}", name) for name in LOCATIONS}
        self.agents: dict[str, Ctl] = {}
        self.nannies: list[Program] = []
        self._started = 0
        self.gateway: Program | None = None

    async def start(self, per_location: int) -> None:
        await asyncio.gather(*(registry.start() for registry in self.registries.values()))
        config = self.directory / "gateway.yaml"
        replicas = {name: {"replicas": [registry.grpc]} for name, registry in self.registries.items()}
        config.write_text(json.dumps({"locations": replicas}))
        addresses = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
        self.gateway = Program("federated.main", ("--config", str(config), *addresses), self.directory / "gateway.log")
        await self.gateway.start()
        for name in LOCATIONS:
            for number in range(per_location):
                await self.add_agent(name, f"{name}-{number}")

    async def add_agent(self, location: str, instance: str) -> None:
        server = self.registries[location].grpc
        words = ("--instance", instance, "--node", f"node-{instance}", "--server", server)
        self.agents[instance] = await Ctl(self.directory / instance, *words).start()

    async def start_nanny(self) -> Program:
        self._started += 1
        words = ["serve", "--etcd", self._etcd, "--prefix", self._prefix, "--term", "3s", "--drift-every", "2s"]
        words += ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        for name, registry in self.registries.items():
            words += ["--location", f"{name}={registry.grpc}"]
        nanny = Program("nanny.main", words, self.directory / f"nanny-{self._started}.log")
        await nanny.start()
        self.nannies.append(nanny)
        return nanny

    async def kill_acting(self) -> None:
        """SIGKILL the process that acts, and start another one."""
        control = (await self.call("GetControl", pb.GetControlRequest())).control
        for nanny in self.nannies:
            told = await NannyServer((nanny.grpc,), 5.0, CredentialFiles()).call("GetControl", pb.GetControlRequest())
            if told.control.process == control.acting:
                await nanny.kill()
                self.nannies.remove(nanny)
                break
        else:
            raise AssertionError(f"nobody is {control.acting}")
        await self.start_nanny()

    async def call(self, method: str, request: Any) -> Any:
        server = NannyServer(tuple(nanny.grpc for nanny in self.nannies), 10.0, CredentialFiles())
        return await server.call(method, request)

    async def service(self) -> pb.Service:
        found = (await self.call("GetService", pb.GetServiceRequest(service_id=SERVICE))).service
        assert isinstance(found, pb.Service)
        return found

    async def create(self, **rollout: Any) -> None:
        info = ParseDict({"rollout": rollout}, pb.InfoAttributes())
        await self._acting()
        await self.call("CreateService", pb.CreateServiceRequest(service_id=SERVICE, info=info))

    async def add(self, title: str, names: list[str], command: str = "exec sleep 1000") -> str:
        """A snapshot; the id of it."""
        content = {
            "service": SERVICE,
            "instances": [{"id": name, "installation": name.split("-")[0], "node": f"node-{name}"} for name in names],
            "revisions": [
                {"id": title, "container": [{"name": "web", "command": ["sh", "-c", f": {title}; {command}"]}]}
            ],
        }
        request = pb.CreateSnapshotRequest(service_id=SERVICE, content=json.dumps(content).encode())
        snapshot = (await self.call("CreateSnapshot", request)).snapshot
        return str(snapshot.id)

    async def target(self, snapshot: str, target: pb.Target = pb.TARGET_ACTIVE) -> None:
        request = pb.SetTargetRequest(service_id=SERVICE, snapshot_id=snapshot, target=target)
        request.request_id = new_request_id()
        await self.call("SetTarget", request)

    async def until(self, snapshot: str, *states: pb.CurrentState, timeout_s: float = 60.0) -> pb.Service:
        """The snapshot is in one of the states."""

        seen = ""

        async def there() -> pb.Service | None:
            nonlocal seen
            try:
                service = await self.service()
            except HqApiError as error:
                seen = str(error)
                return None
            seen = str(service)
            return service if _current(service, snapshot) in states else None

        try:
            found = await eventually(there, timeout_s)
        except AssertionError:
            raise AssertionError(f"{snapshot} is not in {states} within {timeout_s} s: {seen}") from None
        assert isinstance(found, pb.Service)
        return found

    async def _acting(self) -> None:
        async def acts() -> bool:
            return bool((await self.call("GetControl", pb.GetControlRequest())).control.acting)

        await eventually(acts, 30.0, "a Nanny that acts")

    async def stop(self) -> None:
        for agent in self.agents.values():
            await agent.clean_up()
        for program in (*self.nannies, *([self.gateway] if self.gateway else []), *self.registries.values()):
            await program.kill()
        for registry in self.registries.values():
            if hasattr(registry, "_client"):
                await registry.client.close()


def _current(service: pb.Service, snapshot: str) -> int:
    return next((one.current for one in service.snapshot if one.snapshot_id == snapshot), 0)


@asynccontextmanager
async def cloud_of(directory: Path, etcd: str, prefix: str, per_location: int) -> AsyncIterator[tuple[Cloud, Reader]]:
    """Everything runs, and the reader reads."""
    cloud = Cloud(directory, etcd, prefix)
    reading = None
    try:
        await cloud.start(per_location)
        await cloud.start_nanny()
        assert cloud.gateway is not None
        reader = Reader(cloud.gateway.grpc)
        reading = asyncio.create_task(reader.run())
        yield cloud, reader
    finally:
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await reader.close()
        await cloud.stop()
