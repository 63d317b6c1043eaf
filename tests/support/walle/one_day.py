"""One host and its CMSs for a day of virtual time, while something fails all the time: calls, notices and writes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.support.walle.book import DictBook
from tests.support.walle.fleet import at_once
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from walle.approval.protocol import CmsAnswer, CmsEventSink, CmsFailure, CmsPort, Request, UnknownTask, event_of
from walle.approval.tasks import tasks_for
from walle.executors.port import Executor, PollResult, WorkProgress
from walle.fuses.fuse import Automation, Moment
from walle.healing.incidents import Incidents
from walle.process.healer import Healer
from walle.process.parts import CmsEvents
from walle.process.ports import MayBegin
from walle.work.book import HOST, PROJECT, Notice, WalleTransaction, World
from wallepb.v1.host_pb2 import VERDICT_OK, Host, OperationKind
from wallepb.v1.project_pb2 import Cms as CmsSetting
from wallepb.v1.project_pb2 import Project

T = TypeVar("T")
DAY_MS = 86_400_000
URLS = ("http://a", "http://b")


@dataclass
class FailingCms:
    """Says ok to everything, but for what a test sets: an answer or an error by call."""

    name: str
    events: CmsEventSink
    calls: Counter[str]
    says: dict[str, CmsAnswer | CmsFailure] = field(default_factory=dict)
    tasks_: set[str] = field(default_factory=set)
    version: str = "v1.4"

    def _answer(self, call: str) -> CmsAnswer:
        self.calls[call] += 1
        said = self.says.get(call, self.says.get("all", CmsAnswer(VERDICT_OK)))
        failure = str(said) if isinstance(said, CmsFailure) and not isinstance(said, UnknownTask) else ""
        self.events.send(event_of(call, "web", self.name, self.version, failure=failure), "web")
        if isinstance(said, CmsFailure):
            raise said
        return said

    async def dry_run(self, request: Request) -> CmsAnswer:
        return self._answer("dry_run")

    async def create(self, request: Request) -> CmsAnswer:
        answer = self._answer("create")
        self.tasks_.add(request.id)
        return answer

    async def poll(self, task_id: str) -> CmsAnswer:
        return self._answer("poll")

    async def confirm(self, task_id: str) -> CmsAnswer:
        return self._answer("confirm")

    async def delete(self, task_id: str) -> None:
        self._answer("delete")
        self.tasks_.discard(task_id)

    async def tasks(self) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(self.tasks_, ("h1",))


@dataclass
class FailingMachine:
    """Does what it is told, which does not help. A test sets what fails, by call."""

    calls: Counter[str]
    fails: dict[str, Exception] = field(default_factory=dict)
    seen: WorkProgress = WorkProgress.DONE
    name: str = "bmc"

    def _call(self, call: str) -> None:
        self.calls[call] += 1
        if call in self.fails:
            raise self.fails[call]

    async def progress_marker(self, host: Host) -> str:
        self._call("before")
        return "boot 1"

    async def begin(self, host: Host) -> str:
        self._call("begin")
        return "begun"

    async def poll(self, host: Host, age_s: float) -> PollResult:
        self._call("look")
        return PollResult(self.seen, "no luck" if self.seen is WorkProgress.FAILED else "")


class OneDay:
    """`live` is the day; the check fails all the time.

    Attributes:
        calls: of CMSs and machine, by name.
        writes: transactions that changed something.
    """

    def __init__(self, check: str = "UNREACHABLE") -> None:
        self.book, self.now_ms, self.calls, self.writes = DictBook(), NOW_MS, Counter[str](), 0
        self.notices: list[Notice] = []
        self.nothing_begins = ""
        events = CmsEvents(lambda: self.now_ms / 1000, self.notices.extend)
        self.cms = {url: FailingCms(url, events, self.calls) for url in URLS}
        self.machine = FailingMachine(self.calls)
        self.executor: Callable[[OperationKind], Executor] = lambda kind: self.machine
        self._ids = 0
        self.book.put(HOST, "h1", a_host("h1", check, since_ms=NOW_MS))
        self.book.put(PROJECT, "web", a_project(*(CmsSetting(url=url, version="v1.4") for url in URLS)))
        self.restart()

    def restart(self) -> None:
        """Another process takes over: what is not stored is gone."""
        self.world = World("i", {}, self._new_id, Incidents())
        self.healers = [
            Healer(_Store(self), _Parts(self), self.world, self.now, random.Random(1), lane) for lane in Automation
        ]

    @property
    def host(self) -> Host:
        found = self.book.get(HOST, "h1")
        assert found is not None
        return found

    def order(self, host: Host) -> None:
        """Store a host whose operation a person has ordered."""
        settings = (self.book.get(PROJECT, "web") or Project()).cms
        host.operation.task.extend(tasks_for("i", host.operation.id, 0, host.operation.kind, settings))
        self.book.put(HOST, host.name, host)

    def now(self) -> Moment:
        return at(self.now_ms)

    def live(self, until: Callable[[], bool] = lambda: False, longest_ms: int = DAY_MS) -> int:
        """Until something holds, a day at most; returns how many ms it took. Each write triggers another look."""
        began_ms = self.now_ms
        while self.now_ms < began_ms + longest_ms and not until():
            writes = self.writes
            after_s = [at_once(healer.reconcile("h1")) or 10.0 for healer in self.healers]
            self.now_ms += 10 if self.writes > writes else round(1000 * min(after_s))
        return self.now_ms - began_ms

    def transact(self, decide: Callable[[WalleTransaction], T]) -> T:
        before = dict(self.book.records)
        result = decide(self.book)
        self.writes += any(before.get(key) != record for key, record in self.book.records.items())
        return result

    def _new_id(self) -> str:
        self._ids += 1
        return f"op{self._ids}"


class _Store:
    def __init__(self, day: OneDay) -> None:
        self._day = day

    def host(self, name: str) -> Host | None:
        return self._day.book.get(HOST, name)

    def why_nothing_begins(self) -> str:
        return self._day.nothing_begins

    async def transact(self, decide: Callable[[WalleTransaction], T]) -> T:
        return self._day.transact(decide)

    async def decide(self, decide: Callable[[WalleTransaction], Sequence[Notice]]) -> None:
        self._day.notices.extend(self._day.transact(decide))

    async def intend(self, decide: Callable[[WalleTransaction], bool]) -> MayBegin | None:
        return _Now() if self._day.transact(decide) else None


class _Now:
    def check(self) -> None:
        """It may."""


class _Parts:
    def __init__(self, day: OneDay) -> None:
        self._day = day

    def cms(self, project: str, url: str) -> CmsPort:
        return self._day.cms[url]

    def executor(self, kind: OperationKind) -> Executor:
        return self._day.executor(kind)
