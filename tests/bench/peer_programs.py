"""What people would pick instead of HQ, as processes on this machine: etcd, Consul, Eureka, each over its native API.

They are looked for in ~/.cache/hq-peers (`PEERS=DIR`): `etcd`, `consul` and `eureka.jar`. `install` builds what is
missing there, with Go, Maven and a JDK.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import local
from typing import Any, Final, NamedTuple

from store.embedded import EtcdBinary, find_etcd
from store.embedded.binary import etcd_at
from store.embedded.embedded_etcd import free_ports
from tests.bench.load import Target

FOLDER: Final = Path(os.environ.get("PEERS") or Path.home() / ".cache" / "hq-peers")
ETCD, CONSUL, EUREKA = FOLDER / "etcd", FOLDER / "consul", FOLDER / "eureka.jar"
_VERSIONS: Final = {"etcd": "3.6.16", "consul": "1.22.7", "consul/api": "1.34.5", "eureka": "4.3.0"}
_READY_S: Final = 60.0
_AT_ONCE: Final = 8


class PeersMissing(Exception):
    """A program is not installed; the message says how to get it."""


def check() -> None:
    """Raises PeersMissing."""
    missing = [path.name for path in (ETCD, CONSUL, EUREKA) if not path.exists()]
    if missing:
        raise PeersMissing(
            f"{', '.join(missing)} not found in {FOLDER}: build with `python -m tests.bench peers` "
            "(needs Go >= 1.25; for Eureka Maven and a JDK >= 17), or set PEERS to their directory"
        )


def install() -> None:
    """Build what is missing. Raises CalledProcessError, FileNotFoundError."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    consul = f"github.com/hashicorp/consul@v{_VERSIONS['consul']}"
    if not ETCD.exists():
        _go(ETCD, "go.etcd.io/etcd/server/v3", f"go.etcd.io/etcd/server/v3@v{_VERSIONS['etcd']}")
    if not CONSUL.exists():
        # Its own module names parts by their place in its repository, so their published versions are named here.
        _go(CONSUL, consul.partition("@")[0], consul, f"github.com/hashicorp/consul/api@v{_VERSIONS['consul/api']}")
    if not EUREKA.exists():
        made = FOLDER / "eureka"
        shutil.copytree(Path(__file__).with_name("eureka"), made, dirs_exist_ok=True)
        subprocess.run(["mvn", "-q", "-B", "package"], cwd=made, check=True)
        shutil.copy(made / "target" / "eureka.jar", EUREKA)


def _go(made: Path, package: str, *modules: str) -> None:
    directory = FOLDER / f"{made.name}-build"
    directory.mkdir(exist_ok=True)
    (directory / "go.mod").write_text("module build\n")
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    for order in (("get", *modules), ("build", "-o", str(made), package)):
        subprocess.run(["go", *order], cwd=directory, env=environment, check=True)


def current_etcd() -> EtcdBinary:
    """The one that was built here, else the machine's own."""
    return etcd_at(ETCD) or find_etcd()


class Instance(NamedTuple):
    """An instance as all of them can hold it."""

    id: str
    service: str
    node: str
    port: int


class Peer:
    """A program that serves HTTP at a port of its own, and its instances."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process, self.port = process, port
        self._connections = local()

    @property
    def pid(self) -> int:
        return self.process.pid

    def target(self, path: str) -> Target:
        return Target(f"127.0.0.1:{self.port}", path, (self.pid,))

    def ask(self, method: str, path: str, body: Any = None) -> tuple[bytes, dict[str, str]]:
        """One request over this thread's own connection. Raises AssertionError: it was refused."""
        if not hasattr(self._connections, "own"):
            self._connections.own = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        own: http.client.HTTPConnection = self._connections.own
        encoded = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        try:
            own.request(method, path, encoded, headers)
            answer = own.getresponse()
        except ConnectionError:  # it was idle for too long while others were measured
            own.close()
            own.request(method, path, encoded, headers)
            answer = own.getresponse()
        said = answer.read()
        assert answer.status < 300, (path, answer.status, said[:300])
        return said, {name.lower(): value for name, value in answer.getheaders()}

    def register_all(self, register: Callable[[Instance], object], instances: Iterator[Instance]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(register, instances):
                pass

    async def ready(self, path: str) -> None:
        """Return when it answers there."""
        ends = time.monotonic() + _READY_S
        while True:
            with suppress(OSError, http.client.HTTPException, AssertionError):
                await asyncio.to_thread(self.ask, "GET", path)
                return
            self._connections = local()
            if time.monotonic() > ends or self.process.returncode is not None:
                raise AssertionError(f"{path} at port {self.port} was not answered")
            await asyncio.sleep(0.2)

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


class Consul(Peer):
    """A server of one member, with its log on disk."""

    @classmethod
    async def start(cls, directory: Path) -> Consul:
        http_port, dns, grpc_port, serf, wan, server = (port for _ in range(3) for port in free_ports())
        directory.mkdir()
        settings = {
            "ports": {
                "http": http_port,
                "dns": dns,
                "grpc": grpc_port,
                "grpc_tls": -1,
                "serf_lan": serf,
                "serf_wan": wan,
                "server": server,
            },
            "limits": {"http_max_conns_per_client": 5000},
            "performance": {"raft_multiplier": 1},
        }
        (directory / "config.json").write_text(json.dumps(settings))
        words = ("agent", "-server", "-bootstrap-expect=1", "-bind=127.0.0.1", "-log-level=warn", "-node=bench")
        made = cls(await _process(directory, str(CONSUL), *words, f"-config-file={directory}/config.json",
                                  f"-data-dir={directory}/data"), http_port)  # fmt: skip
        await made.ready("/v1/health/service/consul?passing&index=0")
        while len(json.loads((await asyncio.to_thread(made.ask, "GET", "/v1/status/leader"))[0])) < 3:
            await asyncio.sleep(0.2)
        return made

    def register(self, instance: Instance) -> None:
        self.put(instance, "passing")

    def put(self, instance: Instance, status: str) -> None:
        """Instance and check in the catalog, as an external process registers them."""
        service = {"ID": instance.id, "Service": instance.service, "Port": instance.port, "Address": "10.0.0.1"}
        check = {"CheckID": f"service:{instance.id}", "Name": "up", "ServiceID": instance.id, "Status": status}
        where = {"Node": instance.node, "Address": "10.0.0.1", "NodeMeta": {"external-node": "true"}}
        labels = {"engine": "jvm", "group": instance.service}
        self.ask("PUT", "/v1/catalog/register", {**where, "Service": {**service, "Meta": labels}, "Check": check})

    def heard(self) -> str:
        """The path of a heartbeat: of a TTL check of the agent, which is registered here."""
        check = {"TTL": "60m", "ID": "bench-ttl", "Name": "ttl"}
        self.ask("PUT", "/v1/agent/check/register", check)
        return "/v1/agent/check/pass/bench-ttl"


class Eureka(Peer):
    """The server of Spring Cloud, alone, as its guide shows it."""

    @classmethod
    async def start(cls, directory: Path) -> Eureka:
        directory.mkdir()
        port, _ = free_ports()
        alone = ("register-with-eureka", "fetch-registry")
        words = ("-jar", str(EUREKA), f"--server.port={port}", *(f"--eureka.client.{word}=false" for word in alone))
        made = cls(await _process(directory, "java", *words, "--logging.level.root=warn"), port)
        await made.ready("/eureka/apps")
        return made

    def register(self, instance: Instance) -> None:
        told = {
            "instanceId": instance.id,
            "hostName": instance.node,
            "app": instance.service.upper(),
            "ipAddr": "10.0.0.1",
            "status": "UP",
            "vipAddress": instance.service,
            "port": {"$": instance.port, "@enabled": "true"},
            "dataCenterInfo": {"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"},
            "leaseInfo": {"durationInSecs": 7_200},
            "metadata": {"engine": "jvm", "group": instance.service},
        }
        self.ask("POST", f"/eureka/apps/{instance.service.upper()}", {"instance": told})

    def put(self, instance: Instance, status: str) -> None:
        """Set whether it is UP or OUT_OF_SERVICE."""
        path = f"/eureka/apps/{instance.service.upper()}/{instance.id}/status?value={status}"
        self.ask("PUT", path)


async def _process(directory: Path, *command: str) -> asyncio.subprocess.Process:
    with (directory / "log").open("wb") as log:
        return await asyncio.create_subprocess_exec(
            *command, cwd=directory, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
        )
