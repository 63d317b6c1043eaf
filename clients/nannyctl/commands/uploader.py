"""plan and upload: what brings installations to descriptions, shown and done."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from descriptions.reading import read_descriptions
from descriptions.shares import Share, shares_of
from hqcli.documents import BadDocument
from hqcli.exits import Exit
from hqcli.formats import TEXTS, is_data, output_option, print_data
from nannyctl.exits import worst
from nannyctl.output.plans import plan_as_dict, plan_lines, print_lines
from nannyctl.output.results import progress, tell
from nannyctl.plans.plan import InstancePlan, make_plan
from nannyctl.plans.upload_intent import UploadIntent
from nannyctl.sending.results import Result
from nannyctl.session import InstallationAnswer, NannyctlSession, finish, refuse, tell_away, warn, with_session

if TYPE_CHECKING:
    from hqclient.client import Client
    from nannyctl.output.results import LiveBars, ProgressLines

PARALLEL = 4

F = TypeVar("F", bound=Callable[..., Any])
Work = tuple[dict[str, tuple[str, ...]], dict[str, list[Share]]]


def description_options(function: F) -> F:
    """Give a command the options that name descriptions."""
    files = click.option(
        "-f",
        "--filename",
        "names",
        multiple=True,
        required=True,
        metavar="FILE",
        help="Description, folder of descriptions or - (stdin); repeatable.",
    )
    prune = click.option("--prune", is_flag=True, help="Delete instances of the service that are not described.")
    return files(prune(function))


@click.command()
@description_options
@click.option("--all", "every", is_flag=True, help="List every instance.")
@click.option("--exit-code", is_flag=True, help=f"Exit with {Exit.DIFFERS:d} if there is something to upload.")
@output_option(*TEXTS)
@with_session
def plan(
    session: NannyctlSession, names: tuple[str, ...], prune: bool, every: bool, exit_code: bool, output: str
) -> None:
    """Show what `upload` would do, and what HQ would refuse, without doing it."""
    installations, shares = read_work(session, names)

    async def work() -> Exit:
        async def one(name: str, client: Client) -> list[InstancePlan]:
            from nannyctl.sending.writing import check_plan

            plans = await make_plans(client, shares[name], prune)
            return [await check_plan(client, plan) for plan in plans]

        asked = await session.each(installations, one)
        if is_data(output):
            print_data({"installations": [_as_dict(told) for told in asked]}, output)
        else:
            for told in asked:
                _print(told, every)
        return worst(_exit(told, exit_code) for told in asked)

    finish(work())


def read_work(session: NannyctlSession, names: Sequence[str]) -> Work:
    """Addresses and shares of the installations concerned; exits if the documents are faulty."""
    try:
        descriptions = read_descriptions(names)
        known = session.known_addresses(*(description.installations for description in descriptions))
        shares = shares_of(descriptions, known)
    except BadDocument as fault:
        refuse(fault)
    concerned = {name: servers for name, servers in session.selected_addresses(known).items() if name in shares}
    if not concerned:
        raise click.UsageError("no instance is described for these installations: there is nothing to do")
    return concerned, shares


async def make_plans(client: Client, shares: Iterable[Share], prune: bool) -> list[InstancePlan]:
    """One plan for each share of an installation."""
    from nannyctl.sending.holdings import InstanceReader

    holdings = InstanceReader(client)
    plans = []
    for share in shares:
        intent = UploadIntent(share.description, share.placements, prune=prune)
        found = await holdings.read_service(share.description.service, share.ids)
        ours = {one: held for one, held in found.items() if one not in share.elsewhere}
        full = await holdings.with_secrets(ours, intent)
        plans.append(make_plan(share.description.service, intent, share.ids, full))
    if holdings.missing:
        warn(f"{', '.join(sorted(holdings.missing))} did not respond: their instances are not in this plan.")
    return plans


def _exit(asked: InstallationAnswer[list[InstancePlan]], exit_code: bool) -> Exit:
    if asked.answer is None:
        return asked.exit
    if any(plan.refused for plan in asked.answer):
        return Exit.REFUSED
    empty = all(plan.is_empty for plan in asked.answer)
    return Exit.OK if empty or not exit_code else Exit.DIFFERS


def _print(asked: InstallationAnswer[list[InstancePlan]], every: bool) -> None:
    if asked.answer is None:
        sys.stdout.flush()
        tell_away(asked)
        return
    for plan in asked.answer:
        print_lines(plan_lines(asked.installation, plan, every=every))


def _as_dict(asked: InstallationAnswer[list[InstancePlan]]) -> dict[str, Any]:
    plans = [plan_as_dict(plan) for plan in asked.answer or ()]
    return {"name": asked.installation, "error": asked.error or None, "services": plans}


@click.command()
@description_options
@click.option("--parallel", type=click.IntRange(1, 64), default=PARALLEL, show_default=True, help="Concurrent batches.")
@click.option("--all", "every", is_flag=True, help="Print every instance, on a terminal too.")
@output_option(*TEXTS)
@with_session
def upload(
    session: NannyctlSession, names: tuple[str, ...], prune: bool, parallel: int, every: bool, output: str
) -> None:
    """Upload the descriptions to HQ.

    It can be interrupted and run again: what is already as described is not touched. Instances that others change
    meanwhile are read again. Installations do not wait for each other.
    """
    installations, shares = read_work(session, names)

    async def work() -> Exit:
        with progress() as shown:

            async def one(name: str, client: Client) -> list[Result]:
                plans = await make_plans(client, shares[name], prune)
                return await carry_out(name, client, plans, shown, parallel)

            asked = await session.each(installations, one)
        return tell(asked, output, every=every)

    finish(work())


async def carry_out(
    name: str, client: Client, plans: list[InstancePlan], shown: ProgressLines | LiveBars, parallel: int
) -> list[Result]:
    """The results of all plans of one installation."""
    from nannyctl.sending.uploading import Upload

    shown.begin(name, sum(len(plan.writes) for plan in plans))
    upload = Upload(client, lambda result: shown.add_result(name, result), random.Random(), parallel=parallel)
    return [result for plan in plans for result in await upload.run(plan)]
