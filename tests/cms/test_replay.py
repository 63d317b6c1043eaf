"""The record of the CMS's ledger, decided again, gives the recorded decisions."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import fields
from xml.etree import ElementTree

import pytest

from cms import entries
from cms.journal import LedgerFollower, LedgerJournal
from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budget, Budgets
from cms.ledger.decide import TaskChange, confirm, decide
from cms.ledger.instances import Instance, InstanceKey
from cms.ledger.states import State
from cms.ledger.tasks import Need, Task
from cms.other_rules import compare
from cms.replay import OtherRules, Repetition, repeat
from cms.replay_picture import draw_comparison
from cmspb.v1 import record_pb2
from control.amounts import Amount
from tests.cms.histories import History


class RecordedHistory(History):
    """A history that is followed from some step on, by a second recorder from another."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.journal = LedgerJournal(self.book)
        self.followers: list[LedgerFollower] = []
        self.stack = ExitStack()
        self.follow_at = {0, self.rng.randint(0, self.steps)}
        self.step = 0

    def _step(self) -> None:
        if self.step in self.follow_at:
            self.followers.append(self.stack.enter_context(self.journal.follow()))
        self.step += 1
        super()._step()

    def _decide_once(self) -> list[TaskChange]:
        changes = super()._decide_once()
        self.journal.add_decision(decide(self.book, self.now), self.now)
        return changes

    def _confirm(self, task: Task) -> None:
        if task.state is State.PROVISIONAL:
            self.book.picture.age(self.now)
            self.journal.add_confirmation(task.id, confirm(self.book, task.unit, self.now), self.now)
        super()._confirm(task)


async def record_of(seed: int, steps: int = 60) -> list[list[record_pb2.LedgerEntry]]:
    """What each follower of a history was told, as it comes over the wire."""
    history = RecordedHistory(seed, steps=steps)
    with history.stack:
        history.run()
        told = [await one.take(10**9, 0) for one in history.followers]
    return [[record_pb2.LedgerEntry.FromString(one.SerializeToString()) for one in each] for each in told]


def check_repetition(made: Repetition, seed: int) -> None:
    assert not made.differing, f"seed {seed}: {made.differing[0]}"
    assert made.decisions > 0


@pytest.mark.long
async def test_decided_again_a_record_gives_the_recorded_decisions() -> None:
    grants = 0
    for seed in range(8):
        for record in await record_of(seed):
            made = repeat(record)
            check_repetition(made, seed)
            grants += made.grants
    assert grants > 50


@pytest.mark.long
@pytest.mark.parametrize("days", [0.5, pytest.param(30, marks=[pytest.mark.night, pytest.mark.timeout(0)])])
async def test_many_records_decided_again_give_the_recorded_decisions(days: float) -> None:
    """So many days of virtual time, in histories of an hour each: in longer ones nobody asks any more."""
    left_s, seed = days * 86_400, 8
    while left_s > 0:
        records = await record_of(seed, steps=240)
        for one in records:
            check_repetition(repeat(one), seed)
            made = compare(lambda one=one: one, OtherRules())  # type: ignore[misc]
            assert made.diverged_s is None, f"seed {seed}"
        times_s = [one.decision.now_s for one in records[0] if one.HasField("decision")]
        left_s -= max(times_s) - min(times_s)
        seed += 1


async def test_a_record_that_lacks_something_decides_otherwise() -> None:
    """Else the comparison would compare nothing."""
    [record, *_] = await record_of(3)
    lacking = [one for one in record if one.WhichOneof("entry") != "task"]
    with pytest.raises(KeyError):
        repeat(lacking)
    others = [one for one in record if one.WhichOneof("entry") != "budgets"]
    assert repeat(others).differing


@pytest.mark.long
async def test_a_comparison_with_the_recorded_rules_themselves_moves_nothing() -> None:
    for seed in range(8):
        [record, *_] = await record_of(seed)
        made = compare(lambda record=record: record, OtherRules())  # type: ignore[misc]
        assert made.diverged_s is None, f"seed {seed}"
        assert not made.moved()
        assert all(one.recorded == one.other for one in made.budgets.values())


class Web:
    """Ten ready instances of web on hosts of their own under a budget, and three reboots asked for at once.

    Each takes ten minutes, in which its instance is down.
    """

    def __init__(self, allowed: str) -> None:
        self.book = TaskLedger.empty(Rules(), ("ams",))
        self.journal = LedgerJournal(self.book)
        self.now = 0.0
        self.rule(allowed)
        self.book.picture.believe(("ams",))
        for number in range(10):
            self.put(number, is_ready=True)

    def rule(self, allowed: str) -> None:
        self.book.rule(Budgets([web_budget(allowed)]), [web_budget(allowed)])

    def put(self, number: int, *, is_ready: bool) -> None:
        key = InstanceKey("ams", f"web-{number}")
        self.book.picture.put_instance(Instance(key, "web", f"h{number}", is_ready=is_ready))
        self.book.picture.record_report(key, self.now)

    def decide(self) -> None:
        for number in range(10):
            self.book.picture.record_report(InstanceKey("ams", f"web-{number}"), self.now)
        decision = decide(self.book, self.now)
        self.journal.add_decision(decision, self.now)
        for task_id, event in decision.changes:
            self.book.put_task(self.book.tasks[task_id].after_event(event, self.now))
            self.put(int(task_id[1:]), is_ready=False)

    async def record(self) -> list[record_pb2.LedgerEntry]:
        """An hour of it."""
        with self.journal.follow() as follower:
            for number in range(3):
                task = Task(f"t{number}", number + 1, "reboot", (f"h{number}",), added_at=0.0, polled_at=0.0)
                self.book.put_task(task)
            for second in range(0, 3_600, 10):
                self.now = float(second)
                for task in list(self.book.tasks.values()):
                    if task.state is State.GRANTED and self.now - task.since >= 600:
                        self.put(int(task.id[1:]), is_ready=True)
                        self.book.drop_task(task.id, self.now)
                self.decide()
            return await follower.take(10**9, 0)


def web_budget(allowed: str) -> Budget:
    return Budget("web", "web", max_unavailable=Amount.parse(allowed))


@pytest.mark.parametrize(
    ("allowed", "other", "recorded", "would_be"),
    [
        ("3", "3", [0, 0, 0], [0, 0, 0]),
        ("3", "1", [0, 0, 0], [0, 600, 1_200]),
        ("1", "3", [0, 600, 1_200], [0, 0, 0]),
        ("3", "0", [0, 0, 0], [None, None, None]),
    ],
)
async def test_another_budget_would_have_granted_at_other_times(
    allowed: str, other: str, recorded: list[float], would_be: list[float | None]
) -> None:
    record = await Web(allowed).record()
    made = compare(lambda: record, OtherRules(budgets=Budgets([web_budget(other)])), 3_600.0)
    courses = [made.courses[f"t{number}"] for number in range(3)]

    def about(seconds: float | None) -> float | None:
        return None if seconds is None else round(seconds / 60) * 60

    assert [about(one.granted_s) for one in courses] == recorded
    assert [about(one.other_granted_s) for one in courses] == would_be
    assert (made.diverged_s is None) is (allowed == other)
    assert made.budgets["web"].recorded == 0
    assert made.budgets["web"].other == 0


async def test_the_picture_shows_each_task_on_both_sides_and_where_the_estimate_begins() -> None:
    record = await Web("3").record()
    made = compare(lambda: record, OtherRules(budgets=Budgets([web_budget("1")])), 3_600.0)
    drawn = ElementTree.fromstring(draw_comparison(made, made.moved()))
    words = ["".join(one.itertext()) for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert [one for one in words if "reboot" in one] == ["t1, reboot", "t2, reboot"]
    assert "an estimate from here" in words
    held = [one for one in drawn.iter("{http://www.w3.org/2000/svg}path") if one.get("stroke-width")]
    assert len(held) == 4  # two tasks, recorded and otherwise


def test_all_that_a_decision_looks_at_is_recorded() -> None:
    """A new field belongs into the record, else a replay decides without it."""
    key = InstanceKey("ams", "web-1")
    instance = Instance(key, "web", "h1", False, False, False, "east", {"tier": "a"}, is_silent=True)
    task = Task(
        *("t", 7, "roll-out", ("h1",), (key,), "ann", "nanny", "g", True, State.PROVISIONAL),
        *(1.5, 2.5, 3.5, 4.5, Need.URGENT, 5.5, 2, frozenset({"fra"}), 6.5),
    )
    half = Amount(50, is_percent=True)
    budget = Budget("web", "web", {"tier": "a"}, frozenset({"east"}), Amount(3), Amount(1), True, half, 900.0)
    recorded = entries.budgets_of(entries.budgets_entry(Budgets([budget])).budgets)
    for made, known in (
        (budget, recorded.by_name["web"]),
        (instance, entries.instance_of(entries.instance_entry(instance, is_doubted=True).instance)),
        (task, entries.task_of(entries.task_entry(task).task)),
    ):
        assert known == made
        assert [one.name for one in fields(made) if getattr(made, one.name) == one.default] in ([], ["reason", "uid"])
