"""activate and rollback: another revision runs, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hqctl.output.formats import output_option
from nannyctl.commands.choosing import Chosen, choose, of_services
from nannyctl.commands.uploader import PARALLEL, carry_out
from nannyctl.exits import Exit
from nannyctl.output.progress import progress
from nannyctl.output.telling import tell
from nannyctl.plans.actions import Kind
from nannyctl.plans.plan import Plan, make_plan
from nannyctl.plans.switching import CannotRollBack, Switch, previous
from nannyctl.sending.results import Outcome, Result
from nannyctl.sending.uploading import result_without_write
from nannyctl.session import Session, complain, connected, finish

if TYPE_CHECKING:
    from hqclient.client import Client
    from nannyctl.plans.held import Held
    from nannyctl.sending.holdings import Holdings

F = TypeVar("F", bound=Callable[..., Any])
Decide = Callable[["dict[str, Held]"], Switch]


def _switching(function: F) -> F:
    partial = click.option("--partial", is_flag=True, help="Continue where some instances lack the revision.")
    return of_services(partial(output_option("text", "json")(connected(function))))


@click.command()
@click.argument("revision")
@_switching
def activate(
    session: Session, revision: str, names: tuple[str, ...], services: tuple[str, ...], partial: bool, output: str
) -> None:
    """Make REVISION the READY one in every instance of the services; what was READY stays INSTALLED.

    Only targets change. If an instance does not have the revision, nothing is changed in that installation.
    """
    _switch(session, choose(session, names, services), lambda _: Switch(revision), partial, output)


@click.command()
@click.option("--from", "from_", metavar="REVISION", default="", help="Switch only where this revision is READY.")
@click.option("--to", metavar="REVISION", default="", help="Switch to this revision. Default: the one added before.")
@_switching
def rollback(
    session: Session, names: tuple[str, ...], services: tuple[str, ...], from_: str, to: str, partial: bool, output: str
) -> None:
    """Make the previous revision READY again, in every instance of the services.

    Only targets change: agents have it installed, so nothing is downloaded. An interrupted rollback is
    finished by the same command; once it is done, the same command goes one revision further back, unless --from
    or --to say otherwise.
    """

    def back(found: dict[str, Held]) -> Switch:
        return Switch(to, from_) if to else previous([held.instance for held in found.values()], from_)

    _switch(session, choose(session, names, services), back, partial, output)


def _switch(session: Session, chosen: Chosen, decide: Decide, partial: bool, output: str) -> None:
    async def work() -> Exit:
        with progress() as shown:

            async def one(name: str, client: Client) -> list[Result]:
                from nannyctl.sending.holdings import Holdings

                results: list[Result] = []
                for service in chosen.services:
                    holdings = Holdings(client)
                    try:
                        plan = await _plan(holdings, service, decide)
                    except CannotRollBack as error:
                        results.append(Result(service, Outcome.REFUSED, message=str(error)))
                        continue
                    if plan.refused and not partial:
                        results += _held_back(plan)
                    else:
                        results += await carry_out(name, client, [plan], shown, PARALLEL)
                    results += [_missing(service, location) for location in sorted(holdings.missing)]
                return results

            asked = await session.each(chosen.installations, one)
        code = tell(asked, output, every=False)
        if any(one.answer != [] for one in asked):
            return code
        complain(f"no installation holds an instance of {', '.join(chosen.services)}.")
        return Exit.REFUSED

    finish(work())


async def _plan(holdings: Holdings, service: str, decide: Decide) -> Plan:
    found = await holdings.of_service(service)
    return make_plan(service, decide(found), (), found) if found else Plan(service, Switch(""), ())


def _missing(service: str, location: str) -> Result:
    """Of a location that a front has no answer of, nobody may think that it is done there, too."""
    return Result(
        f"{service} in {location}", Outcome.AWAY, message="the location did not respond: nothing was done there"
    )


def _held_back(plan: Plan) -> list[Result]:
    """Half a service on another revision is worse than none: nothing is sent, and everybody learns why."""
    note = "held back, because others of its service cannot be switched; --partial goes on without them"
    return [
        Result(action.id, Outcome.REFUSED, message=note) if action.kind is Kind.UPDATE else result_without_write(action)
        for action in plan.actions
    ]
