"""get KIND; budget and windows: what must remain of services during work, and when work may begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from google.protobuf.message import Message

from cmspb.v1 import cms_pb2 as pb
from hqcli.documents import BadDocument, documents_in, texts
from hqcli.exits import Exit
from hqcli.formats import FORMATS, TEXTS, is_data, output_option, print_data, print_items, print_yaml
from hqcli.sorting import sort_key, sort_option
from hqcli.terminal import print_table, warn
from hqcli.watching import watched
from hqctl.asking.cms import AT, CmsProcesses, ControllerProcesses, at_cms
from hqctl.asking.session import complain
from hqkinds.cms import BUDGET, WINDOWS
from hqkinds.kind import Kind

M = TypeVar("M", bound=Message)


def get_kind(kind: Kind) -> click.Command:
    """`get KIND`: all of them, or those named."""

    @click.command("get", help=f"Show {kind.plural}, all or those of these names.")
    @click.argument("names", nargs=-1, metavar="[NAME]...")
    @watched
    @sort_option
    @click.option("--no-headers", is_flag=True, help="Omit the header line of the table.")
    @output_option(*FORMATS)
    @AT[kind.controller]
    def get(
        processes: ControllerProcesses, names: tuple[str, ...], sort_by: str, no_headers: bool, output: str
    ) -> None:
        key = sort_key(sort_by, kind.values_by_column()) if sort_by else None

        async def work() -> Exit:
            items = kind.items(await processes.call_pages(kind.method, kind.request()))
            items = sorted(items, key=key) if key else items
            by_name = {kind.name_of(item): item for item in items}
            chosen = [by_name[name] for name in names if name in by_name] if names else list(items)
            missing = [name for name in names if name not in by_name]
            for name in missing:
                complain(f"there is no {kind.name} {name}: `hqctl get {kind.plural}` lists them")
            _print_kind(kind, chosen, output, is_one=len(names) == 1, headers=not no_headers)
            return Exit.NOT_FOUND if missing else Exit.OK

        processes.run(work())

    return get


def _print_kind(kind: Kind, items: Sequence[Any], output: str, *, is_one: bool, headers: bool) -> None:
    if not items:
        click.echo(f"No {kind.name} matches.", err=True)
    elif output == "yaml":
        print_yaml(items)
    elif is_data(output):
        print_data(items[0], output) if is_one else print_items(items, (), output)
    elif output == "name":
        click.echo("\n".join(map(kind.name_of, items)))
    else:
        is_wide = output == "wide"
        print_table(kind.heads(wide=is_wide), kind.rows(items, wide=is_wide), headers=headers)


@dataclass(frozen=True, slots=True)
class KindCommands:
    """A kind of settings of the CMS: how commands call, list, set and delete it.

    Attributes:
        kind: how it is listed; its name is printed, and is the name of the field in Put requests.
        message: the type of one setting.
        requests: types of the Put and the Delete request.
        list_help, apply_help, delete_help: what the commands do; each begins with its short help.
        matched: in the answer of List, the names of settings that match an instance; None: they need not.
    """

    kind: Kind
    message: type[Message]
    requests: tuple[Any, Any]
    list_help: tuple[str, str]
    apply_help: tuple[str, str]
    delete_help: tuple[str, str]
    matched: Callable[[Any], set[str]] | None = None

    def add_commands(self, group: click.Group) -> None:
        """Add `list`, `apply` and `delete`."""

        @group.command(name="list", short_help=self.list_help[0], help=self.list_help[1])
        @click.argument("service", default="")
        @watched
        @sort_option
        @output_option(*TEXTS)
        @at_cms
        def list_(cms: CmsProcesses, service: str, sort_by: str, output: str) -> None:
            key = sort_key(sort_by or "name", self.kind.values_by_column())
            cms.run(self._list(cms, service, key, output))

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
            await self._call(cms, self.requests[0](**{self.kind.name: one}))
            click.echo(f"{self.kind.name} {one.name} set")
        if self.matched is not None:
            matched = self.matched(await cms.call_pages(self.kind.method, self.kind.request()))
            for one in wanted:
                if one.name not in matched:
                    warn(f"no instance matches {self.kind.name} {one.name}: check its service, labels and clusters.")
        return Exit.OK

    async def _list(self, cms: CmsProcesses, service: str, key: Callable[[Any], Any], output: str) -> Exit:
        answer = await cms.call_pages(self.kind.method, self.kind.request(service=service))
        answer.state.sort(key=key)
        if is_data(output):
            print_data(answer, output)
        else:
            print_table(self.kind.heads(), self.kind.rows(sorted(self.kind.items(answer), key=key)))
        return Exit.OK

    async def _delete(self, cms: CmsProcesses, name: str) -> Exit:
        await self._call(cms, self.requests[1](name=name))
        click.echo(f"{self.kind.name} {name} deleted")
        return Exit.OK

    async def _call(self, cms: CmsProcesses, request: Message) -> Any:
        return await cms.call(type(request).__name__.removesuffix("Request"), request)


_BUDGETS = KindCommands(
    BUDGET,
    pb.Budget,
    (pb.PutBudgetRequest, pb.DeleteBudgetRequest),
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
    lambda answer: {state.name for state in answer.state if state.total},
)
_WINDOWS = KindCommands(
    WINDOWS,
    pb.Windows,
    (pb.PutWindowsRequest, pb.DeleteWindowsRequest),
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
@click.option("--brief", default="", metavar="AMOUNT", help="The same while only brief work takes them away, e.g. 50%.")
@click.option(
    "--within", default="", metavar="SPAN", help="Work is brief that takes a host away for this long at most."
)
@click.option(
    "--reject-impossible",
    is_flag=True,
    help="Reject requests that could not be granted even if every instance were ready, instead of letting them wait.",
)
@at_cms
def put(cms: CmsProcesses, labels: tuple[str, ...], brief: str, within: str, **fields: Any) -> None:
    """Set budget NAME, or replace it."""
    wanted = pb.Budget(labels=dict(label.partition("=")[::2] for label in labels), **fields)
    if brief or within:
        wanted.brief.max_unavailable, wanted.brief.within = brief, within
    cms.run(_BUDGETS.put(cms, [wanted]), writing=True)


def _messages_in(names: tuple[str, ...], kind: type[M]) -> list[M]:
    """Messages of one kind from files. Exits, and says what is wrong, if one of them cannot be read."""
    from hqcli.shape import fill_message

    bad: list[str] = []
    messages: list[M] = []
    try:
        documents = [one for name, text in texts(names) for one in documents_in(name, text, bad)]
    except BadDocument as error:
        raise click.UsageError(str(error)) from error
    for place, value in documents:
        messages.append(kind())
        bad += [f"{place}: {fault}" for fault in fill_message(_with_words(value), messages[-1])]
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
