"""Scenarios as transactions: their hosts are held, asked about, and given back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from control.errors import Refused
from control.waves import Progress
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
from walle.texts import describe_absence, truncate_text
from walle.work.book import HOST, PROJECT, Notice, WalleTransaction, World, stored_record
from walle.work.results import Result, changed_task
from walle.work.scenario_kinds import kind_traits
from walle.work.scenario_records import delete_scenario, put_scenario, read_scenario, stored_scenario
from walle.work.waves import progress_of
from wallepb.v1.host_pb2 import (
    Host,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_STAGE_ASKING,
    SCENARIO_STAGE_CONFIRMING,
    SCENARIO_STAGE_WORKING,
    SEVERITY_ERROR,
    SEVERITY_WARNING,
    Project,
    Scenario,
    ScenarioHost,
)
from wallepb.v1.service_pb2 import (
    STEERING_CONTINUE,
    STEERING_PAUSE,
    STEERING_RETRY,
    AgreeScenarioRequest,
    EndScenarioRequest,
    Order,
    SteerScenarioRequest,
)

_STEERED: Final = {
    STEERING_PAUSE: ScenarioEvent.PAUSED,
    STEERING_CONTINUE: ScenarioEvent.CONTINUED,
    STEERING_RETRY: ScenarioEvent.RETRIED,
}
MAX_HOSTS: Final = 100  # all of a switch are held in one transaction
MAX_IN_WAVES: Final = 10_000
MAX_OPEN: Final = 100  # of one author, under way
_MAX_OVER: Final = 100  # of one author, kept
_KEEP_MS: Final = 90 * 86_400_000


def add_scenario(
    book: WalleTransaction,
    given: Order,
    names: Sequence[str],
    world: World,
    now: Moment,
    look: Callable[[str], Host | None],
) -> None:
    """Begin planned work.

    Args:
        names: the hosts behind the switch, or those that the order selects.
        look: a host as it is in memory. A transaction cannot read thousands; each is read before its own work.
    """
    order = given.add_scenario
    if read_scenario(book, order.scenario) is not None:
        raise Refused(f"scenario {order.scenario} already exists", "ALREADY_EXISTS")
    traits = kind_traits(order.kind)
    most = MAX_IN_WAVES if traits.in_waves else MAX_HOSTS
    if not 0 < len(names) <= most:
        raise Refused(f"scenario {order.scenario}: {len(names)} hosts; such a scenario has 1 to {most}")
    scenario = Scenario(id=order.scenario, kind=order.kind, switch=order.switch, dc=order.dc, ticket=order.ticket)
    scenario.by, scenario.reason, scenario.at_once = given.by, order.reason, order.at_once or 1
    scenario.access = given.access
    scenario.created.CopyFrom(now.wall)
    scenario.group_id, scenario.since_ms = world.new_id(), now.ms
    scenario.wave_size, scenario.by_domain = order.wave_size, order.by_domain
    scenario.max_failures, scenario.verify = order.max_failures, order.verify
    if not traits.in_waves:
        scenario.stage = SCENARIO_STAGE_ASKING
        _hold_all(book, scenario, names, world)
    else:
        scenario.stage = SCENARIO_STAGE_WORKING
        scenario.host.extend(_waiting_host(name, look(name), order.by_domain) for name in names)
    put_scenario(book, scenario)


def why_no_room(stored: Iterable[Scenario], author: str) -> str:
    """Why an author may begin no more; empty: it may."""
    count = sum(one.by == author and one.stage not in OVER for one in stored)
    return f"scenarios of {author}: {count} are under way: end some" if count >= MAX_OPEN else ""


def _waiting_host(name: str, host: Host | None, domain: str) -> ScenarioHost:
    if host is None:
        raise Refused(describe_absence("host", name), "NOT_FOUND")
    return ScenarioHost(name=name, domain=_domain(host, domain))


def _domain(host: Host, kind: str) -> str:
    place = host.location
    return {"rack": f"{place.dc}/{place.rack}", "switch": f"{place.dc}/{place.switch}", "dc": place.dc}.get(kind, "")


def forgettable(scenarios: Iterable[Scenario], author: str, now_ms: int) -> list[str]:
    """Names of what is over and nobody looks for any more: very old, or one of very many of its author."""
    over = [one for one in scenarios if one.by == author and one.stage in OVER]
    over.sort(key=lambda one: -one.since_ms)
    return [one.id for number, one in enumerate(over) if number >= _MAX_OVER or now_ms - one.since_ms >= _KEEP_MS]


def forget_scenarios(book: WalleTransaction, names: Iterable[str]) -> None:
    for name in names:
        scenario = read_scenario(book, name)
        if scenario is not None and scenario.stage in OVER:
            delete_scenario(book, scenario)


def steer_scenario(book: WalleTransaction, order: SteerScenarioRequest, by: str, now: Moment) -> None:
    """Pause work in waves; or go on with it, with the hosts that failed accepted or tried again."""
    scenario = stored_scenario(book, order.scenario)
    event = _STEERED[order.steering]
    if not kind_traits(scenario.kind).in_waves or not is_possible(scenario, event):
        raise Refused(f"scenario {scenario.id}: it cannot be {event.value} now ({scenario.message})")
    for wanted in scenario.host:  # waves.py releases the hosts, some at a time
        if progress_of(wanted) is Progress.FAILED and event is not ScenarioEvent.PAUSED:
            if event is ScenarioEvent.CONTINUED:
                wanted.accepted = True
            else:
                wanted.CopyFrom(ScenarioHost(name=wanted.name, domain=wanted.domain))
    message = f"{event.value} by {by}: {order.reason}".removesuffix(": ")
    put_scenario(book, advance(scenario, event, now.ms, message))


def end_scenario(book: WalleTransaction, order: EndScenarioRequest, by: str, now: Moment) -> None:
    scenario = stored_scenario(book, order.scenario)
    event = ScenarioEvent.DONE if order.done else ScenarioEvent.CANCEL
    if order.done and kind_traits(scenario.kind).in_waves:
        raise Refused(f"scenario {order.scenario}: Wall-E does this work, and ends it; cancel it to end it now")
    if not is_possible(scenario, event):
        raise Refused(
            f"scenario {order.scenario}: its work has not been allowed to begin, or is over ({scenario.message})"
        )
    word = "done" if order.done else "cancelled"
    put_scenario(book, advance(scenario, event, now.ms, f"{word}, said by {by}: {order.reason}"))


def agree_scenario(book: WalleTransaction, order: AgreeScenarioRequest, by: str, now: Moment) -> None:
    """Agree by hand, for hosts of one project whose CMSs cannot be asked; a refusal cancels the work."""
    scenario = stored_scenario(book, order.scenario)
    if scenario.stage not in (SCENARIO_STAGE_ASKING, SCENARIO_STAGE_CONFIRMING):
        raise Refused(f"scenario {scenario.id}: nothing is left to agree on ({scenario.message})")
    mine = [one for one in scenario.host if stored_record(book, HOST, one.name).project == order.project]
    if not any(one.by_hand or one.agreed for one in mine):
        raise Refused(f"scenario {scenario.id}: no host of project {order.project} waits for agreement by hand")
    if order.refused:
        scenario = advance(
            scenario, ScenarioEvent.REJECTED, now.ms, f"{by} refused it for {order.project}: {order.reason}"
        )
    else:
        for one in mine:
            agree_by_hand(one, by, order.reason, now.wall)
    put_scenario(book, scenario)


def settle_scenario(book: WalleTransaction, name: str, now: Moment) -> list[Notice]:
    """Advance work that people do by what is known; work in waves goes on by waves.py."""
    scenario = read_scenario(book, name)
    if scenario is None or scenario.stage in OVER:
        return []
    event = event_now(scenario, now.ms)
    if event is None:
        return []
    who = "; ".join(blocking(scenario)[:5]) if event in (ScenarioEvent.REJECTED, ScenarioEvent.TOO_LATE) else ""
    if event is ScenarioEvent.RETURNED:
        _leave_tasks(scenario)
        _release_all(book, scenario, now.ms)
    put_scenario(book, advance(scenario, event, now.ms, f"{event}: {who}" if who else ""))
    return [Notice(SEVERITY_ERROR, "", f"scenario {name} ({scenario.ticket}): {event}: {who}")] if who else []


def may_begin(book: WalleTransaction, name: str, now: Moment) -> list[Notice]:
    """Let the work begin (CONFIRMED): everybody agreed, and HQ does not count silence. The requester is notified."""
    scenario = read_scenario(book, name)
    if scenario is None or not is_confirmed(scenario):
        return []
    put_scenario(book, advance(scenario, ScenarioEvent.CONFIRMED, now.ms))
    return [Notice(SEVERITY_WARNING, "", f"scenario {name} ({scenario.ticket}): the work may begin")]


def take_scenario_answer(book: WalleTransaction, name: str, effect: Effect, result: Result, now: Moment) -> None:
    scenario = read_scenario(book, name)
    if scenario is None:
        return
    task = next((task for _, task in tasks(scenario) if task.id == effect.task.id), None)
    if task is not None:
        put_scenario(book, with_task(scenario, task, changed_task(effect, task, result, 0.0, now.ms)))


def _hold_all(book: WalleTransaction, scenario: Scenario, names: Sequence[str], world: World) -> None:
    for index, name in enumerate(names):
        host = stored_record(book, HOST, name)
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
    """Release all hosts. Their checks count from now: hosts and monitoring need a while to come back."""
    for wanted in scenario.host:
        host = book.get(HOST, wanted.name)
        if host is not None and host.scenario == scenario.id:
            host.scenario, host.released_ms = "", now_ms
            book.put(HOST, host.name, host)


def show_waiting(book: WalleTransaction, name: str, text: str) -> None:
    """Record what the scenario waits for."""
    scenario = read_scenario(book, name)
    if scenario is not None and scenario.stage not in OVER:
        scenario.message = truncate_text(text)
        put_scenario(book, scenario)


def take_scenario_failure(book: WalleTransaction, name: str, task_id: str, text: str) -> None:
    """Note that a CMS gave no valid answer: it is asked again, and shown as blocking."""
    scenario = read_scenario(book, name)
    if scenario is None:
        return
    for _, task in tasks(scenario):
        if task.id == task_id:
            task.message = truncate_text(text)
    put_scenario(book, scenario)
