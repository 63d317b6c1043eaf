"""One file of all servers on one etcd; each is restored from it under its running processes, beside the others."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hqclient import HqApiError
from hqclient.credential_files import CredentialFiles
from hqpb.v1 import service_pb2 as hq_pb
from nannyctl.nanny_server import NannyServer
from nannypb.v1 import service_pb2 as pb
from tests.acceptance.test_backup import epoch_of, hq, listed
from tests.cms.cloud import http, task
from tests.support.etcd import SharedEtcd
from tests.support.gateway_process import Program
from tests.support.replicas import Replicas
from tests.support.sample_instances import eventually, instance

pytestmark = [pytest.mark.timeout(240), pytest.mark.long]
FLAGS = ("--term", "5s", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--location", "default=127.0.0.1:1")


class Cms:
    """The tasks of a CMS."""

    def __init__(self, program: Program) -> None:
        self._address = program.http

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        reply = await asyncio.to_thread(http, method, f"http://{self._address}{path}", data)
        return reply.status, reply.body

    async def takes(self, task_id: str) -> bool:
        return (await self.call("POST", "/v1.4/tasks", task(task_id, "host-1")))[0] == 200

    async def answers(self, task_id: str, status: int) -> bool:
        return (await self.call("GET", f"/v1.4/tasks/{task_id}"))[0] == status

    async def why_closed(self) -> str:
        return str((await self.call("POST", "/cms.v1.CmsService/GetStatus", {}))[1].get("closed", ""))


async def nanny_is(nanny: NannyServer, *, is_open: bool) -> bool:
    try:
        control = (await nanny.call("GetControl", pb.GetControlRequest())).control
    except HqApiError:
        return False
    return bool(control.acting) and control.open is is_open


async def nanny_has(nanny: NannyServer, services: list[str]) -> bool:
    """Whether it has read the store again, and these services in it."""
    try:
        found = (await nanny.call("ListServices", pb.ListServicesRequest())).service
    except HqApiError:
        return False
    return [service.id for service in found] == services


@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_each_server_is_restored_from_one_file_and_the_others_go_on(
    replicas: Replicas, etcd: SharedEtcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefixes = {name: f"{etcd.prefix}{name}/" for name in ("hq", "cms", "nanny", "walle")}
    for name in ("cms", "nanny", "walle"):
        monkeypatch.setenv(f"{name.upper()}_PREFIX", prefixes[name])
    where, file = ("--etcd", etcd.endpoint), str(tmp_path / "all")
    async with AsyncExitStack() as stack:
        replica = await replicas.start([etcd.endpoint], prefixes["hq"])
        async with replica.stub() as stub:
            await stub.CreateInstance(hq_pb.CreateInstanceRequest(instance=instance("web-1")))
        programs = [Program(f"{name}.main", ("serve", *where, *FLAGS), tmp_path / name) for name in ("cms", "nanny")]
        for program in programs:
            stack.push_async_callback(program.kill)
            await program.start()
        cms, nanny = Cms(programs[0]), NannyServer((programs[1].grpc,), 10.0, CredentialFiles())
        await eventually(partial(cms.takes, "saved"), 30.0, "a task of the CMS")
        await eventually(partial(nanny_is, nanny, is_open=True), 30.0, "Nanny acts")
        await nanny.call("CreateService", pb.CreateServiceRequest(service_id="web"))

        code, _, said = await hq("backup", *where, "--all", file, HQ_PREFIX=prefixes["hq"])
        assert (code, f"nothing of Wall-E below {prefixes['walle']}" in said) == (0, True), said
        code, _, said = await hq("backup", "verify", file)
        assert [line.split(",")[0] for line in said.splitlines()] == [
            f"complete backup of {title}" for title in ("HQ", "the CMS", "Nanny")
        ]
        await eventually(partial(cms.takes, "later"), 30.0, "another task of the CMS")
        await nanny.call("CreateService", pb.CreateServiceRequest(service_id="later"))
        epoch = await epoch_of(replica)
        assert "restored" not in await cms.why_closed()

        code, _, said = await hq("restore", *where, "--of", "cms", "--replace", file)
        assert (code, "it grants nothing until" in said) == (0, True), said
        await eventually(partial(cms.answers, "later", 404), 30.0, "the CMS lacks what came later")
        assert await cms.answers("saved", 200)
        assert "restored" in await cms.why_closed()
        await eventually(partial(nanny_is, nanny, is_open=True), 30.0, "Nanny is open as before")
        assert len((await nanny.call("ListServices", pb.ListServicesRequest())).service) == 2

        code, _, said = await hq("restore", *where, "--of", "nanny", "--replace", file)
        assert (code, "`nanny control open`" in said) == (0, True), said
        await eventually(partial(nanny_is, nanny, is_open=False), 30.0, "Nanny waits to be opened")
        await eventually(partial(nanny_has, nanny, ["web"]), 30.0, "Nanny lacks what came later")
        assert set(await listed(replica)) == {"web-1"}
        assert await epoch_of(replica) == epoch
