"""get and find: instances as they are, and objects of other kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hqcli.exits import Exit
from hqcli.formats import FORMATS, output_option, print_data
from hqctl.asking.options import is_everything, is_meant, selecting, selecting_by_options, strong_option
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.output.rows import Showing, showing
from hqctl.output.sources import merged_sources, not_of, tell_unknown_services, warn_of
from hqkinds.names import WORDS as KIND_WORDS
from hqkinds.names import kind_named
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client


_AT_HELP = "As the recorder knew them then: 2h (ago), 03:10, ISO 8601; see `hqctl history find`."


class FindCommand(click.Command):
    """`find`, which asks the recorder if it is about a time."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if _is_about_a_time(args):
            from hqctl.commands.history import find as find_then

            return find_then.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


class GetCommand(click.Command):
    """`get`, which is another command if its first word is a kind, or it is about a time."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        kind = kind_named(args[0]) if args else None
        if kind is not None:
            from hqctl.commands.kinds import get_kind

            return get_kind(kind).make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        rest = args[1:] if args and args[0] in ("instance", "instances") else args
        if _is_about_a_time(args):
            from hqctl.commands.history import get as get_then

            return get_then.make_context(info_name, rest, parent, **extra)
        context = super().make_context(info_name, rest, parent, **extra)
        ids = context.params.get("ids") or ()
        if rest is args and ids and kind_named(ids[0]):
            raise click.UsageError(f"write the kind first: hqctl get {ids[0]} …, then options and names", context)
        return context


def _is_about_a_time(args: list[str]) -> bool:
    return any(word == "--at" or word.startswith("--at=") for word in args) and not {"-h", "--help"} & {*args}


def _complete_kind(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    return [] if ctx.params.get("ids") else [word for word in KIND_WORDS if word.startswith(incomplete)]


@click.command(cls=GetCommand)
@click.argument("ids", nargs=-1, metavar="[KIND] [NAME]...", shell_complete=_complete_kind)
@selecting_by_options
@showing
@strong_option
@output_option(*FORMATS)
@click.option("--at", metavar="TIME", expose_value=False, help=_AT_HELP)
@with_session
def get(
    session: HqctlSession, ids: tuple[str, ...], where: pb.InstanceFilter, how: Showing, strong: bool, output: str
) -> None:
    """Show instances by id; without ids, all that match the options (like find).

    KIND, the first word, is instances (the default), budgets, windows, tasks (the CMS's) or projects (Wall-E's);
    `hqctl get KIND --help` has its options. An instance of such a name: `hqctl get instance budgets`.

    `-o yaml` prints what `hqctl apply -f` takes: edit and apply it; a concurrent change by somebody else
    is detected.
    """
    if ids:
        session = session.for_cluster(where)
        if not is_everything(where):
            raise click.UsageError("give either ids or selection options, not both")

    async def work(client: Client) -> Exit:
        if not ids:
            return await _list(session, client, where, how, strong, output)
        answers, worst = await _get_each(session, client, ids, strong)
        instances = [answer.instance for answer in answers]
        sources = merged_sources(answer.sources for answer in answers)
        if wrong := not_of([session.cluster], sources):
            complain(wrong)
            return Exit.REFUSED
        if len(ids) == 1 and instances and (output == "json" or output.startswith("jsonpath=")):
            print_data(instances[0], output)
        elif instances:
            how.show(instances, sources, output)
        warn_of(sources)
        return worst

    session.run(work)


@click.command(cls=FindCommand)
@selecting
@showing
@strong_option
@output_option(*FORMATS)
@click.option("--at", metavar="TIME", expose_value=False, help=_AT_HELP)
@with_session
def find(session: HqctlSession, where: pb.InstanceFilter, how: Showing, strong: bool, output: str) -> None:
    """List the instances that match all of the options, in order of their ids.

    REVISION is the one that should be READY; `v2(now:v1)` means that v1 is ready instead. HEARTBEAT is the time
    since the last report of an agent of the instance.
    """

    async def work(client: Client) -> Exit:
        return await _list(session, client, where, how, strong, output)

    session.run(work)


async def _list(
    session: HqctlSession, client: Client, where: pb.InstanceFilter, how: Showing, strong: bool, output: str
) -> Exit:
    pages = await _pages(client, where, None if how.sort_by else how.limit, strong)
    instances = [instance for page in pages for instance in page.instances if is_meant(instance, where)]
    sources = merged_sources(page.sources for page in pages)
    if wrong := not_of([*where.cluster, session.cluster], sources):
        complain(wrong)
        return Exit.REFUSED
    how.show(instances, sources, output)
    if not instances:
        await tell_unknown_services(client, where, sources)
    if pages[-1].next_page_token or (how.limit is not None and len(instances) > how.limit):
        click.echo(f"There are more than {how.limit}: raise --limit.", err=True)
    warn_of(sources)
    return Exit.OK


async def _get_each(
    session: HqctlSession, client: Client, ids: tuple[str, ...], strong: bool
) -> tuple[list[pb.GetInstanceResponse], Exit]:
    """The answers, in order; instances not found are reported and determine the exit code."""
    from hqclient.client import STRONG, HqApiError

    answers, worst = [], Exit.OK
    for instance_id in ids:
        try:
            answers.append(await client.get(instance_id, read=STRONG if strong else None))
        except HqApiError as error:
            if error.code.name not in ("NOT_FOUND", "INVALID_ARGUMENT"):
                raise
            worst = session.tell(error, writing=False)
    return answers, worst


async def _pages(
    client: Client, where: pb.InstanceFilter, limit: int | None, strong: bool
) -> list[pb.FindInstancesResponse]:
    from hqclient.client import STRONG

    pages: list[pb.FindInstancesResponse] = []
    found = 0
    async for page in client.find(where, page_size=limit or 0, read=STRONG if strong else None):
        pages.append(page)
        found += len(page.instances)
        if limit is not None and found >= limit:
            break
    return pages
