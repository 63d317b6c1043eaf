"""upload: brings installations to descriptions."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import click

from hqcli.formats import output_option
from nannyctl.commands.planning import described, make_plans, read_work
from nannyctl.exits import Exit
from nannyctl.output.telling import progress, tell
from nannyctl.sending.results import Result
from nannyctl.session import Session, connected, finish

if TYPE_CHECKING:
    from hqclient.client import Client
    from nannyctl.output.telling import Lines, LiveBars
    from nannyctl.plans.plan import Plan

PARALLEL = 4


@click.command()
@described
@click.option("--parallel", type=click.IntRange(1, 64), default=PARALLEL, show_default=True, help="Concurrent batches.")
@click.option("--all", "every", is_flag=True, help="Print every instance, on a terminal too.")
@output_option("text", "json")
@connected
def upload(session: Session, names: tuple[str, ...], prune: bool, parallel: int, every: bool, output: str) -> None:
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
    name: str, client: Client, plans: list[Plan], shown: Lines | LiveBars, parallel: int
) -> list[Result]:
    """The results of all plans of one installation."""
    from nannyctl.sending.uploading import Upload

    shown.begin(name, sum(len(plan.writes) for plan in plans))
    upload = Upload(client, lambda result: shown.settled(name, result), random.Random(), parallel=parallel)
    return [result for plan in plans for result in await upload.run(plan)]
