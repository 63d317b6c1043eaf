"""Commands and the federation gateway of one version over replicas of the other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import yaml

from hqclient import Client
from hqpb.v1 import service_pb2 as pb
from tests.clients.process import Outcome, command
from tests.releases.conftest import Versions
from tests.releases.test_replicas import everything, fill
from tests.support.etcd import SharedEtcd
from tests.support.gateway_process import Program
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually, instance
from tools.check_compatible import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
_SPEC = {"meta": {"id": "web-1", "serviceId": "web"}, "spec": {"nodeName": "node-1"}}
_DESCRIPTION = {"service": "shop", "instances": [{"id": "shop-1", "node": "node-1"}], "ready": "v1"}


@asynccontextmanager
async def replica(
    root: Path, etcd: SharedEtcd, tmp_path: Path, *flags: str, name: str = "hq"
) -> AsyncIterator[ReplicaProcess]:
    prefix = f"{etcd.prefix}{name}/"
    process = ReplicaProcess([etcd.endpoint], prefix, tmp_path / f"{name}.log", flags, root=root)
    try:
        await process.start()
        yield process
    finally:
        await process.kill()
    assert "Traceback" not in process.log_text()


async def test_every_command_for_instances_works_with_the_other_version(
    versions: Versions, etcd: SharedEtcd, tmp_path: Path
) -> None:
    async with replica(versions.first, etcd, tmp_path) as hq:
        await fill(hq)

        async def hqctl(*words: str, code: int = 0) -> str:
            done = await command(
                "hqctl.main", *words, server=hq.grpc, stdin=yaml.safe_dump(_SPEC), root=versions.second
            )
            assert done.code == code, (words, done)
            return done.out

        assert "web-1" in await hqctl("apply", "-f", "-")
        assert json.loads(await hqctl("get", "web-1", "-o", "json"))["spec"]["nodeName"] == "node-1"
        assert {*(await hqctl("find", "-o", "name")).split()} >= {"with-secret", "silent", "reported", "web-1"}
        assert "reported" in await hqctl("find", "--ready")
        await hqctl("diff", "-f", "-")
        await hqctl("report", "silent", "r1", "--ready")
        await hqctl("wait", "silent", "--timeout", "10s")
        for words in (
            ("why", "silent"),
            ("revision", "show", "reported"),
            ("events",),
            ("top",),
            ("count",),
            ("quarantine",),
        ):
            await hqctl(*words)
        for words in (("guard", "status"), ("epoch", "status"), ("suspensions",)):
            await hqctl(*words)
        if (
            versions.second == ROOT
        ):  # asked for silent agents, 0.1.0 answers with all and says of none that it is silent
            assert await hqctl("find", "--silent", "-o", "name") == ""
            assert await hqctl("delete", "--silent", "--yes") == ""
        assert "silent" in await hqctl("describe", "silent")
        await hqctl("delete", "--yes", "web-1")
        await hqctl("get", "web-1", code=3)


async def test_the_uploader_works_with_the_other_version(versions: Versions, etcd: SharedEtcd, tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"

    def nanny(*words: str) -> object:
        return command("nanny.main", *words, server=hq.grpc, root=versions.second)

    async with replica(versions.first, etcd, tmp_path) as hq:
        for edition in ("v1", "v2", "v1"):  # the last one is the way back
            path.write_text(yaml.safe_dump({**_DESCRIPTION, "ready": edition, "revisions": [{"id": edition}]}))
            done: Outcome = await nanny("upload", "-f", str(path))  # type: ignore[misc]
            assert done.code == 0, done
        held = (await everything(hq))["shop-1"].spec.revision
        assert {revision.id: revision.target for revision in held} == {"v1": 2, "v2": 1}


async def test_a_federation_gateway_asks_replicas_of_both_versions(
    versions: Versions, etcd: SharedEtcd, tmp_path: Path
) -> None:
    config = tmp_path / "gateway.yaml"
    async with AsyncExitStack() as stack:
        locations = {}
        for name, root in zip(("east", "west"), versions, strict=True):
            hq = await stack.enter_async_context(replica(root, etcd, tmp_path, "--cluster", name, name=name))
            locations[name] = {"replicas": [hq.grpc]}
        config.write_text(json.dumps({"locations": locations}))
        for number, root in enumerate(versions):
            words = ("--config", str(config), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
            gateway = Program("federated.main", words, tmp_path / f"gateway-{number}.log", root)
            stack.push_async_callback(gateway.kill)
            await gateway.start()
            async with Client([gateway.grpc]) as client, client.watch() as items:
                for cluster in locations:
                    made = instance(f"{cluster}-{number}")
                    made.meta.cluster = cluster
                    await client.create(made)
                wanted = {f"{cluster}-{n}" for cluster in locations for n in range(number + 1)}
                await eventually(lambda c=client, w=wanted: shows(c, w), 90.0, "both locations")  # type: ignore[misc]
                assert await anext(items) is not None
            assert "Traceback" not in gateway.log.read_text()


async def shows(client: Client, ids: set[str]) -> bool:
    pages = [page async for page in client.find(pb.InstanceFilter())]
    errors = [source.error for page in pages for source in page.sources if source.error]
    return not errors and {each.meta.id for page in pages for each in page.instances} == ids
