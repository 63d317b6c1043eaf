"""budget and windows: what must remain of services while others work on their hosts, and when work may begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class KindCommands:
    """A kind of settings of the CMS: how commands call, list, set and delete it.

    Attributes:
        name: of the group, of one of them in messages, and the field of requests.
        message: what is set.
        requests: of its list, of Put and of Delete.
        list_help, apply_help, delete_help: what the commands do; each begins with its short help.
        columns, rows: its table, from the answer to the list.
        matched: names in that answer that apply to something; None: they need not.
    """

    name: str
    message: type[Message]
    requests: tuple[Any, Any, Any]
    list_help: tuple[str, str]
    apply_help: tuple[str, str]
    delete_help: tuple[str, str]
    columns: Sequence[str]
    rows: Callable[[Any], list[list[str]]]
    matched: Callable[[Any], set[str]] | None = None

    def add_commands(self, group: click.Group) -> None:
        """Add `list`, `apply` and `delete`."""

        @group.command(name="list", short_help=self.list_help[0], help=self.list_help[1])
        @click.argument("service", default="")
        @output_option(*TEXTS)
        @at_cms
        def list_(cms: CmsProcesses, service: str, output: str) -> None:
            cms.run(self._list(cms, service, output))

        @group.command(short_help=self.apply_help[0], help=self.apply_help[1])
        @click.option(
            "-f", "--filename", "names", multiple=True, required=True, help="File, folder, or - for standard input."
        )
        @at_cms
        def apply(cms: CmsProcesses, names: tuple[str, ...]) -> None:
            cms.run(self.put(cms, _messages_in(names, self.message)), writing=True)

        @group.command(short_help=self.delete_help[0], help=self.delete_help[1])
        @click.argument("name")
        @at_cms
        def delete(cms: CmsProcesses, name: str) -> None:
            cms.run(self._delete(cms, name), writing=True)

    async def put(self, cms: CmsProcesses, wanted: Sequence[Any]) -> Exit:
        """Set them all, and warn of those that nothing matches."""
        for one in wanted:
            await self._call(cms, self.requests[1](**{self.name: one}))
            click.echo(f"{self.name} {one.name} set")
        if self.matched is not None:
            matched = self.matched(await self._call(cms, self.requests[0]()))
            for one in wanted:
                if one.name not in matched:
                    warn(f"no instance matches {self.name} {one.name}: check its service, labels and clusters.")
        return Exit.OK

    async def _list(self, cms: CmsProcesses, service: str, output: str) -> Exit:
        answer = await self._call(cms, self.requests[0](service=service))
        if is_data(output):
            print_data(answer, output)
        else:
            print_table(self.columns, self.rows(answer))
        return Exit.OK

    async def _delete(self, cms: CmsProcesses, name: str) -> Exit:
        await self._call(cms, self.requests[2](name=name))
        click.echo(f"{self.name} {name} deleted")
        return Exit.OK

    async def _call(self, cms: CmsProcesses, request: Message) -> Any:
        return await cms.call(type(request).__name__.removesuffix("Request"), request)


def _budget_rows(answer: pb.ListBudgetsResponse) -> list[list[str]]:
    counted = {state.name for state in answer.state}
    idle = [_idle_row(one) for one in answer.budget if one.name not in counted]
    return sorted([*map(_budget_row, answer.state), *idle])


def _idle_row(budget: pb.Budget) -> list[str]:
    """The row of a budget that no instance matches."""
    rule = f"min_ready {budget.min_ready}" if budget.min_ready else f"max_unavailable {budget.max_unavailable}"
    return [budget.name, rule, "0", "0", "0", "0", "-", "0"]


def _budget_row(state: pb.BudgetState) -> list[str]:
    held = ",".join(holder.task_id for holder in state.holder) or "-"
    margin = state.available - state.floor
    counts = (state.total, state.floor, state.available, margin)
    return [state.name, state.rule, *map(str, counts), held, str(state.not_ready_total)]


def _windows_row(state: pb.WindowsState) -> list[str]:
    one = state.windows
    subject = f"service {one.service}" if one.service else f"project {one.project}" if one.project else "all"
    hours = ", ".join(f"{h.days or 'mon-sun'} {h.begin}-{h.end}" for h in one.hours) or "always"
    opens = f"; opens {state.open_time.ToDatetime():%Y-%m-%dT%H:%MZ}" if state.HasField("open_time") else ""
    return [one.name, subject, hours, one.zone or "UTC", one.margin or "-", f"{state.message or 'open'}{opens}"]


_BUDGETS = KindCommands(
    "budget",
    pb.Budget,
    (pb.ListBudgetsRequest, pb.PutBudgetRequest, pb.DeleteBudgetRequest),
    (
        "List budgets and their current state.",
        "List budgets and how they stand, of SERVICE or all. A service without a budget is listed as default:SERVICE.",
    ),
    (
        "Set budgets from YAML or JSON.",
        """Set budgets from YAML or JSON, one per document.

        \b
        For example: {name: web, service: web, maxUnavailable: 10%,
                      brief: {maxUnavailable: 50%, within: 15m}}
        """,
    ),
    ("Delete a budget.", "Delete budget NAME; its service falls back to the default budget."),
    ("NAME", "RULE", "TOTAL", "FLOOR", "AVAILABLE", "MARGIN", "HELD", "NOT-READY"),
    _budget_rows,
    lambda answer: {state.name for state in answer.state if state.total},
)
_WINDOWS = KindCommands(
    "windows",
    pb.Windows,
    (pb.ListWindowsRequest, pb.PutWindowsRequest, pb.DeleteWindowsRequest),
    ("List windows, and when they open.", "List windows and how they stand, those that are for SERVICE or all."),
    (
        "Set windows and freezes from YAML or JSON.",
        """Set windows and freezes from YAML or JSON, one per document; each replaces the one of its name.

        \b
        For example: {name: nights, service: web, zone: Europe/Berlin, margin: 30m,
                      hours: [{days: mon-fri, begin: "22:00", end: "06:00"}]}
        """,
    ),
    ("Delete windows.", "Delete the windows and freezes of NAME: they keep nothing waiting any more."),
    ("NAME", "FOR", "HOURS", "ZONE", "MARGIN", "STATE"),
    lambda answer: [_windows_row(state) for state in answer.state],
)


@click.group()
@at_cms
def budget(_: CmsProcesses) -> None:
    """Show and set budgets: how many instances of a service must stay available.

    They are kept by the CMS (cluster management system, `cms serve`), which approves disruptions.
    """


@click.group()
@at_cms
def windows(_: CmsProcesses) -> None:
    """Show and set windows and freezes: when planned work and roll-outs may begin.

    They are kept by the CMS (cluster management system, `cms serve`). Repairs and urgent work need no window.
    """


_BUDGETS.add_commands(budget)
_WINDOWS.add_commands(windows)


@budget.command(short_help="Set one budget.")
@click.argument("name")
@click.option("--service", default="", help="Instances of this service.")
@click.option(
    "-l", "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Instances with this label; repeatable."
)
@click.option("--cluster", multiple=True, help="In this cluster only; repeatable.")
@click.option("--min-ready", default="", metavar="AMOUNT", help="Minimum that must stay available, e.g. 3 or 75%.")
@click.option("--max-unavailable", default="", metavar="AMOUNT", help="Maximum that may be unavailable, e.g. 1 or 10%.")
@click.option(
    "--reject-impossible",
    is_flag=True,
    help="Reject requests that could not be granted even if every instance were ready, instead of letting them wait.",
)
@at_cms
def put(cms: CmsProcesses, labels: tuple[str, ...], **fields: Any) -> None:
    """Set budget NAME, or replace it."""
    wanted = pb.Budget(labels=dict(label.partition("=")[::2] for label in labels), **fields)
    cms.run(_BUDGETS.put(cms, [wanted]), writing=True)


def _messages_in(names: tuple[str, ...], kind: type[M]) -> list[M]:
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


def _with_words(value: Any) -> Any:
    """People write amounts as numbers, too."""
    amounts = ("minReady", "maxUnavailable", "min_ready", "max_unavailable")
    if not isinstance(value, dict):
        return value
    return {
        key: str(one) if key in amounts else _with_words(one) if key == "brief" else one for key, one in value.items()
    }
