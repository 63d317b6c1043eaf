"""Real processes are killed before and after every effect on the world: nothing is done twice, all is given back.

A machine of its own for each place to die at, all at the same time, so each death also meets the others' work halfway.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import dns.message
import httpx
import pytest
import yaml
from google.protobuf import json_format
from google.protobuf.message import Message

from store.embedded import EmbeddedEtcd
from tests.rig.controller_faults import Process
from tests.support.walle.anywhere import controller_entry
from tests.support.walle.counterparts import KEY, NAMED, NO_NAMED, ZONE, name_server, power_of, redfish_emulator
from tests.support.walle.door import Door, dns_door, http_door
from tests.support.walle.fake_cms import FakeCms, fake_cms
from tests.support.walle.running import call_json
from walle.executors.command import default_runs
from walle.fuses.limits import parse_limit
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import OPERATION_KIND_DNS_FIX, OPERATION_KIND_REBOOT, OUTCOME_DONE, Finished, Host
from wallepb.v1.project_pb2 import Cms, Project

pytestmark = [pytest.mark.long, pytest.mark.timeout(500)]

EFFECTS = ("dry run", "create", "confirm", "reset", "delete")
PLACES = [(effect, when) for effect in EFFECTS for when in ("before", "after")]
PLACES += [("reset", "fail"), ("reset", "stall"), ("create", "fail"), ("confirm", "fail"), ("delete", "fail")]
MACHINES = {f"m{number}": place for number, place in enumerate(PLACES)}
_IN_OPEN = 0x20  # of linux/inotify.h
MANY = parse_limit(["1d:100"])


class Ward:
    """One process of Wall-E at a time; a dead one is followed by another."""

    def __init__(self, words: tuple[str, ...], log: Path) -> None:
        self._process, self.deaths = Process(words, log), 0

    def kill(self) -> None:
        """From any thread, at once."""
        self.deaths += 1
        self._process.send(signal.SIGKILL)

    async def keep(self) -> None:
        while True:
            await self._process.start()
            assert self._process.running is not None
            assert await self._process.running.wait() == -signal.SIGKILL, self._process.log.read_text()[-2_000:]

    async def end(self) -> None:
        await self._process.kill()

    async def call(self, request: Message) -> dict[str, Any]:
        """Again until a process answers: orders carry no more than they say, so twice is once."""
        while True:
            try:
                return await call_json(self._process.http, request)
            except (httpx.HTTPError, AssertionError) as error:
                if isinstance(error, AssertionError) and "already exists" in str(error):
                    return {}
            await asyncio.sleep(0.2)

    async def host(self, name: str) -> Host:
        answer = await self.call(pb.GetHostRequest(host=name))
        host = Host()
        json_format.ParseDict(answer["host"], host)
        return host

    async def report(self, name: str, check: str, *, failing: bool, boot_id: str = "") -> None:
        one = pb.CheckReport(name=check, failing=failing, source="test")
        await self.call(pb.ReportChecksRequest(hosts=[pb.HostChecks(host=name, check=[one], boot_id=boot_id)]))


@asynccontextmanager
async def ward(directory: Path, configure: Callable[[Callable[[], None]], dict[str, object]]) -> AsyncIterator[Ward]:
    """Wall-E over an etcd of its own; `configure` gets what kills it, and gives its file."""
    etcd = EmbeddedEtcd(directory / "etcd")
    await etcd.start()
    file = directory / "walle.yaml"
    words = ("walle.main", "serve", "--etcd", etcd.endpoint, "--config", str(file), "--term", "1s", "--settle", "0s")
    one = Ward((*words, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"), directory / "walle.log")
    file.write_text(yaml.safe_dump(configure(one.kill)))
    try:
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(one.keep())
            yield one
            keeping.cancel()
    finally:
        await one.end()
        await etcd.stop()


async def until(holds: Callable[[], Awaitable[bool]], what: Callable[[], str], timeout_s: float = 360.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not await holds():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what()}"
        await asyncio.sleep(0.5)


class Machines:
    """One for each place to die at, behind a door; a CMS behind another, that wants its oks confirmed."""

    def __init__(self, walle: Ward, emulator: str, cms: FakeCms, at_cms: Door, at_bmc: Door) -> None:
        self.walle, self.at_cms, self.at_bmc, self.cms = walle, at_cms, at_bmc, cms
        self._emulator = emulator
        self.over: set[str] = set()
        self.without_leave: list[str] = []
        at_bmc.look = self._look

    def _look(self, _: str, host: str) -> None:
        held = [task for task in self.cms.tasks.values() if host in task["hosts"]]
        if not any(task["status"] == "ok" and not task.get("details", {}).get("provisional") for task in held):
            self.without_leave.append(host)

    async def fall_ill(self) -> None:
        project = Project(id="web", cms=[Cms(url=self.at_cms.url, version="v1.4")], limits={"UNREACHABLE": MANY})
        await self.walle.call(pb.CreateProjectRequest(project=project))
        await asyncio.gather(*map(self._fall_ill, MACHINES))

    async def _fall_ill(self, name: str) -> None:
        await self.walle.call(pb.AddHostRequest(host=name, project="web", ignore_cms=True))
        await until(lambda: _in_use(self.walle, name), lambda: f"{name} is in use")
        await self.walle.report(name, "UNREACHABLE", failing=True, boot_id="boot 0")

    async def are_well(self) -> bool:
        for name in set(MACHINES) - self.over:
            await self._look_after(name)
        return self.over == set(MACHINES)

    async def _look_after(self, name: str) -> None:
        """Its agent reports once it is on again."""
        if ("reset", name) in self.at_bmc.passed and await power_of(self._emulator, name) == "On":
            await self.walle.report(name, "UNREACHABLE", failing=False, boot_id="boot 1")
        if await self.repair(name) is not None:
            self.over.add(name)

    async def repair(self, name: str) -> Finished | None:
        host = await self.walle.host(name)
        repairs = [one for one in host.history if one.kind == OPERATION_KIND_REBOOT]
        return None if host.HasField("operation") or not repairs else repairs[0]


@asynccontextmanager
async def machines(directory: Path) -> AsyncIterator[Machines]:
    async with AsyncExitStack() as stack:
        emulator = await stack.enter_async_context(redfish_emulator(directory, *MACHINES))
        cms, at_cms, at_bmc = stack.enter_context(fake_cms(provisional=True)), Door(), Door()
        for name, (effect, when) in MACHINES.items():
            (at_bmc if effect == "reset" else at_cms).wanted[effect, name] = when
        stack.enter_context(http_door(cms.url, at_cms))
        stack.enter_context(http_door(emulator, at_bmc))

        def configure(kill: Callable[[], None]) -> dict[str, object]:
            at_cms.kill = at_bmc.kill = kill
            # By then the agents must have reported: those of this test do so once a round, which takes seconds where
            # processes die and the machine is busy. A reset whose sender died is repeated after it.
            bmc = {"type": "redfish", "url": at_bmc.url, "system": "{host}", "timeout_s": 2, "boot_shows_s": 30}
            limits = {"max_rebooted_hosts": ["1d:100"]}
            listed = {"redfish": [controller_entry(at_bmc.url)], "cms": [{"url": at_cms.url}]}
            return {"executors": {"bmc": bmc}, "operations": {"reboot": "bmc"}, "automation": limits, **listed}

        walle = await stack.enter_async_context(ward(directory, configure))
        yield Machines(walle, emulator, cms, at_cms, at_bmc)


async def test_a_host_is_rebooted_once_with_leave_wherever_the_process_dies_and_all_is_given_back(
    tmp_path: Path,
) -> None:
    async with machines(tmp_path) as scene:
        await scene.fall_ill()
        await until(scene.are_well, lambda: str({name: MACHINES[name] for name in set(MACHINES) - scene.over}))
        met = sorted((name, effect) for effect, name in scene.at_cms.met + scene.at_bmc.met)
        assert met == sorted((name, effect) for name, (effect, _) in MACHINES.items()), "every place was died at"
        assert scene.walle.deaths == sum(when in ("before", "after") for _, when in PLACES)
        assert sorted(host for _, host in scene.at_bmc.passed) == sorted(MACHINES), "one reboot each, none twice"
        assert scene.without_leave == []
        assert scene.cms.tasks == {}, "all was given back"
        for name, place in MACHINES.items():
            repair = await scene.repair(name)
            assert repair is not None
            assert repair.outcome == OUTCOME_DONE, (place, repair)


@contextmanager
def opening(file: Path) -> Iterator[Callable[[], Awaitable[bool]]]:
    """Tells whether some process has opened the file since."""
    libc = ctypes.CDLL(None)
    told = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(told, os.fsencode(file), _IN_OPEN) >= 0

    async def is_opened() -> bool:
        with suppress(BlockingIOError):
            return bool(os.read(told, 4096))
        return False

    try:
        yield is_opened
    finally:
        os.close(told)


async def test_a_program_begins_once_and_goes_on_though_the_process_that_began_it_dies(tmp_path: Path) -> None:
    log, go = tmp_path / "begun", tmp_path / "go"
    log.touch()
    script = f'echo "$1" >> {log}; until [ -e {go} ]; do sleep 0.1; done; echo done'

    def configure(kill: Callable[[], None]) -> dict[str, object]:
        tool = {"type": "command", "argv": ["sh", "-c", script, "tool", "{host}"], "repeatable": True}
        return {"executors": {"tool": tool}, "operations": {"reboot": "tool"}}

    async with ward(tmp_path, configure) as walle:
        await walle.call(pb.CreateProjectRequest(project=Project(id="web")))
        await walle.call(pb.AddHostRequest(host="h1", project="web", ignore_cms=True))
        await until(lambda: _in_use(walle, "h1"), lambda: "h1 is in use")
        await walle.report("h1", "UNREACHABLE", failing=True)

        async def has_begun() -> bool:
            return bool(log.read_text())

        async def is_repaired() -> bool:
            host = await walle.host("h1")
            return not host.HasField("operation") and host.history[0].kind == OPERATION_KIND_REBOOT

        await until(has_begun, lambda: "the program has begun")
        file = default_runs() / (await walle.host("h1")).operation.id
        for _ in range(2):
            walle.kill()
            with opening(file) as is_opened:
                for _ in range(2):  # its second look shows that the first one is over
                    await until(is_opened, lambda: "the next process has taken over, and looked at the program")
        go.touch()
        await walle.report("h1", "UNREACHABLE", failing=False)
        await until(is_repaired, lambda: "h1 is repaired")
        (repair, *_) = (await walle.host("h1")).history
        assert log.read_text() == "h1\n", "begun once"
        assert (repair.outcome, repair.output) == (OUTCOME_DONE, "exit code 0\ndone\n")


async def _in_use(walle: Ward, name: str) -> bool:
    return not (await walle.host(name)).HasField("operation")


@pytest.mark.skipif(NAMED is None, reason=NO_NAMED)
async def test_dns_is_updated_once_if_the_process_dies_before_or_after_the_update(tmp_path: Path) -> None:
    places = {f"m1.{ZONE}": "before", f"m2.{ZONE}": "after"}
    async with AsyncExitStack() as stack:
        server, door = await stack.enter_async_context(name_server(tmp_path)), Door()
        door.wanted = {("update", name): when for name, when in places.items()}

        def host_of(message: bytes) -> str:
            return str(dns.message.from_wire(message, ignore_trailing=True, keyring=False).authority[0].name).rstrip(
                "."
            )

        port = stack.enter_context(dns_door(server.port, host_of, door))
        (tmp_path / "key").write_text(KEY)

        def configure(kill: Callable[[], None]) -> dict[str, object]:
            door.kill = kill
            zone = {"type": "dns", "server": "127.0.0.1", "port": port, "zone": ZONE}
            zone |= {"key_name": "walle", "key_file": str(tmp_path / "key")}
            return {"executors": {"zone": zone}, "operations": {"dns-fix": "zone"}}

        walle = await stack.enter_async_context(ward(tmp_path, configure))
        await walle.call(pb.CreateProjectRequest(project=Project(id="web")))
        for number, name in enumerate(places):
            added = pb.AddHostRequest(host=name, project="web", ignore_cms=True, address=[f"10.0.0.{number}"])
            await walle.call(added)
            await until(lambda name=name: _in_use(walle, name), lambda name=name: f"{name} is in use")  # type: ignore[misc]
            await walle.report(name, "dns", failing=True)

        async def all_are_over() -> bool:
            for name in places:
                if ("update", name) in door.passed:
                    await walle.report(name, "dns", failing=False)
            hosts = [await walle.host(name) for name in places]
            fixed = [host for host in hosts if any(one.kind == OPERATION_KIND_DNS_FIX for one in host.history)]
            return len(fixed) == len(places) and not any(host.HasField("operation") for host in hosts)

        await until(all_are_over, lambda: str(door.passed))
        assert walle.deaths == 2
        assert sorted(door.passed) == sorted(("update", name) for name in places), "one update each, none twice"
