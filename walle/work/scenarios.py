"""Scenarios as transactions: their hosts are held, asked about, and given back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from control.errors import Refused
from walle.fuses.fuse import Moment
from walle.healing.operation import Effect
from walle.maintenance import (
    OVER,
    ScenarioEvent,
    advance,
    agree_by_hand,
    blocking,
    event_now,
    is_confirmed,
    is_held,
    is_possible,
    scenario_host,
    tasks,
    with_task,
)
from walle.texts import truncate_text
from walle.work.book import HOST, PROJECT, SCENARIO, Notice, WalleTransaction, World
from walle.work.results import Result, changed_task
from wallepb.v1.host_pb2 import (
    Host,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_SWITCH_MAINTENANCE,
    SCENARIO_STAGE_ASKING,
    SCENARIO_STAGE_CONFIRMING,
    SCENARIO_STAGE_RETURNING,
    SCENARIO_STAGE_WORKING,
    SEVERITY_ERROR,
    SEVERITY_WARNING,
    Project,
    Scenario,
    ScenarioHost,
)
from wallepb.v1.service_pb2 import AgreeScenarioRequest, EndScenarioRequest, Order

MAX_HOSTS: Final = 100  # all of a switch are held in one transaction


def add_scenario(book: WalleTransaction, given: Order, names: Sequence[str], world: World, now: Moment) -> None:
    """`names`: the hosts of the switch, or those that the order names."""
    order = given.add_scenario
    if book.get(SCENARIO, order.scenario) is not None:
        raise Refused(f"scenario {order.scenario} already exists", "ALREADY_EXISTS")
    if not 0 < len(names) <= MAX_HOSTS:
        raise Refused(f"scenario {order.scenario}: {len(names)} hosts; a scenario has 1 to {MAX_HOSTS}")
    scenario = Scenario(id=order.scenario, kind=order.kind, switch=order.switch, dc=order.dc, ticket=order.ticket)
    scenario.by, scenario.reason, scenario.at_once = given.by, order.reason, order.at_once or 1
    scenario.access = given.access
    scenario.created.CopyFrom(now.wall)
    scenario.group_id, scenario.since_ms = world.new_id(), now.ms
    if order.kind == SCENARIO_KIND_SWITCH_MAINTENANCE:
        scenario.stage = SCENARIO_STAGE_ASKING
        _hold_all(book, scenario, names, world)
    else:
        scenario.stage = SCENARIO_STAGE_WORKING
        scenario.host.extend(ScenarioHost(name=_host(book, name).name) for name in names)
    book.put(SCENARIO, scenario.id, scenario)


def end_scenario(book: WalleTransaction, order: EndScenarioRequest, by: str, now: Moment) -> None:
    scenario = _scenario(book, order.scenario)
    event = ScenarioEvent.DONE if order.done else ScenarioEvent.CANCEL
    if not is_possible(scenario, event):
        raise Refused(
            f"scenario {order.scenario}: its work has not been allowed to begin, or is over ({scenario.message})"
        )
    word = "done" if order.done else "cancelled"
    book.put(SCENARIO, scenario.id, advance(scenario, event, now.ms, f"{word}, said by {by}: {order.reason}"))


def agree_scenario(book: WalleTransaction, order: AgreeScenarioRequest, by: str, now: Moment) -> None:
    """By hand, for the hosts of one project whose CMSs cannot be asked; a refusal cancels the work."""
    scenario = _scenario(book, order.scenario)
    if scenario.stage not in (SCENARIO_STAGE_ASKING, SCENARIO_STAGE_CONFIRMING):
        raise Refused(f"scenario {scenario.id}: nothing is left to agree on ({scenario.message})")
    mine = [one for one in scenario.host if _host(book, one.name).project == order.project]
    if not any(one.by_hand or one.agreed for one in mine):
        raise Refused(f"scenario {scenario.id}: no host of project {order.project} waits for agreement by hand")
    if order.refused:
        scenario = advance(
            scenario, ScenarioEvent.REJECTED, now.ms, f"{by} refused it for {order.project}: {order.reason}"
        )
    else:
        for one in mine:
            agree_by_hand(one, by, order.reason, now.wall)
    book.put(SCENARIO, scenario.id, scenario)


def settle_scenario(book: WalleTransaction, name: str, now: Moment) -> list[Notice]:
    """Advance it by what is known."""
    scenario = book.get(SCENARIO, name)
    if scenario is None or scenario.stage in OVER:
        return []
    event = event_now(scenario, now.ms) if scenario.kind == SCENARIO_KIND_SWITCH_MAINTENANCE else None
    if scenario.stage == SCENARIO_STAGE_RETURNING and scenario.kind != SCENARIO_KIND_SWITCH_MAINTENANCE:
        event = ScenarioEvent.RETURNED
    if event is None:
        return []
    who = "; ".join(blocking(scenario)[:5]) if event in (ScenarioEvent.REJECTED, ScenarioEvent.TOO_LATE) else ""
    if event is ScenarioEvent.RETURNED:
        _leave_tasks(scenario)
        _release_all(book, scenario, now.ms)
    book.put(SCENARIO, name, advance(scenario, event, now.ms, f"{event}: {who}" if who else ""))
    return [Notice(SEVERITY_ERROR, "", f"scenario {name} ({scenario.ticket}): {event}: {who}")] if who else []


def may_begin(book: WalleTransaction, name: str, now: Moment) -> list[Notice]:
    """CONFIRMED: everybody agreed, and HQ does not count silence. The requester is notified."""
    scenario = book.get(SCENARIO, name)
    if scenario is None or not is_confirmed(scenario):
        return []
    book.put(SCENARIO, name, advance(scenario, ScenarioEvent.CONFIRMED, now.ms))
    return [Notice(SEVERITY_WARNING, "", f"scenario {name} ({scenario.ticket}): the work may begin")]


def take_scenario_answer(book: WalleTransaction, name: str, effect: Effect, result: Result, now: Moment) -> None:
    scenario = book.get(SCENARIO, name)
    if scenario is None:
        return
    task = next((task for _, task in tasks(scenario) if task.id == effect.task.id), None)
    if task is not None:
        book.put(SCENARIO, name, with_task(scenario, task, changed_task(effect, task, result, 0.0, now.ms)))


def _hold_all(book: WalleTransaction, scenario: Scenario, names: Sequence[str], world: World) -> None:
    for index, name in enumerate(names):
        host = _host(book, name)
        project = book.get(PROJECT, host.project) or Project()
        wanted = scenario_host(world.installation, scenario, host, project, index)
        scenario.host.append(wanted)
        if is_held(wanted):
            host.scenario = scenario.id
            book.put(HOST, name, host)


def _leave_tasks(scenario: Scenario) -> None:
    """Tasks that a CMS did not delete are left to the garbage collector."""
    left = sorted({task.cms for _, task in tasks(scenario)})
    if left:
        scenario.message = f"{scenario.message}; tasks at {', '.join(left)} could not be deleted: deleted later"
    for host in scenario.host:
        del host.task[:]


def _release_all(book: WalleTransaction, scenario: Scenario, now_ms: int) -> None:
    """Their checks count from now: hosts and monitoring need a while until they are back."""
    for wanted in scenario.host:
        host = book.get(HOST, wanted.name)
        if host is not None and host.scenario == scenario.id:
            host.scenario, host.released_ms = "", now_ms
            book.put(HOST, host.name, host)


def _scenario(book: WalleTransaction, name: str) -> Scenario:
    scenario = book.get(SCENARIO, name)
    if scenario is None:
        raise Refused(f"scenario {name} does not exist", "NOT_FOUND")
    return scenario


def _host(book: WalleTransaction, name: str) -> Host:
    host = book.get(HOST, name)
    if host is None:
        raise Refused(f"host {name} does not exist", "NOT_FOUND")
    return host


def show_waiting(book: WalleTransaction, name: str, text: str) -> None:
    """What the scenario waits for."""
    scenario = book.get(SCENARIO, name)
    if scenario is not None and scenario.stage not in OVER:
        scenario.message = truncate_text(text)
        book.put(SCENARIO, name, scenario)


def take_scenario_failure(book: WalleTransaction, name: str, task_id: str, text: str) -> None:
    """A CMS gave no valid answer: it is asked again, and shown as blocking."""
    scenario = book.get(SCENARIO, name)
    if scenario is None:
        return
    for _, task in tasks(scenario):
        if task.id == task_id:
            task.message = truncate_text(text)
    book.put(SCENARIO, name, scenario)
