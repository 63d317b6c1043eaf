"""From `nanny upload` through three real instancectl to discovery, to the next revision and back by the server."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hqclient.client import Client
from hqclient.discovery import Discovery, Endpoint, Service
from tests.clients.instancectl.file_server import FileServer
from tests.clients.instancectl.supervised import Ctl, free_port
from tests.clients.nanny.uploads import nanny
from tests.support.etcd import SharedEtcd
from tests.support.gateway_process import Program
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import eventually

NODES = ("node-a", "node-b", "node-c")
CANARY = "canary-7c1f"
PROGRAM = """
import hashlib, http.server, json, os, sys
path = os.path.join(os.environ["HQ_REVISION_DIR"], "keys/key.pem")
told = {
    "instance": os.environ["HQ_INSTANCE"], "revision": os.environ["HQ_REVISION"],
    "token": hashlib.sha256(os.environ["TOKEN"].encode()).hexdigest(),
    "key": hashlib.sha256(open(path, "rb").read()).hexdigest(), "mode": oct(os.stat(path).st_mode & 0o777),
}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(json.dumps(told).encode())
http.server.HTTPServer((os.environ["HQ_HOST"], int(os.environ["HQ_PORT_HTTP"])), Handler).serve_forever()
"""

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


@pytest.fixture
async def installation(replicas: Replicas, etcd: SharedEtcd) -> list[ReplicaProcess]:
    """Two replicas over a real etcd."""
    return [await replicas.start([etcd.endpoint], etcd.prefix) for _ in range(2)]


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    async with FileServer() as server:
        yield server


@pytest.fixture
async def nodes(installation: list[ReplicaProcess], tmp_path: Path) -> AsyncIterator[list[Ctl]]:
    """Three instancectl, not started yet; they end with the test."""
    secrets = tmp_path / "secrets" / "site"
    secrets.mkdir(parents=True)
    for name in ("token", "key"):
        (secrets / name).write_text(f"{CANARY}-{name}")
    servers = ",".join(replica.grpc for replica in installation)
    common = ("--server", servers, "--secrets", f"files=dir:{tmp_path / 'secrets'}")
    made = [
        Ctl(tmp_path / f"site-{n}", "--instance", f"site-{n}", "--node", node, *common)
        for n, node in enumerate(NODES, 1)
    ]
    yield made
    for ctl in made:
        await ctl.clean_up()


@pytest.fixture
async def server(installation: list[ReplicaProcess], tmp_path: Path) -> AsyncIterator[Program]:
    """The Nanny server."""
    replicas = ",".join(replica.grpc for replica in installation)
    words = ("dev", "--store", "memory", "--location", f"default={replicas}", "--http", "127.0.0.1:0")
    made = Program("nanny.main", (*words, "--grpc", "127.0.0.1:0"), tmp_path / "nanny.log")
    await made.start()
    yield made
    await made.kill()


def description(files: FileServer, *revisions: str, **more: Any) -> dict[str, Any]:
    """Three instances on three nodes; each revision fetches its program and gets two secrets."""
    return {
        "service": "site",
        "resources": {"ports": ["http"]},
        "instances": [{"id": f"site-{n}", "node": node} for n, node in enumerate(NODES, 1)],
        "revisions": [_revision(files, revision) for revision in revisions],
        **more,
    }


def _revision(files: FileServer, revision: str) -> dict[str, Any]:
    url, checksum = files.add(f"/{revision}.py", f"{PROGRAM}# {revision}\n".encode())
    secret = {"provider": "files", "id": "site"}
    return {
        "id": revision,
        "file": [{"name": "bin/server.py", "url": url, "checksum": checksum}],
        "secret": [
            {"name": "key", **secret, "key": "key", "file": {"path": "keys/key.pem", "mode": 0o440}},
            {"name": "token", **secret, "key": "token", "environmentVariable": "TOKEN"},
        ],
        "container": [
            {
                "name": "web",
                "command": ["python3", "bin/server.py"],
                "readinessCheck": {"http": {"port": "http"}, "period": "0.5s"},
            }
        ],
    }


async def get(endpoint: Endpoint) -> dict[str, str]:
    """What the program at an endpoint says of itself."""
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    found: dict[str, str] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


async def all_serve(service: Service, revision: str) -> None:
    """Discovery shows three endpoints with this revision, and each of them answers with it."""

    def shown() -> bool:
        return [e.revision for e in service.endpoints] == [revision] * 3

    await eventually(shown, timeout_s=60, what=f"three endpoints with {revision}, not {service.endpoints}")
    told = [await get(endpoint) for endpoint in service.endpoints]
    assert {(t["instance"], t["revision"]) for t in told} == {(f"site-{n}", revision) for n in (1, 2, 3)}
    for name in ("token", "key"):
        digest = hashlib.sha256(f"{CANARY}-{name}".encode()).hexdigest()
        assert {t[name] for t in told} == {digest}
    assert {t["mode"] for t in told} == {"0o440"}


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_a_described_service_is_found_at_three_instances_upgraded_and_rolled_back(
    installation: list[ReplicaProcess], server: Program, nodes: list[Ctl], files: FileServer, tmp_path: Path
) -> None:
    servers = [replica.grpc for replica in installation]
    said: list[str] = []

    async def told(*arguments: str) -> str:
        done = await nanny(*arguments, server=",".join(servers), NANNY_SERVER=server.grpc)
        said.extend((done.out, done.err))
        assert done.code == 0, (arguments, done)
        return done.out

    def written(name: str, what: dict[str, Any]) -> str:
        path = tmp_path / name
        path.write_text(yaml.safe_dump(what))
        return str(path)

    first = description(files, "v1", ready="v1")
    for instance in first["instances"]:
        instance["allocation"] = {"host": "127.0.0.1", "ports": {"http": free_port()}}
    await told("upload", "-f", written("first.yaml", first))
    async with Discovery(servers).service("site", port="http") as service:
        assert not service.endpoints
        for ctl in nodes:
            await ctl.start()
        await all_serve(service, "v1")
        policy = ("--max-unavailable", "1", "--min-ready-time", "1s", "--soak", "2s")
        await told("service", "create", "site", "--adopt", *policy)
        added = await told(
            "snapshot", "add", "site", "-f", written("second.yaml", description(files, "v2")), "-o", "json"
        )
        second = json.loads(added)["snapshot"]["revisionId"]
        await told("target", "site", "PREPARED", "--wait", "120s")
        await all_serve(service, "v1")  # v2 is installed beside it
        assert sorted(files.asked) == ["/v1.py"] * 3 + ["/v2.py"] * 3
        files.asked.clear()
        await told("activate", "site", "--wait", "120s")
        await all_serve(service, second)
        await told("rollback", "site", "--wait", "120s")
        await all_serve(service, "v1")
        await told("status", "site")
        assert files.asked == []
        assert service.resyncs == 0
    async with Client(servers) as client:
        said += [str((await client.get(f"site-{n}")).instance) for n in (1, 2, 3)]
    logs = [path.read_text() for path in tmp_path.rglob("*.log")]
    assert not [text for text in (*said, *logs) if CANARY in text]
