"""Planned work whose CMSs fail: they are asked with growing pauses, and all of it ends."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import pytest

from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from tests.support.walle.one_day import OneDay
from walle.approval.protocol import CmsAnswer, CmsFailure, CmsPort
from walle.executors.port import Executor
from walle.fuses.fuse import Moment
from walle.healing.incidents import Incidents
from walle.process.hq import NoHq
from walle.process.planner import Planner
from walle.work.book import HOST, PROJECT, SCENARIO, Notice, WalleTransaction, World
from walle.work.scenarios import add_scenario, end_scenario
from wallepb.v1.host_pb2 import VERDICT_IN_PROCESS, Host, OperationKind
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_SWITCH_MAINTENANCE,
    SCENARIO_STAGE_CANCELLED,
    SCENARIO_STAGE_REFUSED,
    SCENARIO_STAGE_WORKING,
    Scenario,
)
from wallepb.v1.project_pb2 import Cms as CmsSetting
from wallepb.v1.service_pb2 import AddScenarioRequest, EndScenarioRequest, Order

T = TypeVar("T")
AWAY = CmsFailure("no answer")
URL = "http://a"


class StoredScenarios(Mapping[str, Scenario]):
    """The scenarios of a book, in the form of a controller's records."""

    def __init__(self, book: DictBook) -> None:
        self._book = book

    def __getitem__(self, name: str) -> Scenario:
        found = self._book.get(SCENARIO, name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for kind, name in list(self._book.records) if kind == SCENARIO.name)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _OneCms:
    def __init__(self, cms: CmsPort) -> None:
        self._cms = cms

    def cms(self, project: str, url: str) -> CmsPort:
        return self._cms

    def executor(self, kind: OperationKind) -> Executor:
        raise AssertionError("people do this work")


class SwitchWork:
    """One host behind a switch, in virtual time."""

    def __init__(self) -> None:
        self.day, self.book, self.now_ms, self.writes = OneDay(), DictBook(), NOW_MS, 0
        self.cms, self.notices = self.day.cms[URL], list[Notice]()
        self.world = World("i", {}, lambda: "g1", Incidents())
        self.book.put(PROJECT, "web", a_project(CmsSetting(url=URL, version="v1.4")))
        self.book.put(HOST, "h1", a_host("h1", switch="s1"))
        order = AddScenarioRequest(scenario="net-7", kind=SCENARIO_KIND_SWITCH_MAINTENANCE, switch="s1")
        add_scenario(self.book, Order(by="alice", add_scenario=order), ["h1"], self.world, at(), lambda _: None)
        self.planner = Planner(
            self,  # type: ignore[arg-type]
            StoredScenarios(self.book),
            _OneCms(self.cms),
            NoHq(),
            self.world,
            self.now,
            lambda names: "",
            lambda name: [],
            random.Random(1),
        )

    @property
    def scenario(self) -> Scenario:
        return self.book.get(SCENARIO, "net-7") or Scenario()

    def now(self) -> Moment:
        return at(self.now_ms)

    async def live(self, minutes: int) -> None:
        until_ms = self.now_ms + minutes * 60_000
        while self.now_ms < until_ms:
            after_s = await self.planner.reconcile("net-7")
            self.now_ms += round(1000 * (after_s or 60.0))

    def host(self, name: str) -> Host | None:
        return self.book.get(HOST, name)

    async def transact(self, decide: Callable[[WalleTransaction], T]) -> T:
        before = dict(self.book.records)
        result = decide(self.book)
        self.writes += before != self.book.records
        return result

    async def decide(self, decide: Callable[[WalleTransaction], Sequence[Notice]]) -> None:
        self.notices.extend(await self.transact(decide))

    @property
    def calls(self) -> dict[str, int]:
        return dict(self.day.calls)


@pytest.mark.parametrize("call", ["create", "poll"])
async def test_a_cms_that_fails_when_asked_for_planned_work_is_retried_with_pauses_and_the_work_refused(
    call: str,
) -> None:
    work = SwitchWork()
    work.cms.says = {"create": CmsAnswer(VERDICT_IN_PROCESS), call: AWAY}
    await work.live(40)
    assert 3 <= work.calls[call] <= 12, work.calls
    assert work.scenario.stage == SCENARIO_STAGE_REFUSED
    assert work.writes <= 6
    assert "no answer" in work.notices[0].text


async def test_a_cms_that_fails_while_the_work_is_done_is_asked_with_pauses() -> None:
    work = SwitchWork()
    await work.live(2)
    assert work.scenario.stage == SCENARIO_STAGE_WORKING
    before = work.calls["poll"]
    work.cms.says = {"poll": AWAY}
    await work.live(50)
    assert work.calls["poll"] - before <= 12


async def test_a_cms_that_fails_to_delete_tasks_is_retried_with_pauses_and_the_hosts_are_released() -> None:
    work = SwitchWork()
    await work.live(2)
    work.cms.says = {"delete": AWAY}
    end_scenario(work.book, EndScenarioRequest(scenario="net-7"), "alice", work.now())
    await work.live(30)
    assert work.scenario.stage == SCENARIO_STAGE_CANCELLED
    assert work.calls["delete"] <= 6
    assert not (work.host("h1") or Host()).scenario


async def test_finished_work_is_removed_when_old_or_when_its_author_has_very_much() -> None:
    work = SwitchWork()
    end_scenario(work.book, EndScenarioRequest(scenario="net-7"), "alice", work.now())
    await work.live(30)
    assert work.scenario.stage == SCENARIO_STAGE_CANCELLED
    for number in range(240):
        mine = Scenario(id=f"m{number}", by="mallory", stage=SCENARIO_STAGE_CANCELLED, since_ms=work.now_ms + number)
        work.book.put(SCENARIO, mine.id, mine)
    work.book.put(SCENARIO, "open", Scenario(id="open", by="mallory", stage=SCENARIO_STAGE_WORKING, since_ms=1))
    waits = [await work.planner.reconcile("m239") for _ in range(140 // 5 + 1)]
    assert waits == [*([0.0] * (140 // 5)), 86_400.0], "five in a transaction: they may be large"
    assert set(StoredScenarios(work.book)) == {"net-7", "open", *(f"m{number}" for number in range(140, 240))}
    work.now_ms += 91 * 86_400_000
    await work.planner.reconcile("net-7")
    assert "net-7" not in StoredScenarios(work.book)
