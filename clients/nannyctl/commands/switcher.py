"""activate and rollback: switch to another revision, batch by batch; nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from descriptions.desired import ready_of
from hqcli.exits import Exit as NannyExit
from hqcli.formats import output_option
from hqcli.options import DurationParam
from nannyctl.commands.choosing import Chosen, choose, service_options
from nannyctl.commands.uploader import PARALLEL, carry_out
from nannyctl.output.results import LiveBars, ProgressLines, progress, tell
from nannyctl.plans.pacing import PacingSettings
from nannyctl.plans.plan import InstancePlan, PlannedKind, make_plan
from nannyctl.plans.switching import CannotRollBack, SwitchIntent, previous
from nannyctl.sending.results import Result, UploadOutcome
from nannyctl.sending.uploading import result_without_write
from nannyctl.session import NannyctlSession, complain, finish, with_session

if TYPE_CHECKING:
    from descriptions.held import HeldInstance
    from hqclient.client import Client
    from nannyctl.sending.holdings import InstanceReader

_SWITCHED = frozenset({UploadOutcome.UPDATED, UploadOutcome.NOT_READY, UploadOutcome.UNKNOWN})
F = TypeVar("F", bound=Callable[..., Any])
Decide = Callable[["dict[str, HeldInstance]"], SwitchIntent]


class UnavailableParam(click.ParamType[tuple[float, bool]]):
    """How many instances may be switched at once: `2`, or `10%` of the service's in that installation."""

    name = "n|n%"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, bool]:
        if isinstance(value, tuple):
            return value
        number, percent, rest = str(value).partition("%")
        if not number.isascii() or not number.isdigit() or rest or (percent and int(number) > 100):
            self.fail(f"{value!r} is not a number of instances, such as 2, or a share, such as 10%", param, ctx)
        if not int(number):
            self.fail(f"{value!r} would switch nothing: give at least 1, or 1%", param, ctx)
        return (int(number) / 100, True) if percent else (float(number), False)


@dataclass
class SwitchOrder:
    """What activate and rollback were asked for.

    Attributes:
        pace: of the roll-out; None: everything at once.
        stopped: why and where the roll-out stopped; then no further installation is started.
        ways_back: commands that undo what was switched.
        has_switched: something was switched, or may have been.
        is_repeatable: repeating the command does the rest, and nothing else.
    """

    decide: Decide
    partial: bool
    pace: PacingSettings | None
    stopped: str = ""
    ways_back: list[str] = field(default_factory=list)
    has_switched: bool = False
    is_repeatable: bool = True


def _switching(function: F) -> F:
    decorators = (
        service_options,
        click.option("--partial", is_flag=True, help="Continue where some instances lack the revision."),
        click.option(
            "--max-unavailable",
            type=UnavailableParam(),
            default="10%",
            show_default=True,
            help="Instances of a service to switch at once, per installation. A share is rounded down, but not to 0.",
        ),
        click.option(
            "--min-ready-time",
            "min_ready_s",
            type=DurationParam(),
            default="3s",
            show_default=True,
            help="How long an instance must stay ready before the next batch.",
        ),
        click.option(
            "--timeout-ready",
            "patience_s",
            type=DurationParam(least_s=1),
            default="10m",
            show_default=True,
            help="Stop the roll-out if no instance becomes ready for this long.",
        ),
        click.option("--at-once", is_flag=True, help="Switch all instances at once, without waiting for readiness."),
        output_option("text", "json"),
        with_session,
    )
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


@click.command()
@click.argument("revision")
@_switching
def activate(
    session: NannyctlSession, revision: str, names: tuple[str, ...], services: tuple[str, ...], output: str, **how: Any
) -> None:
    """Make REVISION the READY one in every instance of the services; what was READY stays INSTALLED.

    Only targets change, in batches: the next one begins when the instances of the one before are ready. If an
    instance does not have the revision, nothing is changed in that installation.
    """
    _switch(session, choose(session, names, services), _order(lambda _: SwitchIntent(revision), **how), output)


@click.command()
@click.option("--from", "from_", metavar="REVISION", default="", help="Switch only where this revision is READY.")
@click.option("--to", metavar="REVISION", default="", help="Switch to this revision. Default: the one added before.")
@_switching
def rollback(
    session: NannyctlSession,
    names: tuple[str, ...],
    services: tuple[str, ...],
    from_: str,
    to: str,
    output: str,
    **how: Any,
) -> None:
    """Make the previous revision READY again, in every instance of the services.

    Only targets change, in batches: agents have it installed, so nothing is downloaded. An interrupted rollback is
    finished by the same command; once it is done, the same command goes one revision further back, unless --from
    or --to say otherwise.
    """

    def back(found: dict[str, HeldInstance]) -> SwitchIntent:
        return SwitchIntent(to, from_) if to else previous([held.instance for held in found.values()], from_)

    order = _order(back, **how)
    order.is_repeatable = bool(from_ or to)  # without either, finished instances would go back one revision further
    _switch(session, choose(session, names, services), order, output)


def _order(
    decide: Decide,
    *,
    partial: bool,
    max_unavailable: tuple[float, bool],
    min_ready_s: float,
    patience_s: float,
    at_once: bool,
) -> SwitchOrder:
    return SwitchOrder(decide, partial, None if at_once else PacingSettings(*max_unavailable, min_ready_s, patience_s))


def _switch(session: NannyctlSession, chosen: Chosen, order: SwitchOrder, output: str) -> None:
    async def work() -> NannyExit:
        # One installation after the other, in order, as one service may be in all of them.
        turns = asyncio.Semaphore(len(chosen.installations) if order.pace is None else 1)
        with progress() as shown:

            async def one(name: str, client: Client) -> list[Result]:
                async with turns:
                    return [
                        result
                        for service in chosen.services
                        for result in await _switch_service(name, client, service, order, shown)
                    ]

            asked = await session.each(chosen.installations, one)
        code = tell(asked, output, every=False)
        if order.stopped:
            complain(_stop_message(order))
        if any(one.answer != [] for one in asked):
            return code
        complain(f"no installation holds an instance of {', '.join(chosen.services)}.")
        return NannyExit.REFUSED

    finish(work())


async def _switch_service(
    name: str, client: Client, service: str, order: SwitchOrder, shown: ProgressLines | LiveBars
) -> list[Result]:
    from nannyctl.sending.holdings import InstanceReader

    holdings = InstanceReader(client)
    try:
        plan = await _plan(holdings, service, order.decide)
    except CannotRollBack as error:
        return [Result(service, UploadOutcome.REFUSED, message=str(error))]
    if order.stopped:
        held_back = f"the roll-out stopped in {order.stopped}"
        results = [Result(action.id, UploadOutcome.HELD_BACK, message=held_back) for action in plan.writes]
    elif plan.refused and not order.partial:
        results = _withheld_results(plan)
    elif order.pace is None:
        results = await carry_out(name, client, [plan], shown, PARALLEL)
    else:
        results = await _roll(name, client, plan, order, shown)
    return results + [_missing(service, location) for location in sorted(holdings.missing)]


async def _roll(
    name: str, client: Client, plan: InstancePlan, order: SwitchOrder, shown: ProgressLines | LiveBars
) -> list[Result]:
    from nannyctl.sending.rolling import Rolling

    assert order.pace is not None
    assert isinstance(plan.intent, SwitchIntent)
    shown.begin(name, len(plan.writes))
    rolling = Rolling(client, plan, plan.intent.to, order.pace, lambda result: shown.add_result(name, result))
    results = await rolling.run()
    order.ways_back += _ways_back(plan, results)
    order.has_switched |= any(result.outcome in _SWITCHED for result in results)
    if any(result.failed for result in results):
        order.stopped = f"{name} ({plan.service})"
    return results


def _stop_message(order: SwitchOrder) -> str:
    """Where the roll-out stopped, and what can be done now."""
    told = f"the roll-out stopped in {order.stopped}."
    if not order.has_switched:
        told += " Nothing was switched."
    if order.is_repeatable:
        told += " To continue with the rest, run the same command again."
    return told + (f" To go back: {'; '.join(order.ways_back)}" if order.ways_back else "")


def _ways_back(plan: InstancePlan, results: Iterable[Result]) -> list[str]:
    """How to undo what was switched."""
    assert isinstance(plan.intent, SwitchIntent)
    switched = {result.id for result in results if result.outcome in (UploadOutcome.UPDATED, UploadOutcome.NOT_READY)}
    before = {ready_of(action.before.instance) for action in plan.writes if action.before and action.id in switched}
    to = plan.intent.to
    return [f"nanny rollback --service {plan.service} --from {to} --to {old}" for old in sorted(before) if old]


async def _plan(holdings: InstanceReader, service: str, decide: Decide) -> InstancePlan:
    found = await holdings.read_service(service)
    return make_plan(service, decide(found), (), found) if found else InstancePlan(service, SwitchIntent(""), ())


def _missing(service: str, location: str) -> Result:
    """A result for a location that the federation gateway has no answer from: it must not look done there."""
    return Result(
        f"{service} in {location}", UploadOutcome.AWAY, message="the location did not respond: nothing was done there"
    )


def _withheld_results(plan: InstancePlan) -> list[Result]:
    """Half a service on another revision is worse than none: nothing is sent, and each result says why."""
    note = "held back, because others of its service cannot be switched; --partial goes on without them"
    return [
        Result(action.id, UploadOutcome.REFUSED, message=note)
        if action.kind is PlannedKind.UPDATE
        else result_without_write(action)
        for action in plan.actions
    ]
