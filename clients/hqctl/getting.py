"""get and find: instances as they are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from clients.hqctl.exits import Exit
from clients.hqctl.formats import FORMATS, as_dict, output_option, print_json, print_yaml
from clients.hqctl.rows import Columns, spans_clusters
from clients.hqctl.selecting import selecting, strong_option
from clients.hqctl.session import Session, connected
from clients.hqctl.sources import merged, warn_of
from clients.hqctl.tables import print_table
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from clients.client import Client


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="INSTANCE...")
@strong_option
@output_option(*FORMATS)
@connected
def get(session: Session, ids: tuple[str, ...], strong: bool, output: str) -> None:
    """Show instances by id.

    `-o yaml` shows what `hqctl apply -f` takes: edit it and apply it, and a change by somebody else in
    between is found out.
    """

    async def work(client: Client) -> Exit:
        answers, worst = await _get_each(session, client, ids, strong)
        instances = [answer.instance for answer in answers]
        sources = merged(answer.sources for answer in answers)
        if output == "json" and len(ids) == 1 and instances:
            print_json(instances[0])
        elif instances:
            show(instances, sources, output)
        warn_of(sources)
        return worst

    session.run(work)


@click.command()
@selecting
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@strong_option
@output_option(*FORMATS)
@connected
def find(session: Session, where: pb.InstanceFilter, limit: int | None, strong: bool, output: str) -> None:
    """List the instances that match all of the options, in order of their ids.

    REVISION is the one wanted READY; `v2(now:v1)` means that v1 is ready in its place. HEARTBEAT is how long
    ago an agent of the instance was heard.
    """

    async def work(client: Client) -> Exit:
        pages = await _pages(client, where, limit, strong)
        instances = [instance for page in pages for instance in page.instances][:limit]
        sources = merged(page.sources for page in pages)
        if instances or output == "json":
            show(instances, sources, output)
        else:
            click.echo("No instance matches.", err=True)
        if pages[-1].next_page_token:
            click.echo(f"There are more than {len(instances)}: raise --limit.", err=True)
        warn_of(sources)
        return Exit.OK

    session.run(work)


def show(instances: list[instance_pb2.Instance], sources: list[pb.Source], output: str) -> None:
    """Print instances in a format of `-o`."""
    match output:
        case "json":
            answer = pb.FindInstancesResponse(instances=instances, sources=sources)
            print_json({"instances": [], **as_dict(answer)})
        case "yaml":
            print_yaml(instances)
        case "name":
            click.echo("\n".join(instance.meta.id for instance in instances))
        case _:
            clusters = (source.cluster for source in sources)
            columns = Columns(wide=output == "wide", cluster=spans_clusters(instances, clusters))
            now_s = time.time()
            rows = [columns.row(instance, now_s) for instance in instances]
            print_table(columns.names, rows, whole=output == "wide")


async def _get_each(
    session: Session, client: Client, ids: tuple[str, ...], strong: bool
) -> tuple[list[pb.GetInstanceResponse], Exit]:
    """The answers, in order; what is not found is told, and makes the exit code."""
    from clients.client import STRONG, HqApiError

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
    from clients.client import STRONG

    pages: list[pb.FindInstancesResponse] = []
    found = 0
    async for page in client.find(where, page_size=limit or 0, read=STRONG if strong else None):
        pages.append(page)
        found += len(page.instances)
        if limit is not None and found >= limit:
            break
    return pages
