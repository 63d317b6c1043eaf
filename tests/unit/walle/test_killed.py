"""Wall-E is killed before and after every transaction and every call, once and twice: nothing is done twice or lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.support.walle.book import DictBook
from tests.support.walle.fleet import at_once
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from walle.approval.protocol import CmsAnswer, CmsPort, Request, UnknownTask
from walle.executors.port import Executor, PollResult, WorkProgress
from walle.fuses.fuse import Moment
from walle.healing.incidents import Incidents
from walle.process.healer import Healer
from walle.process.ports import MayBegin
from walle.work.book import FUSE, HOST, PROJECT, WalleTransaction, World
from walle.work.repairs import settle
from walle.work.results import take_seen
from wallepb.v1.host_pb2 import (
    OPERATION_KIND_REBOOT,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_UNSPECIFIED,
    STAGE_ENDING,
    STAGE_RUNNING,
    STAGE_VERIFYING,
    VERDICT_OK,
    Host,
    Operation,
    OperationKind,
)
from wallepb.v1.project_pb2 import Cms as CmsSetting

T = TypeVar("T")
URLS = ("http://a", "http://b")


class Killed(BaseException):
    """Ends the process: no code of Wall-E catches it."""


class World1:
    """One machine, two CMSs, a store, and a process that dies at chosen moments."""

    def __init__(self, deaths: tuple[int, ...]) -> None:
        self.book, self.deaths, self.moment = DictBook(), set(deaths), 0
        self.boots, self.tasks, self.confirmed = 0, {url: set[str]() for url in URLS}, 0
        self.now_ms = 1_000_000
        self.given_away: list[str] = []
        self.book.put(HOST, "h1", a_host("h1", "UNREACHABLE"))
        self.book.put(PROJECT, "web", a_project(*(CmsSetting(url=url, version="v1.4") for url in URLS)))
        self.ids = 0

    def step(self, name: str) -> None:
        """A moment at which the process may die."""
        self.moment += 1
        if self.moment in self.deaths:
            raise Killed(name)

    def now(self) -> Moment:
        return at(self.now_ms)

    def new_id(self) -> str:
        self.ids += 1
        return f"op{self.ids}"

    def process(self) -> Healer:
        world = World("i", {}, self.new_id, Incidents(), settle_ms=0)
        return Healer(Records(self), Parts(self), world, self.now, random.Random(1))

    def live(self) -> int:
        """Reconcile until nothing is left to do, starting again after each death; returns how many moments there were
        to die in.
        """
        healer = self.process()
        for _ in range(80):
            self.now_ms += 10_000
            try:
                at_once(healer.reconcile("h1"))
            except Killed:
                healer = self.process()
            self.look()
        return self.moment

    def look(self) -> None:
        """Let monitoring see the host, and note whether it was in work without leave."""
        host = self.host()
        if host.check[0].failing and self.boots:
            host.check[0].failing = False
            self.book.put(HOST, "h1", host)

    def host(self) -> Host:
        found = self.book.get(HOST, "h1")
        assert found is not None
        return found


class Records:
    """Records of the store, which survives the process."""

    def __init__(self, world: World1) -> None:
        self._world = world

    def host(self, name: str) -> Host | None:
        return self._world.book.get(HOST, name)

    def why_nothing_begins(self) -> str:
        return ""

    async def transact(self, decide: Callable[[WalleTransaction], T]) -> T:
        self._world.step("before a transaction")
        result = decide(self._world.book)
        self._world.step("after a transaction")
        return result

    async def decide(self, decide: Callable[[WalleTransaction], object]) -> None:
        await self.transact(decide)

    async def intend(self, decide: Callable[[WalleTransaction], bool]) -> MayBegin | None:
        self._world.step("before an intent")
        result = decide(self._world.book)
        self._world.step("after an intent")
        return Now() if result else None


class Now:
    def check(self) -> None:
        """Allows every action."""


class Parts:
    def __init__(self, world: World1) -> None:
        self._world = world

    def cms(self, project: str, url: str) -> CmsPort:
        return OneCms(self._world, url)

    def executor(self, kind: OperationKind) -> Executor:
        return Machine(self._world)


class OneCms:
    """A CMS that says a provisional ok to everything."""

    version = "v1.4"

    def __init__(self, world: World1, url: str) -> None:
        self.name, self._world, self._tasks = url, world, world.tasks[url]

    async def dry_run(self, request: Request) -> CmsAnswer:
        self._world.step("at a dry run")
        return CmsAnswer(VERDICT_OK)

    async def create(self, request: Request) -> CmsAnswer:
        self._world.step("before a task is created")
        self._tasks.add(request.id)
        self._world.step("after a task is created")
        return CmsAnswer(VERDICT_OK, provisional=True)

    async def poll(self, task_id: str) -> CmsAnswer:
        if task_id not in self._tasks:
            raise UnknownTask(task_id)
        return CmsAnswer(VERDICT_OK, provisional=True)

    async def confirm(self, task_id: str) -> CmsAnswer:
        self._world.step("before a task is confirmed")
        if task_id not in self._tasks:
            raise UnknownTask(task_id)
        self._world.confirmed += 1
        self._world.step("after a task is confirmed")
        return CmsAnswer(VERDICT_OK)

    async def delete(self, task_id: str) -> None:
        self._world.step("before a task is deleted")
        self._tasks.discard(task_id)
        self._world.step("after a task is deleted")

    async def tasks(self) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(self._tasks, ("h1",))


class Machine:
    """A machine that shows how often it was started."""

    name = "machine"

    def __init__(self, world: World1) -> None:
        self._world = world

    async def progress_marker(self, host: Host) -> str:
        return f"boot {self._world.boots}"

    async def begin(self, host: Host) -> str:
        self._world.step("before the reboot")
        assert all(self._world.tasks.values()), "rebooted without leave"
        self._world.boots += 1
        self._world.step("after the reboot")
        return "sent"

    async def poll(self, host: Host, age_s: float) -> PollResult:
        if f"boot {self._world.boots}" != host.operation.intent.before:
            return PollResult(WorkProgress.DONE)
        return PollResult(WorkProgress.NOT_BEGUN if age_s > 60 else WorkProgress.RUNNING)


def check(deaths: tuple[int, ...]) -> int:
    world = World1(deaths)
    moments = world.live()
    host = world.host()
    assert world.boots == 1, f"{world.boots} reboots after deaths at {deaths}"
    assert not host.HasField("operation"), f"stuck after deaths at {deaths}: {host.operation}"
    assert host.history[0].outcome == OUTCOME_DONE
    assert not any(world.tasks.values()), f"tasks are left after deaths at {deaths}: {world.tasks}"
    fuse = world.book.get(FUSE, "web")
    assert fuse is not None
    assert len(fuse.mark) == 1, "one firing, counted once"
    return moments


def moments_of_a_quiet_life() -> int:
    """How many moments to die in there are without a death, until the operation is over."""
    return check(())


@pytest.mark.long
def test_a_host_is_rebooted_once_at_whatever_moment_the_process_dies() -> None:
    for death in range(1, moments_of_a_quiet_life() + 1):
        check((death,))


@pytest.mark.long
@pytest.mark.parametrize("apart", range(1, 12))
def test_a_host_is_rebooted_once_even_if_the_process_dies_twice(apart: int) -> None:
    for death in range(1, 60):
        check((death, death + apart))


@pytest.mark.parametrize(("check", "stage"), [("UNREACHABLE", STAGE_VERIFYING), ("", STAGE_ENDING)])
def test_work_of_unknown_outcome_is_judged_by_its_check_or_counts_as_not_done(check: str, stage: int) -> None:
    book, host = DictBook(), a_host("h1", *([check] if check else []))
    host.operation.CopyFrom(Operation(id="op", kind=OPERATION_KIND_REBOOT, check=check, stage=STAGE_RUNNING))
    host.operation.since_ms = NOW_MS
    book.put(HOST, "h1", host)
    book.put(PROJECT, "web", a_project())
    take_seen(book, "h1", "op", PollResult(WorkProgress.UNKNOWN, "the process that ran it has ended"))
    settle(book, "h1", World("i", {}, lambda: "next", Incidents()), at(NOW_MS))
    after = book.get(HOST, "h1")
    assert after is not None
    assert after.operation.stage == stage
    assert after.operation.outcome == (OUTCOME_FAILED if stage == STAGE_ENDING else OUTCOME_UNSPECIFIED)
