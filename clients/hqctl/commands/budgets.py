"""budget: what must remain of services while others work on their hosts."""

from __future__ import annotations

from typing import Any, TypeVar

import click
from google.protobuf.message import Message

from cmspb.v1 import cms_pb2 as pb
from hqcli.documents import BadDocument, documents_in, texts
from hqcli.exits import Exit
from hqcli.formats import TEXTS, is_data, output_option, print_data
from hqcli.terminal import print_table, warn
from hqctl.asking.cms import CmsProcesses, at_cms
from hqctl.asking.session import complain

M = TypeVar("M", bound=Message)
_NAMES = ("NAME", "RULE", "TOTAL", "FLOOR", "AVAILABLE", "MARGIN", "HELD", "NOT-READY")


@click.group()
@at_cms
def budget(_: CmsProcesses) -> None:
    """Show and set budgets: how many instances of a service must stay available.

    They are kept by the CMS (cluster management system, `cms serve`), which approves disruptions.
    """


@budget.command(name="list", short_help="List budgets and their current state.")
@click.argument("service", default="")
@output_option(*TEXTS)
@at_cms
def list_budgets(cms: CmsProcesses, service: str, output: str) -> None:
    """List budgets and how they stand, of SERVICE or all. A service without a budget is listed as default:SERVICE."""

    async def work() -> Exit:
        answer = await cms.call("ListBudgets", pb.ListBudgetsRequest(service=service))
        if is_data(output):
            print_data(answer, output)
        else:
            counted = {state.name for state in answer.state}
            idle = [_idle_row(one) for one in answer.budget if one.name not in counted]
            print_table(_NAMES, sorted([*map(_row, answer.state), *idle]))
        return Exit.OK

    cms.run(work())


@budget.command(short_help="Set one budget.")
@click.argument("name")
@click.option("--service", default="", help="Instances of this service.")
@click.option(
    "-l", "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Instances with this label; repeatable."
)
@click.option("--cluster", "clusters", multiple=True, help="In this cluster only; repeatable.")
@click.option("--min-ready", default="", metavar="AMOUNT", help="Minimum that must stay available, e.g. 3 or 75%.")
@click.option("--max-unavailable", default="", metavar="AMOUNT", help="Maximum that may be unavailable, e.g. 1 or 10%.")
@click.option(
    "--reject-impossible",
    is_flag=True,
    help="Reject requests that could not be granted even if every instance were ready, instead of letting them wait.",
)
@at_cms
def put(
    cms: CmsProcesses,
    name: str,
    service: str,
    labels: tuple[str, ...],
    clusters: tuple[str, ...],
    min_ready: str,
    max_unavailable: str,
    reject_impossible: bool,
) -> None:
    """Set budget NAME, or replace it."""
    pairs = dict(label.partition("=")[::2] for label in labels)
    wanted = pb.Budget(
        name=name,
        service=service,
        labels=pairs,
        cluster=clusters,
        min_ready=min_ready,
        max_unavailable=max_unavailable,
        reject_impossible=reject_impossible,
    )
    cms.run(_put_budgets(cms, [wanted]), writing=True)


@budget.command(short_help="Set budgets from YAML or JSON.")
@click.option("-f", "--filename", "names", multiple=True, required=True, help="File, folder, or - for standard input.")
@at_cms
def apply(cms: CmsProcesses, names: tuple[str, ...]) -> None:
    """Set budgets from YAML or JSON, one per document.

    \b
    For example: {name: web, service: web, maxUnavailable: 10%,
                  brief: {maxUnavailable: 50%, within: 15m}}
    """
    cms.run(_put_budgets(cms, messages_in(names, pb.Budget)), writing=True)


@budget.command(short_help="Delete a budget.")
@click.argument("name")
@at_cms
def delete(cms: CmsProcesses, name: str) -> None:
    """Delete budget NAME; its service falls back to the default budget."""

    async def work() -> Exit:
        await cms.call("DeleteBudget", pb.DeleteBudgetRequest(name=name))
        click.echo(f"budget {name} deleted")
        return Exit.OK

    cms.run(work(), writing=True)


def messages_in(names: tuple[str, ...], kind: type[M]) -> list[M]:
    """Messages of one kind from files. Exits, and says what is wrong, if one of them cannot be read."""
    from google.protobuf.json_format import ParseDict, ParseError

    bad: list[str] = []
    messages: list[M] = []
    try:
        documents = [one for name, text in texts(names) for one in documents_in(name, text, bad)]
    except BadDocument as error:
        raise click.UsageError(str(error)) from error
    for place, value in documents:
        try:
            messages.append(ParseDict(_with_words(value), kind()))
        except ParseError as error:
            bad.append(f"{place}: {error}")
    if bad:
        for fault in bad:
            complain(fault)
        raise SystemExit(int(Exit.REFUSED))
    return messages


async def _put_budgets(cms: CmsProcesses, wanted: list[pb.Budget]) -> Exit:
    for one in wanted:
        await cms.call("PutBudget", pb.PutBudgetRequest(budget=one))
        click.echo(f"budget {one.name} set")
    counted = {state.name for state in (await cms.call("ListBudgets", pb.ListBudgetsRequest())).state if state.total}
    for one in wanted:
        if one.name not in counted:
            warn(f"no instance matches budget {one.name}: check its service, labels and clusters.")
    return Exit.OK


def _idle_row(budget: pb.Budget) -> list[str]:
    """The row of a budget that no instance matches."""
    rule = f"min_ready {budget.min_ready}" if budget.min_ready else f"max_unavailable {budget.max_unavailable}"
    return [budget.name, rule, "0", "0", "0", "0", "-", "0"]


def _row(state: pb.BudgetState) -> list[str]:
    held = ",".join(holder.task_id for holder in state.holder) or "-"
    margin = state.available - state.floor
    counts = (state.total, state.floor, state.available, margin)
    return [state.name, state.rule, *map(str, counts), held, str(state.not_ready_total)]


def _with_words(value: Any) -> Any:
    """People write amounts as numbers, too."""
    amounts = ("minReady", "maxUnavailable", "min_ready", "max_unavailable")
    if not isinstance(value, dict):
        return value
    return {
        key: str(one) if key in amounts else _with_words(one) if key == "brief" else one for key, one in value.items()
    }
