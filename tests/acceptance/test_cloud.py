"""`make cloud`: every part starts, knows the others, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from google.protobuf.message import Message

from hqclient.client import Client
from hqpb.v1 import service_pb2 as pb
from nannypb.v1 import service_pb2 as npb
from nannypb.v1.service_stubs import NannyServiceStub
from tests.support.process_ids import has_ended
from tests.support.sample_instances import eventually
from tests.support.walle.running import call_json
from wallepb.v1.service_pb2 import GetHostRequest

ROOT = Path(__file__).resolve().parent.parent.parent
ENV = {
    **{k: v for k, v in os.environ.items() if not k.startswith("HQ_")},
    "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proto"), str(ROOT / "clients"))),
    "PYTHONUNBUFFERED": "1",
}
PARTS = ("cms", "nanny", "walle", "console", "xds", "dns", "consul")


class Running:
    """A running cloud."""

    def __init__(self, process: asyncio.subprocess.Process, data: Path, out: Path) -> None:
        self.process, self.data, self._out = process, data, out

    def output(self) -> str:
        return self._out.read_text()

    async def shows(self, pattern: str, timeout_s: float = 60.0) -> None:
        """Wait until a line of the output is like this."""
        await eventually(lambda: re.search(pattern, self.output()), timeout_s, what=f"{pattern}\n{self.output()}")

    def children(self) -> list[psutil.Process]:
        """Every process that it has started, and those that these have."""
        return psutil.Process(self.process.pid).children(recursive=True)

    async def ends(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        async with asyncio.timeout(100):
            return await self.process.wait()


@asynccontextmanager
async def running_cloud(tmp_path: Path, *flags: str) -> AsyncIterator[Running]:
    data, out = tmp_path / "cloud", tmp_path / "out"
    with out.open("wb") as to:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tools.cloud", *flags, "--data", str(data)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=to,
            stderr=to,
            env=ENV,
            cwd=ROOT,
        )
    try:
        yield Running(process, data, out)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_all_parts_start_and_nothing_is_left(tmp_path: Path) -> None:
    async with running_cloud(tmp_path) as cloud:
        await cloud.shows("Ctrl-C stops everything", 200)
        addresses = dict(re.findall(r"^  (\w+) +(?:gRPC and HTTP )?(127\S+)", cloud.output(), re.MULTILINE))
        assert {*PARTS, "gateway", "east", "north", "west"} <= addresses.keys()
        async with Client([addresses["gateway"]]) as client:

            async def all_ready() -> bool:
                where = pb.InstanceFilter(readiness=pb.READINESS_FILTER_READY)
                return sum([len(page.instances) async for page in client.find(where)]) == 312  # twelve are Nanny's

            await eventually(all_ready, 60)
        for part in ("console", "consul"):
            await asyncio.to_thread(_read, f"http://{addresses[part]}/livez")
        for path, told in (("/hosts", "40 hosts in 8 racks"), ("/services/shop/snapshots", "first version")):

            async def is_told(page: str = f"http://{addresses['console']}{path}", told: str = told) -> bool:
                return told in await asyncio.to_thread(_read, page)

            await eventually(is_told, 60, f"{path} tells {told}")
        await a_broken_host_is_healed(addresses, cloud.data / "broken")
        children = cloud.children()
        assert await cloud.ends(signal.SIGINT) == 0
        await eventually(lambda: all(map(has_ended, children)))
        assert not cloud.data.exists()


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_trouble_lasts_and_pages_tell_its_cause_the_way_back_and_who_blocks_work(tmp_path: Path) -> None:
    async with running_cloud(tmp_path, "--trouble") as cloud:
        await cloud.shows("Ctrl-C stops everything", 200)
        found = re.search(r"^  console +(127\S+)", cloud.output(), re.MULTILINE)
        assert found is not None
        pages = f"http://{found[1]}"

        async def tells(path: str, *wanted: str) -> None:
            async def is_told() -> bool:
                page = re.sub(r"<[^>]+>", "", (await asyncio.to_thread(_read, pages + path)))
                return all(one in page for one in wanted)

            await eventually(is_told, 60)

        nanny = re.search(r"^  nanny +(127\S+)", cloud.output(), re.MULTILINE)
        assert nanny is not None
        await a_crashing_canary_stopped_itself(nanny[1])
        for _ in range(2):  # again when Wall-E would have healed it long ago
            trouble = "healing of cloud is off", "shop: the roll-out failed", "NET-7"
            await tells("/", "web: 50 of 60 instances ready", *trouble)
            await tells("/services/web", "below its floor", "10 instances: heartbeat timeout", "north-n01")
            await tells("/services/shop/snapshots", "Broken", "Roll back to this…")
            await tells("/scenarios/NET-7", "bob holds 5 instances for power-off", "web is below its floor of 54")
            await asyncio.sleep(20)
        assert len(list((cloud.data / "broken").iterdir())) == 5
        assert await cloud.ends(signal.SIGINT) == 0


def _read(address: str) -> str:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(address, timeout=30) as answer:
        return str(answer.read().decode())


async def a_crashing_canary_stopped_itself(nanny: str) -> None:
    """It crashed, and so did one in its place; the ten others were not touched."""
    async with grpc.aio.insecure_channel(nanny) as channel:
        stub: Any = NannyServiceStub(channel)

        async def failed() -> npb.Rollout | None:
            found = (await stub.GetRollout(npb.GetRolloutRequest(service_id="shop"))).rollout
            return found if found.order.outcome == npb.ORDER_OUTCOME_FAILED else None

        rollout = await eventually(failed, 90, "the roll-out stopped itself")
        assert "restarted, or did not stay ready (2 failed, 1 allowed)" in rollout.order.message
        assert [batch.instances for batch in rollout.batch] == [1, 1]
        assert len({one.id for one in rollout.judged}) == len(rollout.judged) == 2
        assert all("cannot open /etc/search/index" in one.output for one in rollout.judged)


async def a_broken_host_is_healed(addresses: dict[str, str], broken: Path) -> None:
    """All agents of a host fall silent, and Wall-E reboots it with approval of the CMS, as `make cloud` tells
    newcomers.
    """

    async def ask(request: Message) -> dict[str, Any]:
        return await call_json(addresses["walle"], request)

    (broken / "east-n03").touch()

    async def is_rebooted() -> bool:
        host = (await ask(GetHostRequest(host="east-n03")))["host"]
        done = [one for one in host.get("history", []) if one["kind"] == "OPERATION_KIND_REBOOT"]
        return bool(done) and done[0]["outcome"] == "OUTCOME_DONE"

    await eventually(is_rebooted, 200)
    assert not (broken / "east-n03").exists()


class Terminal:
    """What the cloud says to type under a number, typed."""

    def __init__(self, told: str) -> None:
        planned = told.partition("planned work, in the same terminal:")[2]
        self._parts = {one[0]: one for one in re.split(r"^  (?=\d\. )", planned, flags=re.MULTILINE)}
        set_up = re.findall(r"^  export (.*)$", told, re.MULTILINE)
        pairs = dict(word.split("=") for line in set_up for word in line.split())
        self._env = {**ENV, **pairs, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def commands(self, number: int) -> list[str]:
        return re.findall(r"^       (.*)$", self._parts[str(number)], re.MULTILINE)

    async def type(self, command: str) -> tuple[int, str]:
        """The exit code, and what was printed."""
        running = await asyncio.create_subprocess_shell(
            command, env=self._env, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        told = (await running.communicate())[0].decode()
        return running.returncode or 0, told

    async def ends(self, command: str, code: int = 0) -> None:
        assert (found := await self.type(command))[0] == code, (command, found)

    async def tells(self, command: str, *wanted: str) -> None:
        """Type it until all of it is told."""
        told = ""

        async def is_told() -> bool:
            nonlocal told
            told = (await self.type(command))[1]
            return all(one in told for one in wanted)

        try:
            await eventually(is_told, 240)
        except AssertionError:
            pytest.fail(f"{command}\n{told}")


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_planned_work_heeds_repairs_freezes_brief_budgets_and_bad_kernels(tmp_path: Path) -> None:
    async with running_cloud(tmp_path) as cloud:
        await cloud.shows("Ctrl-C stops everything", 400)
        terminal = Terminal(cloud.output())
        await a_repair_goes_before_planned_work(terminal)
        await a_freeze_keeps_planned_work_and_no_repair(terminal)
        await a_switch_takes_what_brief_work_may(terminal)
        await a_planned_reboot_stops_at_a_bad_kernel(terminal)
        assert await cloud.ends(signal.SIGINT) == 0


async def a_repair_goes_before_planned_work(terminal: Terminal) -> None:
    ask, touch, history, done = terminal.commands(4)
    await terminal.tells(ask, "granted provisionally")
    await terminal.ends(touch)
    await terminal.tells(history, "taken back")
    await terminal.tells("hqctl history decisions --node north-n07", "reboot (repair)", "granted")
    await terminal.tells("walle hosts get north-n07", "reboot", "done")
    await terminal.ends(done)


async def a_freeze_keeps_planned_work_and_no_repair(terminal: Terminal) -> None:
    freeze, ask, touch, thaw, done = terminal.commands(5)
    await terminal.ends(freeze)
    await terminal.ends(ask, 8)
    await terminal.ends(touch)
    await terminal.tells("walle hosts get west-n07", "reboot", "done")
    await terminal.tells("hqctl disruptions why in-freeze", "freeze of freeze: a quiet weekend")
    await terminal.ends(thaw)
    await terminal.tells("hqctl disruptions why in-freeze", "granted")
    await terminal.ends(done)


async def a_switch_takes_what_brief_work_may(terminal: Terminal) -> None:
    ask, waits, budgets, begins, done = terminal.commands(6)
    await terminal.ends(ask)
    await terminal.tells(waits, "must keep 54 of 60")
    await terminal.ends(budgets)
    await terminal.tells(begins, "the work may begin")
    await terminal.ends(done)


async def a_planned_reboot_stops_at_a_bad_kernel(terminal: Terminal) -> None:
    touch, add, get = terminal.commands(7)
    await terminal.ends(touch)
    await terminal.ends(add)
    await terminal.tells(get, "stopped: 1 of 2 failed: east-n12")
    for host in ("east-n13", "east-n14"):
        assert "reboot" not in (await terminal.type(f"walle hosts get {host}"))[1]


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_ctrl_c_during_the_start_ends_in_order(tmp_path: Path) -> None:
    async with running_cloud(tmp_path) as cloud:
        await cloud.shows("starting three locations")
        await eventually(lambda: len(cloud.children()) > 3, what="the first processes")
        children = cloud.children()
        assert await cloud.ends(signal.SIGINT) == 0, cloud.output()
        await eventually(lambda: all(has_ended(child) for child in children), what="nothing is left")
        assert not cloud.data.exists()


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_sigkill_leaves_no_process_behind(tmp_path: Path) -> None:
    async with running_cloud(tmp_path) as cloud:
        await cloud.shows("gateway +gRPC and HTTP", 200)
        children = cloud.children()
        await cloud.ends(signal.SIGKILL)
        await eventually(lambda: all(has_ended(child) for child in children), what="nothing is left")
