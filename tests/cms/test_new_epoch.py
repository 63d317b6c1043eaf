"""The CMS's own store is lost under running processes, and with it all that was granted."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hqclient import Client
from store.embedded import EmbeddedEtcd
from store.etcd import EtcdConfig, EtcdStore
from store.port import Write
from tests.cms.cloud import Crew, Reply, http, task
from tests.rig.controller_faults import Process
from tests.support.etcd import OwnEtcd
from tests.support.faulty_proxy import Proxy

TERM_S = 1.0
WITHIN_S = 60.0


@dataclass
class Stand:
    """An etcd that is lost, two processes of the CMS over it, and an HQ that stands all the while."""

    etcd: EmbeddedEtcd
    own_etcd: OwnEtcd
    to_etcd: Proxy
    processes: list[Process]
    saved: Path

    async def call(self, method: str, path: str, body: Any = None, *, at: int = 0) -> Reply:
        return await self._send(method, f"/v1.4/tasks{path}", body, at)

    async def order(self, call: str, body: Any) -> None:
        """Repeat it until it is accepted: on a busy machine a short term is lost, and nobody accepts orders then."""

        async def is_taken() -> bool:
            return (await self._send("POST", f"/cms.v1.{call}", body, 0)).status == 200

        await until(is_taken)

    async def delete(self, task_id: str) -> None:
        """Repeat it until it is accepted; after one without an answer, which may have taken effect, 404 will do."""
        fine = {204}

        async def is_taken() -> bool:
            status = (await self.call("DELETE", f"/{task_id}")).status
            if status not in {204, 404}:
                fine.add(404)
            return status in fine

        await until(is_taken)

    async def answered(self, method: str, path: str, body: Any = None) -> Any:
        """What it says, once it can: a store that was lost takes a while."""
        reply = Reply(0, None, {})

        async def answers() -> bool:
            nonlocal reply
            reply = await self.call(method, path, body)
            return reply.status == 200

        await until(answers)
        return reply.body

    async def becomes(self, task_id: str, status: str, *, at: int = 0) -> None:
        async def holds() -> bool:
            reply = await self.call("GET", f"/{task_id}", at=at)
            return reply.status == 200 and reply.body["status"] == status

        await until(holds)

    # --- how a store is lost ------------------------------------------------------------------------------------------

    async def save(self) -> None:
        await self.etcd.stop()
        shutil.copytree(self.etcd.data_dir / "etcd", self.saved)
        await self._start_again()

    async def wiped(self) -> None:
        """Somebody deletes every key of the CMS."""
        store = EtcdStore(EtcdConfig((self.etcd.endpoint,)))
        try:
            page = await store.page(b"/cms/v1/", b"/cms/v10", revision=0, limit=100)
            await store.commit((), tuple(Write((), deletes=(record.key,)) for record in page.records), 5.0)
        finally:
            await store.close()

    async def replaced(self) -> None:
        """Another etcd, an empty one, is at its address."""
        await self.etcd.kill()
        self.etcd = await self.own_etcd()
        self.to_etcd.aim(self.etcd.endpoint)

    async def restored(self) -> None:
        """It has the data of before the grant."""
        await self.etcd.kill()
        shutil.rmtree(self.etcd.data_dir / "etcd")
        shutil.copytree(self.saved, self.etcd.data_dir / "etcd")
        await self._start_again()

    async def _start_again(self) -> None:
        await self.etcd.start()
        self.to_etcd.aim(self.etcd.endpoint)

    async def _send(self, method: str, path: str, body: Any, at: int) -> Reply:
        data = None if body is None else json.dumps(body).encode()
        try:
            return await asyncio.to_thread(http, method, f"http://{self.processes[at].http}{path}", data)
        except OSError:
            return Reply(0, None, {})


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await holds():
            await asyncio.sleep(0.1)


@asynccontextmanager
async def stand(own_etcd: OwnEtcd, folder: Path) -> AsyncIterator[Stand]:
    """Ten `web` on ten hosts; by default one of them may be away."""
    where = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
    async with AsyncExitStack() as stack:
        etcd = await own_etcd()
        to_etcd = await stack.enter_async_context(Proxy(etcd.endpoint))
        hq = Process(("hq.main", "dev", "--store", "memory", "--report-interval", "1s", *where), folder / "hq.log")
        processes = [hq]
        await hq.start()
        stack.push_async_callback(hq.kill)
        for name in ("cms-1", "cms-2"):
            words = ("cms.main", "serve", "--etcd", to_etcd.endpoint, "--location", f"default={hq.grpc}")
            more = ("--term", f"{TERM_S:g}s", "--task-issuer", "wall-e")
            process = Process((*words, *more, *where), folder / f"{name}.log")
            stack.push_async_callback(process.kill)
            await process.start()
            processes.append(process)
        crew = Crew(await stack.enter_async_context(Client([hq.grpc])))
        for number in range(10):
            await crew.add(f"web-{number}", "web", f"h{number}")
        reporting = asyncio.create_task(crew.run())
        stack.callback(reporting.cancel)
        yield Stand(etcd, own_etcd, to_etcd, processes[1:], folder / "saved")


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
@pytest.mark.parametrize(("lose", "by_operator"), [("wiped", False), ("replaced", True), ("restored", False)])
async def test_nothing_is_granted_until_issuers_have_declared_or_an_operator_opens(
    own_etcd: OwnEtcd, tmp_path: Path, lose: str, by_operator: bool
) -> None:
    async with stand(own_etcd, tmp_path) as made:
        await made.answered("POST", "", task("first", "h9"))
        await made.becomes("first", "ok")
        await made.delete("first")
        await made.save()
        await made.answered("POST", "", task("old", "h0"))
        for at in (0, 1):  # a process that saw nothing since the snapshot could not tell (docs/operations.md)
            await made.becomes("old", "ok", at=at)

        await getattr(made, lose)()
        said = await made.answered("POST", "", task("new", "h1"))
        assert said["status"] == "in-process", said
        assert "restored or replaced" in said["message"]
        assert "not declared yet: wall-e" in said["message"]
        for _ in range(20):  # several terms, at both processes
            for at in (0, 1):
                reply = await made.call("GET", "/new", at=at)
                assert reply.status != 200 or reply.body["status"] == "in-process"
            await asyncio.sleep(TERM_S / 5)

        async def is_lost() -> bool:  # another status: it cannot tell at this moment
            return (await made.call("GET", "/old")).status == 404

        await until(is_lost)
        if by_operator:
            await made.order("CmsAdminService/Open", {"reason": "the work on h0 is over", "by": "ann"})
        else:
            assert (await made.answered("POST", "", task("old", "h0", already_running=True)))["status"] == "ok"
            await made.order("CmsService/EndDeclaration", {"issuer": "wall-e"})
            await asyncio.sleep(2 * TERM_S)

            async def waits_for_old() -> bool:
                return "old" in (await made.answered("GET", "/new"))["message"]

            await until(waits_for_old)
            await made.delete("old")
        await made.becomes("new", "ok")
