"""Orders that only stop something take effect while the disk is full, and their lines outlive the process."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from control import ControlConfig, Controller
from control.kept_lines import KEPT
from nanny.server import NannyProcess
from nanny.world.leave import NoCms
from serving.auth.audit import AuditLine
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.errors import ServiceError
from serving.limiting.limits import Limits
from tests.cms.cloud import cloud
from tests.support.authority.callers import POLICY
from tests.support.sample_instances import eventually
from tests.support.secured import Secured
from tests.support.walle.running import ANYWHERE, LastingStore, running

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")

_WHY = {"reason": "all is red"}
_CMS, _NANNY, _WALLE = "cms.v1.CmsAdminService", "nanny.v1.NannyService", "walle.v1.WalleService"
_BY = {"by": {"comment": "all is red"}}


class Process:
    """One process of a server, and calls to it by an admin."""

    def __init__(self, controller: Controller, address: str, task: asyncio.Task[None], files: Secured) -> None:
        self.controller, self._address, self._task, self._files = controller, address, task, files

    async def call(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        headers = {"authorization": f"Bearer {self._files.issuer.token('admin')}"}
        async with httpx.AsyncClient(timeout=20, verify=False) as http:
            answer = await http.post(f"https://{self._address}/{path}", json=body, headers=headers)
        return answer.status_code, answer.json()

    async def order(self, path: str, body: dict[str, Any]) -> None:
        status, answer = await self.call(path, body)
        assert status == 200, (path, answer)

    async def acts(self) -> None:
        await eventually(lambda: self.controller.is_acting, 20.0, "this process acts")

    async def kill(self) -> None:
        """Crash: nothing is written any more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


Start = Callable[[Secured, LastingStore, str, Security], Awaitable[Process]]


@asynccontextmanager
async def cms() -> AsyncIterator[Start]:
    async with cloud() as made:
        await made.location("ams")

        async def start(files: Secured, store: LastingStore, name: str, security: Security) -> Process:
            one = await made.cms(name, store=store, security=security)
            assert one.task is not None
            return Process(one.server.controller, f"127.0.0.1:{one.port}", one.task, files)

        yield start


@asynccontextmanager
async def nanny() -> AsyncIterator[Start]:
    async def start(files: Secured, store: LastingStore, name: str, security: Security) -> Process:
        shared = ServerContext(Limits(), SystemClock(), RequestIds(name), security)
        config = ControlConfig("/nanny/v1/", name, 1.0)
        server = NannyProcess(config, store, random.Random(name), shared, ANYWHERE, {}, NoCms(), grace_s=0.1)
        task = asyncio.create_task(server.serve())
        return Process(server.controller, (await server.listening).http, task, files)

    yield start


@asynccontextmanager
async def walle() -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def start(files: Secured, store: LastingStore, name: str, security: Security) -> Process:
            one = await stack.enter_async_context(running(store, name=name, security=security))
            return Process(one.server.controller, one.address, one.task, files)

        yield start


Orders = list[tuple[str, dict[str, Any]]]
SERVERS: dict[str, tuple[Callable[[], AbstractAsyncContextManager[Start]], Orders, Orders]] = {
    "cms": (cms, [], [(f"{_CMS}/Freeze", _WHY)]),
    "nanny": (
        nanny,
        [(f"{_NANNY}/CreateService", {"serviceId": "web"})],
        [
            (f"{_NANNY}/PauseActions", {"serviceId": "web", **_BY}),
            (f"{_NANNY}/SetControl", {"order": "CONTROL_ORDER_FREEZE", **_BY}),
        ],
    ),
    "walle": (
        walle,
        [
            (f"{_WALLE}/CreateProject", {"project": {"id": "web"}}),
            (f"{_WALLE}/AddHost", {"host": "n1", "project": "web", "state": "HOST_STATE_FREE"}),
            (f"{_WALLE}/Freeze", {"frozen": True, **_WHY}),  # so that what is ordered here waits
            (f"{_WALLE}/StartOperation", {"host": "n1", "kind": "OPERATION_KIND_REBOOT"}),
        ],
        [
            (f"{_WALLE}/CancelOperation", {"host": "n1"}),
            (f"{_WALLE}/SwitchAutomation", {"project": "web", **_WHY}),
            (f"{_WALLE}/SwitchAutomation", _WHY),
            (f"{_WALLE}/Freeze", {"frozen": True, **_WHY}),
        ],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SERVERS)
async def test_the_lines_of_orders_that_only_stop_outlive_the_process_whose_disk_is_full(
    name: str, tmp_path: Path
) -> None:
    serving, before, stops = SERVERS[name]
    files, store = Secured(tmp_path), LastingStore()
    files.policy.write_text(POLICY)

    def security(audit: str) -> Security:
        return files.security(audit_log=audit)

    async with serving() as start:
        first = await start(files, store, "one", security(str(tmp_path / "one.jsonl")))
        await first.acts()
        for path, body in before:
            await first.order(path, body)
        await first.kill()
        full = await start(files, store, "two", security(str(FULL)))
        await full.acts()
        for path, body in stops:
            await full.order(path, body)
        await full.kill()
        last = await start(files, store, "three", security(str(tmp_path / "three.jsonl")))
        await last.acts()
        written = [(path, outcome) for path, _ in stops for outcome in ("begun", "OK")]
        await eventually(lambda: len(_lines(tmp_path / "three.jsonl")) > len(written), 20.0, "the lines are written")
        lines = _lines(tmp_path / "three.jsonl")[1:]  # the first says that the process began
        assert [(line["method"], line["outcome"]) for line in lines] == written
        assert {line["identity"] for line in lines} == {"admin"}
        await eventually(lambda: not last.controller.records(KEPT), 20.0, "the store keeps them no longer")
        await last.kill()


async def test_orders_to_a_nanny_are_refused_while_they_cannot_be_recorded_except_those_that_only_stop(
    tmp_path: Path,
) -> None:
    """HQ, the CMS and Wall-E have tests of their own of this."""
    files, store = Secured(tmp_path), LastingStore()
    files.policy.write_text(POLICY)
    web = {"serviceId": "web"}
    content = base64.b64encode(b"{service: web, revisions: [{id: v1}]}").decode()
    refused: Orders = [
        ("CreateService", {"serviceId": "mail"}),
        ("UpdateService", {**web, "info": {"description": "other"}, "updateMask": "description"}),
        ("CreateSnapshot", {**web, "content": content}),
        ("SetTarget", {**web, "target": "TARGET_ACTIVE"}),
        ("SetInstanceTarget", {**web, "instanceId": "web-1"}),
        ("ResumeActions", web),
        ("PromoteRollout", web),
        ("AbortRollout", web),
        ("RestartService", web),
        ("StopService", web),
        ("DeleteService", web),
        ("SetControl", {"order": "CONTROL_ORDER_UNFREEZE", **_BY}),
        ("SetControl", {"order": "CONTROL_ORDER_OPEN_EPOCH", **_BY}),
    ]
    async with nanny() as start:
        first = await start(files, store, "one", files.security())
        await first.acts()
        await first.order(f"{_NANNY}/CreateService", web)
        await first.order(f"{_NANNY}/CreateSnapshot", {**web, "content": content})
        await first.kill()
        full = await start(files, store, "two", files.security(audit_log=str(FULL)))
        await full.acts()
        before = [await full.call(f"{_NANNY}/{name}", web) for name in ("GetService", "ListSnapshots")]
        for name, body in refused:
            status, answer = await full.call(f"{_NANNY}/{name}", body)
            assert (status, answer["code"], "audit log" in answer["message"]) == (503, "unavailable", True), (
                name,
                answer,
            )
        assert [await full.call(f"{_NANNY}/{name}", web) for name in ("GetService", "ListSnapshots")] == before
        assert (await full.call(f"{_NANNY}/GetService", {"serviceId": "mail"}))[0] == 404
        for path, body in SERVERS["nanny"][2]:
            await full.order(path, body)
        assert full.controller.frozen is not None
        await full.kill()


def _lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


async def test_a_line_that_the_store_does_not_take_is_kept_in_memory_and_written_later(tmp_path: Path) -> None:
    files = Secured(tmp_path)
    files.audit.symlink_to(FULL)
    audit = files.security().audit

    async def keep(_line: str) -> None:
        raise ServiceError("the store is away")

    audit.keep = keep
    await audit.record_safely(AuditLine("ann", "", "Freeze", "", "allow", "stop", "begun", 0, "r"))
    files.audit.unlink()
    assert audit.pay()
    assert [line["method"] for line in _lines(files.audit)] == ["start", "Freeze"]
