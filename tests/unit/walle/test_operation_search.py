"""One host, two CMSs, a check and a fuse: every state that can be reached, and what holds in each.

The first CMS confirms and withdraws, the second rejects; each call may be lost after it took effect. The fuse goes out
and the check recovers at any moment, each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import product
from typing import NamedTuple

import pytest

from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from walle.approval.protocol import CmsAnswer
from walle.fuses.fuse import Automation, switch_off
from walle.healing.incidents import Incidents
from walle.healing.operation import MAX_FAILURES, VERIFY_MS, Do, Effect, effects
from walle.tables import STAGES, OperationEvent, advance
from walle.work.book import FUSE, HOST, PROJECT, World
from walle.work.repairs import consider, settle, start_work
from walle.work.results import take_answer, take_dry_runs
from wallepb.v1.host_pb2 import (
    HOST_STATUS_DEAD,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OUTCOME_FAILED,
    STAGE_APPROVAL,
    STAGE_CONFIRMING,
    STAGE_ENDING,
    STAGE_REQUESTED,
    STAGE_RUNNING,
    STAGE_UNSPECIFIED,
    STAGE_VERIFYING,
    VERDICT_IN_PROCESS,
    VERDICT_OK,
    VERDICT_REJECTED,
    Host,
    Operation,
    Stage,
    Task,
)
from wallepb.v1.project_pb2 import Cms, Fuse

URLS = ("http://a", "http://b")
WORLD = World("i", {}, lambda: "o", Incidents(), settle_ms=0)
ANSWERS = {
    URLS[0]: (CmsAnswer(VERDICT_OK, provisional=True), CmsAnswer(VERDICT_IN_PROCESS)),
    URLS[1]: (CmsAnswer(VERDICT_OK), CmsAnswer(VERDICT_REJECTED)),
}
CONFIRMED = (CmsAnswer(VERDICT_OK), CmsAnswer(VERDICT_IN_PROCESS))


class State(NamedTuple):
    """The host as stored, its fuse, and the tasks that the CMSs hold."""

    host: bytes
    is_off: bool
    tasks: frozenset[str]

    def read(self) -> Host:
        return Host.FromString(self.host)


def book_of(state: State) -> DictBook:
    book = DictBook()
    book.put(HOST, "h1", state.read())
    book.put(PROJECT, "web", a_project(*(Cms(url=url, version="v1.4") for url in URLS)))
    fuse = Fuse(id="web")
    book.put(FUSE, "web", switch_off(fuse, Automation.HEALING, "op", "test", at()) if state.is_off else fuse)
    return book


def state_of(book: DictBook, before: State, tasks: frozenset[str]) -> State:
    host = book.get(HOST, "h1")
    assert host is not None
    del host.history[:]
    if host.HasField("operation"):
        _forget_what_matters_no_more(host.operation)
    return State(host.SerializeToString(deterministic=True), before.is_off, tasks)


def _forget_what_matters_no_more(operation: Operation) -> None:
    """Clear what no longer matters, for fewer states: messages, and verdicts once the work has begun or is over."""
    operation.ClearField("message")
    is_asking = operation.stage in (STAGE_REQUESTED, STAGE_APPROVAL, STAGE_CONFIRMING)
    for task in operation.task:
        task.CopyFrom(Task(id=task.id, cms=task.cms, created=task.created) if not is_asking else task)
        task.ClearField("message")
    for task in operation.old_task:
        task.CopyFrom(Task(id=task.id, cms=task.cms, created=True))


def after_effect(state: State, effect: Effect, answer: CmsAnswer | None, *, crash: bool) -> State:
    """The state after one call of a CMS; with `crash`, the CMS has done it and we have not heard."""
    tasks = state.tasks
    if effect.do is Do.CREATE:
        tasks |= {effect.task.id}
    if effect.do in (Do.DELETE, Do.GIVE_BACK):
        tasks -= {effect.task.id}
    if crash:
        return state._replace(tasks=tasks)
    book = book_of(state)
    known = answer if effect.task.id in state.tasks or effect.do is Do.CREATE else None
    take_answer(book, "h1", "o", effect, known, 0.5, at())
    return state_of(book, state, tasks)


@cache
def following(state: State) -> tuple[State, ...]:
    return tuple(set(_following(state)) - {state})


def _following(state: State) -> Iterator[State]:
    yield from _by_walle(state)
    yield from _by_the_world(state)


def _by_walle(state: State) -> Iterator[State]:
    for step in (consider, partial(consider, is_agreed=True), settle):
        book = book_of(state)
        step(book, "h1", WORLD, at())
        yield state_of(book, state, state.tasks)
    book = book_of(state)
    start_work(book, "h1", "fake", "boot-1", WORLD, at())
    yield state_of(book, state, state.tasks)
    if state.read().HasField("operation"):
        yield from _by_cms(state, state.read().operation)


def _by_cms(state: State, operation: Operation) -> Iterator[State]:
    if operation.stage == STAGE_REQUESTED:
        for said in product(ANSWERS[URLS[1]], repeat=len(operation.task)):
            book = book_of(state)
            take_dry_runs(book, "h1", "o", said, at())
            yield state_of(book, state, state.tasks)
        return
    for effect in effects(operation, NOW_MS):
        if effect.do is Do.EXECUTE:
            continue
        for answer in _answers(effect):
            yield after_effect(state, effect, answer, crash=False)
        yield after_effect(state, effect, None, crash=True)


def _answers(effect: Effect) -> Sequence[CmsAnswer | None]:
    if effect.do is Do.CONFIRM:
        return CONFIRMED
    return ANSWERS[effect.task.cms] if effect.do in (Do.CREATE, Do.POLL) else (None,)


def _by_the_world(state: State) -> Iterator[State]:
    yield state._replace(is_off=True)
    host = state.read()
    host.check[0].failing = False
    yield state._replace(host=host.SerializeToString(deterministic=True))
    host = state.read()
    if host.operation.stage == STAGE_RUNNING:
        host.operation.intent.done = True
        yield state._replace(host=host.SerializeToString(deterministic=True))
        host.operation.intent.done = False
    if host.operation.stage in (STAGE_REQUESTED, STAGE_CONFIRMING, STAGE_RUNNING):
        host.operation.failures = MAX_FAILURES
        yield state._replace(host=host.SerializeToString(deterministic=True))
    if host.operation.stage == STAGE_VERIFYING:
        host.operation.since_ms = NOW_MS - VERIFY_MS
        yield state._replace(host=host.SerializeToString(deterministic=True))


@cache
def reachable() -> frozenset[State]:
    first = State(a_host("h1", "UNREACHABLE").SerializeToString(deterministic=True), False, frozenset())
    seen, todo = {first}, [first]
    while todo:
        for state in following(todo.pop()):
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return frozenset(seen)


@pytest.mark.long
def test_the_search_reaches_every_stage_that_automation_can_take() -> None:
    stages = {state.read().operation.stage for state in reachable()}
    assert stages == set(Stage.values())


@pytest.mark.long
def test_work_begins_only_with_the_ok_of_every_cms_confirmed_if_provisional() -> None:
    for before in reachable():
        for after in following(before):
            operation = before.read().operation
            if after.read().operation.stage == STAGE_RUNNING != operation.stage:
                assert all(t.created and t.verdict == VERDICT_OK for t in operation.task), operation
                assert all(t.confirmed or not t.provisional for t in operation.task), operation


@pytest.mark.long
def test_work_begins_only_while_the_fuse_is_in_and_the_check_fails() -> None:
    for before in reachable():
        for after in following(before):
            if after.read().operation.stage == STAGE_RUNNING != before.read().operation.stage:
                assert not after.is_off
                assert after.read().check[0].failing


@pytest.mark.long
def test_every_cms_holds_a_task_for_a_host_in_work_between_two_steps_too() -> None:
    """The new task is created before the old one is deleted."""
    for state in reachable():
        operation = state.read().operation
        if operation.stage in (STAGE_UNSPECIFIED, STAGE_ENDING) or not (
            operation.old_task or operation.intent.executor
        ):
            continue
        held = {task.cms for task in (*operation.task, *operation.old_task) if task.id in state.tasks}
        assert held == set(URLS), operation


def test_when_an_operation_is_over_no_cms_holds_a_task_of_it() -> None:
    for state in reachable():
        if not state.read().HasField("operation"):
            assert not state.tasks, state


def test_a_step_that_failed_stays_in_the_history_with_its_output_when_the_next_begins() -> None:
    host, book = a_host("h1", "UNREACHABLE"), DictBook()
    failed = Operation(id="op1", kind=OPERATION_KIND_REBOOT, check="UNREACHABLE", stage=STAGE_RUNNING, since_ms=NOW_MS)
    failed.intent.output, failed.failures = "exit code 3", MAX_FAILURES
    host.operation.CopyFrom(failed)
    book.put(HOST, "h1", host)
    book.put(PROJECT, "web", a_project())
    book.put(FUSE, "web", Fuse(id="web"))
    settle(book, "h1", WORLD, at())
    after = book.get(HOST, "h1")
    assert after is not None
    assert after.operation.kind == OPERATION_KIND_REDEPLOY
    (kept,) = after.history
    assert (kept.id, kept.outcome, kept.output) == ("op1", OUTCOME_FAILED, "exit code 3")
    assert "next step" in kept.message


def test_a_rejected_repair_makes_the_host_dead_once_its_tasks_are_deleted() -> None:
    dead = [state for state in reachable() if state.read().status == HOST_STATUS_DEAD]
    assert dead
    assert all(not state.tasks for state in dead)


def test_an_operation_can_end_from_every_state() -> None:
    ended = {state for state in reachable() if not state.read().HasField("operation")}
    leading: dict[State, set[State]] = {}
    for state in reachable():
        for after in following(state):
            leading.setdefault(after, set()).add(state)
    todo = list(ended)
    while todo:
        for state in leading.get(todo.pop(), set()) - ended:
            ended.add(state)
            todo.append(state)
    assert ended == reachable()


def test_running_work_is_never_cancelled() -> None:
    assert {event for stage, event in STAGES if stage == STAGE_RUNNING} == {
        OperationEvent.EXECUTED,
        OperationEvent.NEXT_STEP,
        OperationEvent.GAVE_UP,
    }


def test_advance_follows_every_row_of_the_table() -> None:
    for (stage, event), (wanted, _) in STAGES.items():
        assert advance(Operation(stage=stage), event, NOW_MS).stage == wanted
