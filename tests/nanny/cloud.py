"""Three locations, a federation gateway, agents and Nanny as real processes, and a reader outside of them all."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict

from hqclient import Client, HqApiError
from hqclient.credential_files import CredentialFiles
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as hq_pb
from nannyctl.nanny_server import NannyServer, new_request_id
from nannypb.v1 import service_pb2 as pb
from tests.clients.instancectl.supervised import Ctl
from tests.cms.cloud import http, task
from tests.nanny.callers import SERVER
from tests.support.gateway_process import Program, fetched
from tests.support.reserved_port import kept_addresses, kept_ports
from tests.support.sample_instances import eventually

LOCATIONS = ("sas", "man", "vla")
SERVICE = "web"
_TRUE = instance_pb2.CONDITION_STATUS_TRUE
_FREE = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")


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

    async def until_seen(self, ready: int) -> None:
        """Return when its last look found so many ready: it learns that on its own, after Nanny."""
        await eventually(lambda: self.seen[-1:] == [ready], what=f"a look that finds {ready} ready")

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


class Location:
    """An installation of HQ on the shared etcd: replicas that may be killed, and started again on their addresses."""

    def __init__(self, directory: Path, name: str, etcd: str, prefix: str, replicas: int, *flags: str) -> None:
        words = ("serve", "--etcd", etcd, "--prefix", f"{prefix}hq-{name}/", "--cluster", name, *flags)
        self.replicas = [
            Program(
                "hq.main",
                (*words, "--report-interval", "2s", *kept_addresses()),
                directory / f"hq-{name}-{number}.log",
            )
            for number in range(replicas)
        ]

    @property
    def addresses(self) -> list[str]:
        return [replica.grpc for replica in self.replicas]

    async def start(self) -> None:
        await asyncio.gather(*(replica.start() for replica in self.replicas))
        self.client = Client(self.addresses)

    def pause(self) -> None:
        for replica in self.replicas:
            replica.pause()

    def resume(self) -> None:
        for replica in self.replicas:
            replica.resume()

    async def kill(self) -> None:
        await asyncio.gather(*(replica.kill() for replica in self.replicas))
        if hasattr(self, "client"):
            await self.client.close()


class Cloud:
    """Everything together. Orders go to whichever Nanny answers."""

    def __init__(self, directory: Path, etcd: str, prefix: str, *hq_flags: str) -> None:
        self.directory, self._etcd, self._prefix = directory, etcd, prefix
        self.locations = {
            name: Location(directory, name, etcd, prefix, 2 if name == LOCATIONS[0] else 1, *hq_flags)
            for name in LOCATIONS
        }
        self.agents: dict[str, Ctl] = {}
        self.nannies: list[Program] = []
        self._ports: dict[str, int] = {}
        self.revisions: dict[str, str] = {}
        self._started = 0
        self.gateway: Program | None = None
        self.cms: Program | None = None

    @property
    def _location_flags(self) -> list[str]:
        return [f"--location={name}={','.join(location.addresses)}" for name, location in self.locations.items()]

    async def start(self, per_location: int, *, with_cms: bool) -> None:
        await asyncio.gather(*(location.start() for location in self.locations.values()))
        config = self.directory / "gateway.yaml"
        replicas = {name: {"replicas": location.addresses} for name, location in self.locations.items()}
        config.write_text(json.dumps({"locations": replicas}))
        self.gateway = Program("federated.main", ("--config", str(config), *_FREE), self.directory / "gateway.log")
        await self.gateway.start()
        if with_cms:
            words = ("serve", "--etcd", self._etcd, "--prefix", f"{self._prefix}cms/", *self._location_flags)
            more = ("--term", "2s", "--settle", "0.5s", "--fence", "500ms", "--default-budget", "10%")
            flags = (*more, "--rollout-issuer", "nanny", *_FREE)
            self.cms = Program("cms.main", (*words, *flags), self.directory / "cms.log")
            await self.cms.start()
        for name in LOCATIONS:
            for number in range(per_location):
                await self.add_agent(name, f"{name}-{number}")

    async def add_agent(self, location: str, instance: str) -> None:
        servers = [f"--server={address}" for address in self.locations[location].addresses]
        words = ("--instance", instance, "--node", f"node-{instance}", *servers)
        self.agents[instance] = await Ctl(self.directory / instance, *words).start()

    async def start_nanny(self) -> Program:
        self._started += 1
        words = ["serve", "--etcd", self._etcd, "--prefix", f"{self._prefix}nanny/", "--term", "3s"]
        words += ["--drift-every", "2s", *_FREE, *self._location_flags]
        if self.cms is not None:
            words += ["--cms", self.cms.grpc]
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
        info = ParseDict({"rollout": {"soakS": 1, **rollout}}, pb.InfoAttributes())
        await self._acting()
        await self.call("CreateService", pb.CreateServiceRequest(service_id=SERVICE, info=info))

    async def add(self, title: str, names: list[str], command: str = "exec sleep 1000") -> str:
        """A snapshot of a shell command; the id of it."""
        return await self.add_container(title, names, {"command": ["sh", "-c", f": {title}; {command}"]})

    async def add_bad(self, title: str, names: list[str]) -> str:
        """A snapshot of a program that ends at once; the id of it.

        It is never ready, with a check that asks it: without one it would be for as long as a busy machine takes to see
        that it has ended.
        """
        ready = {"http": {"port": "http", "path": "/"}, "period": "0.2s"}
        return await self.add_container(title, names, {"command": ["sh", "-c", "exit 1"], "readinessCheck": ready})

    async def add_server(self, title: str, names: list[str]) -> str:
        """A snapshot of an HTTP server that answers its title; the id of it."""
        ready = {"http": {"port": "http", "path": "/ready"}, "period": "0.2s"}
        command = [sys.executable, "-c", SERVER, title]
        return await self.add_container(title, names, {"command": command, "readinessCheck": ready})

    async def add_container(self, title: str, names: list[str], container: dict[str, Any]) -> str:
        """A snapshot with this container; each instance has a port `http` of its own."""
        instances = [
            {
                "id": name,
                "installation": name.split("-")[0],
                "node": f"node-{name}",
                "allocation": {"host": "127.0.0.1", "ports": {"http": self._port_of(name)}},
            }
            for name in names
        ]
        revision = {"id": title, "container": [{"name": "web", **container}]}
        content = {"service": SERVICE, "instances": instances, "revisions": [revision]}
        request = pb.CreateSnapshotRequest(service_id=SERVICE, content=json.dumps(content).encode())
        snapshot = (await self.call("CreateSnapshot", request)).snapshot
        self.revisions[snapshot.id] = snapshot.revision_id
        return str(snapshot.id)

    async def served(self) -> dict[str, int]:
        """How many requests came to the server of each instance, by its id; what does not answer is left out."""
        counts = {}
        for name, port in self._ports.items():
            with suppress(OSError):
                counts[name] = int((await asyncio.to_thread(fetched, f"http://127.0.0.1:{port}/served", {}))[1])
        return counts

    def _port_of(self, name: str) -> int:
        if name not in self._ports:
            self._ports[name] = kept_ports()[0]
        return self._ports[name]

    async def target(self, snapshot: str, target: pb.Target = pb.TARGET_ACTIVE, *, fill: bool = False) -> None:
        request = pb.SetTargetRequest(service_id=SERVICE, snapshot_id=snapshot, target=target)
        request.fill_pods_configuration = fill
        request.request_id = new_request_id()
        await self.call("SetTarget", request)

    async def leave_out(self, *locations: str) -> None:
        """Roll-outs touch and wait for none of these."""
        info = (await self.service()).info
        info.rollout.leave_out[:] = locations
        await self.call("UpdateService", pb.UpdateServiceRequest(service_id=SERVICE, info=info))

    async def give_up_after(self, seconds: int) -> None:
        """The progress deadline of roll-outs from now on: short only where one has to fail, as machines stall."""
        info = (await self.service()).info
        info.rollout.progress_deadline_s = seconds
        await self.call("UpdateService", pb.UpdateServiceRequest(service_id=SERVICE, info=info))

    async def stop_service(self) -> None:
        await self.call("StopService", pb.StopServiceRequest(service_id=SERVICE, request_id=new_request_id()))

    async def batches(self, snapshot: str, count: int) -> None:
        """Whether so many batches of its roll-out are done, or all of it."""

        async def done() -> bool:
            try:
                found = [one for one in (await self.service()).snapshot if one.snapshot_id == snapshot]
            except HqApiError:
                return False
            return any(one.action.batches_done >= count or one.current == pb.CURRENT_STATE_ACTIVE for one in found)

        await eventually(done, 60.0, f"{count} batches of {snapshot}")

    async def until(self, snapshot: str, *states: pb.CurrentState, timeout_s: float = 120.0) -> pb.Service:
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

    async def reboot(self, instance: str) -> None:
        """Reboot a host as an operator would: with approval of the CMS, given back once the host is ready."""
        assert self.cms is not None
        url = f"http://{self.cms.http}/v1.4/tasks"
        body = json.dumps(task(f"reboot-{instance}", f"node-{instance}")).encode()

        async def granted() -> bool:
            answer = (await asyncio.to_thread(http, "POST", url, body)).body
            return bool(answer["status"] == "ok")

        await eventually(granted, 120.0, f"leave to reboot the host of {instance}")
        await self.agents[instance].terminate()
        await self.agents[instance].start()
        client = self.locations[instance.split("-")[0]].client

        async def is_ready() -> bool:
            return (await client.get(instance)).instance.status.ready.status == _TRUE

        await eventually(is_ready, 30.0, f"{instance} to be ready again")
        await asyncio.to_thread(http, "DELETE", f"{url}/reboot-{instance}")

    async def _acting(self) -> None:
        async def acts() -> bool:
            return bool((await self.call("GetControl", pb.GetControlRequest())).control.acting)

        await eventually(acts, 30.0, "a Nanny that acts")

    async def stop(self) -> None:
        for agent in self.agents.values():
            await agent.clean_up()
        for program in (*self.nannies, self.cms, self.gateway, *self.locations.values()):
            if program is not None:
                await program.kill()


def _current(service: pb.Service, snapshot: str) -> int:
    return next((one.current for one in service.snapshot if one.snapshot_id == snapshot), 0)


@asynccontextmanager
async def cloud_of(
    directory: Path, etcd: str, prefix: str, per_location: int, *hq_flags: str, with_cms: bool = False
) -> AsyncIterator[tuple[Cloud, Reader]]:
    """Everything runs, and the reader reads."""
    cloud = Cloud(directory, etcd, prefix, *hq_flags)
    reading = None
    try:
        await cloud.start(per_location, with_cms=with_cms)
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
