"""Planned work on ten thousand hosts: no transaction reads or writes more than etcd takes, no record is too large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeVar

import pytest
from google.protobuf.message import Message

from control.records import MAX_RECORD_BYTES, Kind
from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from walle.healing.incidents import Incidents
from walle.work.book import HOST, PROJECT, WalleTransaction, World
from walle.work.orders import take_checks
from walle.work.scenario_records import HOSTS_IN_RECORD, Scenarios, read_scenario
from walle.work.scenarios import MAX_IN_WAVES, add_scenario, end_scenario, forget_scenarios, steer_scenario
from walle.work.waves import RETURN_MS, HqView, wave_decisions
from wallepb.v1.host_pb2 import OUTCOME_DONE, OUTCOME_FAILED, STAGE_VERIFYING, Host
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_REBOOT,
    SCENARIO_STAGE_CANCELLED,
    SCENARIO_STAGE_PAUSED,
    SCENARIO_STAGE_WORKING,
    Scenario,
    ScenarioHost,
    ScenarioHosts,
)
from wallepb.v1.service_pb2 import (
    STEERING_CONTINUE,
    AddScenarioRequest,
    EndScenarioRequest,
    HostChecks,
    Order,
    SteerScenarioRequest,
)

M = TypeVar("M", bound=Message)
MOST_RECORDS = 120  # of the 128 that etcd takes; the kit adds some of its own
WAVE = 50
NAMES = [f"host-{number:05}.ams.example.net" for number in range(MAX_IN_WAVES)]
STEP_MS = 60_000


class BoundedBook(DictBook):
    """A book of many transactions, each of which is as large as etcd takes."""

    def __init__(self) -> None:
        super().__init__()
        self._touched: set[tuple[str, str]] = set()

    def begin(self) -> BoundedBook:
        self._touched = set()
        return self

    def get(self, kind: Kind[M], record_id: str, /) -> M | None:
        self._touched.add((kind.name, record_id))
        assert len(self._touched) <= MOST_RECORDS, "too many operations in txn request"
        return super().get(kind, record_id)

    def put(self, kind: Kind[M], record_id: str, message: M, /) -> None:
        assert (kind.name, record_id) in self._touched, "it was not read"
        assert message.ByteSize() <= MAX_RECORD_BYTES
        super().put(kind, record_id, message)


class Work:
    """A mass reboot of all hosts, in waves."""

    def __init__(self, names: Sequence[str] = NAMES, wave: int = WAVE, domain: str = "", rack: str = "") -> None:
        ids = iter(f"op{number}" for number in range(1_000_000))
        self.book, self.now_ms = BoundedBook(), NOW_MS
        self.world = World("i", {}, lambda: next(ids), Incidents())
        self.hosts = {name: a_host(name, rack=rack or f"r{number // 40}") for number, name in enumerate(names)}
        DictBook.put(self.book, PROJECT, "web", a_project())
        for name, host in self.hosts.items():
            DictBook.put(self.book, HOST, name, host)
        order = AddScenarioRequest(scenario="kernel", kind=SCENARIO_KIND_REBOOT, wave_size=str(wave), by_domain=domain)
        order.max_failures = "20%"
        add_scenario(self.book.begin(), Order(by="alice", add_scenario=order), names, self.world, at(), self.hosts.get)

    @property
    def scenario(self) -> Scenario:
        return read_scenario(self.plain(), "kernel") or Scenario()

    def plain(self) -> WalleTransaction:
        book = DictBook()
        book.records = self.book.records
        return book

    def host(self, name: str) -> Host:
        return DictBook.get(self.book, HOST, name) or Host()

    def in_work(self) -> list[ScenarioHost]:
        return [one for one in self.scenario.host if one.operation_id and not one.outcome]

    def held(self) -> list[str]:
        return [one.name for one in self.scenario.host if self.host(one.name).scenario]

    def look(self, hq: HqView | None = None) -> None:
        self.now_ms += STEP_MS
        scenario = partial(read_scenario, self.plain(), "kernel")
        for decision in wave_decisions(scenario, self.held, self.world, at(self.now_ms), hq):
            decision(self.book.begin())

    def finish(self, names: Iterator[str]) -> None:
        """End the reboots of these hosts, and let them report again."""
        for name in names:
            host = self.host(name)
            host.operation.stage, host.operation.since_ms = STAGE_VERIFYING, self.now_ms
            host.operation.intent.executor = "bmc"
            DictBook.put(self.book, HOST, name, host)
            take_checks(self.plain(), HostChecks(host=name, boot_id="new"), at(self.now_ms))

    def fail(self, name: str, check: str = "UNREACHABLE") -> None:
        """Let a check of the host fail after its reboot."""
        host = self.host(name)
        host.check.add(name=check, failing=True, since_ms=self.now_ms)
        DictBook.put(self.book, HOST, name, host)


@pytest.mark.long
def test_ten_thousand_hosts_are_rebooted_in_waves_with_a_stop_and_given_back() -> None:
    """In one record, 300 hosts would be refused by etcd, and after some hundred finished ones nothing would go on."""
    work = Work()
    parts = [key for key in work.book.records if key[0] == "scenariohosts"]
    assert len(parts) == MAX_IN_WAVES // HOSTS_IN_RECORD
    work.look()
    assert [one.name for one in work.in_work()] == NAMES[:WAVE], "the whole wave, though in several transactions"
    work.finish(iter(NAMES[:WAVE]))
    work.fail(NAMES[7])
    for _ in range(RETURN_MS // STEP_MS + 1):
        work.look()
    assert [one.outcome for one in work.scenario.host[:WAVE]].count(OUTCOME_DONE) == WAVE - 1
    assert [one.name for one in work.in_work()] == NAMES[WAVE : 2 * WAVE], "one of fifty may fail"
    # The second wave is bad.
    work.finish(iter(NAMES[WAVE : 2 * WAVE]))
    for name in NAMES[WAVE : 2 * WAVE]:
        work.fail(name)
    for _ in range(RETURN_MS // STEP_MS + 1):
        work.look()
    assert work.scenario.stage == SCENARIO_STAGE_PAUSED
    assert "51 of 100 failed" in work.scenario.message
    assert set(work.held()) == {NAMES[7], *NAMES[WAVE : 2 * WAVE]}
    order = SteerScenarioRequest(scenario="kernel", steering=STEERING_CONTINUE, reason="they are known")
    steer_scenario(work.book.begin(), order, "alice", at(work.now_ms))
    work.look()
    assert work.scenario.stage == SCENARIO_STAGE_WORKING
    assert set(work.held()) == set(NAMES[2 * WAVE : 3 * WAVE])
    end_scenario(work.book.begin(), EndScenarioRequest(scenario="kernel"), "alice", at(work.now_ms))
    work.look()
    assert work.scenario.stage == SCENARIO_STAGE_CANCELLED
    assert not work.held()
    assert [one.outcome for one in work.scenario.host].count(OUTCOME_FAILED) == 51
    forget_scenarios(work.book.begin(), ["kernel"])
    assert not [key for key in work.book.records if key[0].startswith("scenario")]


def test_a_record_of_hosts_has_room_for_ready_instances_and_problems_of_all_of_them() -> None:
    names = [f"{number:03}.{'n' * 60}" for number in range(HOSTS_IN_RECORD)]
    work = Work(names, wave=HOSTS_IN_RECORD, domain="rack", rack="r" * 40)
    ready = {name: [f"{'i' * 60}-{number}" for number in range(120)] for name in names}
    work.look(HqView(ready))
    assert len(work.in_work()) == HOSTS_IN_RECORD
    work.finish(iter(names))
    for name in names:
        work.fail(name, "unreachable " * 100)
    work.look(HqView(missing=ready))
    assert all(len(one.ready_before) == 100 and one.problem for one in work.scenario.host)


class OneRecords(dict[str, Message]):
    """Records with versions, as the kit has them."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: dict[str, int] = {}

    def version(self, name: str) -> int:
        return self.versions.get(name, 0)


def test_a_scenario_in_memory_follows_its_records_of_hosts() -> None:
    heads, parts = OneRecords(), OneRecords()
    scenarios = Scenarios(heads, parts)  # type: ignore[arg-type]
    heads["small"] = Scenario(id="small", host=[ScenarioHost(name="h1")])
    heads["large"] = Scenario(id="large", host_records=2)
    for number, names in enumerate((["h1", "h2"], ["h3"])):
        parts[f"large/{number}"] = ScenarioHosts(host=[ScenarioHost(name=name) for name in names])
    assert {name: [one.name for one in scenario.host] for name, scenario in scenarios.items()} == {
        "small": ["h1"],
        "large": ["h1", "h2", "h3"],
    }
    assert scenarios["large"] is scenarios["large"], "joined once"
    parts["large/1"] = ScenarioHosts(host=[ScenarioHost(name="h3", outcome=OUTCOME_DONE)])
    parts.versions["large/1"] = 5
    assert scenarios["large"].host[2].outcome == OUTCOME_DONE
