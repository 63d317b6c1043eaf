"""apply: create or replace instances from files."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from hqcli.exits import Exit, code_name, exit_of_code
from hqcli.readable import plural
from hqcli.terminal import warn
from hqclient.batches import split_batches
from hqctl.asking.cluster import CLUSTER_HEADER, NAME_IT
from hqctl.asking.failures import CREATE_IT
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.manifests.filenames import documents_or_exit, filenames
from hqctl.manifests.ports import clashes, nodes_with_ports
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqcli.instances import WrittenInstance
    from hqclient.client import Client

_READ_AGAIN = ": read it again and retry"  # HQ's advice to programs
_IN_REQUEST = re.compile(r"\binstance\[\d+\]\.")  # position in a request, which the user never sees
BATCH_ITEMS = 100
OUTCOMES = {
    pb.APPLY_OUTCOME_CREATED: "created",
    pb.APPLY_OUTCOME_UPDATED: "updated",
    pb.APPLY_OUTCOME_UNCHANGED: "unchanged",
}


@click.command()
@filenames()
@click.option(
    "--dry-run",
    is_flag=False,
    flag_value="server",
    default="none",
    type=click.Choice(["none", "server", "client"]),
    help="Store nothing. server (also without a value): HQ validates; client: only parse the files.",
)
@with_session
def apply(session: HqctlSession, names: tuple[str, ...], recursive: bool, dry_run: str) -> None:
    """Create or replace instances from YAML or JSON, one or many, as `get -o yaml` shows them.

    Nothing is sent if any document is invalid. With meta.version in a document, it is stored only if the
    instance is still at that version. Allocation and node are kept if a document has none.
    """
    documents = documents_or_exit(names, recursive=recursive, distinct=True)
    if dry_run == "client":
        for document in documents:
            click.echo(f"{document.instance.meta.id} read (dry run)")
        return

    async def work(client: Client) -> Exit:
        return await _apply(session, client, documents, dry_run=dry_run == "server")

    session.run(work, writing=dry_run == "none")


async def _apply(session: HqctlSession, client: Client, documents: list[WrittenInstance], *, dry_run: bool) -> Exit:
    from hqclient.client import HqApiError

    results: list[pb.ApplyResult] = []
    exits: list[Exit] = []
    for batch in split_batches(documents, BATCH_ITEMS, lambda document: document.instance.ByteSize()):
        _progress(len(results), len(documents))
        try:
            answer = await client.apply([d.instance for d in batch], validate_only=dry_run)
        except HqApiError as error:
            left = plural(len(documents) - len(results), "document")
            return session.tell(error, writing=not dry_run, subject=f"{left} not applied, from {batch[0].place}")
        exits += [tell(d, result, dry_run) for d, result in zip(batch, answer.result, strict=True)]
        results += answer.result
    _progress(len(results), len(documents))
    _sum_up(results)
    with suppress(HqApiError):  # everything is stored: failing to check for warnings is no failure
        await _warn_of_ports(client, documents)
    return worst(exits)


def _progress(done: int, count: int) -> None:
    """Show progress if the results go to a file or pipe while somebody watches the terminal."""
    if count > BATCH_ITEMS and sys.stderr.isatty() and not sys.stdout.isatty():
        click.echo(f"\r{done} of {count} sent", nl=done == count, err=True)


def _sum_up(results: Sequence[pb.ApplyResult]) -> None:
    if len(results) < 2 or not sys.stderr.isatty():
        return
    counted = Counter("failed" if r.HasField("error") else OUTCOMES.get(r.outcome, "stored") for r in results)
    told = ", ".join(f"{count} {word}" for word, count in counted.most_common())
    click.echo(f"{plural(len(results), 'instance')}: {told}.", err=True)


def tell(document: WrittenInstance, result: pb.ApplyResult, dry_run: bool) -> Exit:
    """Print the result of one item: to stdout if it was stored, to stderr if not."""
    name = document.instance.meta.id
    if not result.HasField("error"):
        at = " (dry run)" if dry_run else f" (version {result.version})"
        click.echo(f"{name} {OUTCOMES.get(result.outcome, 'stored')}{at}")
        return Exit.OK
    error = result.error
    field, message = (_IN_REQUEST.sub("", text) for text in (error.field, error.message.rstrip(".")))
    where = f"{field}: " if field and not message.startswith(field) else ""
    code = code_name(error.code)
    is_unsure = error.reason == "OUTCOME_UNKNOWN"
    told = _message_with_advice(message, "" if is_unsure else code, has_version=bool(document.instance.meta.version))
    complain(f"{document.place}: {name}: {where}{told}")
    return Exit.OUTCOME_UNKNOWN if is_unsure else exit_of_code(code)


def _message_with_advice(message: str, code: str, *, has_version: bool) -> str:
    """A message with what to do next."""
    if CLUSTER_HEADER in message:
        return f"{message}. {NAME_IT}"
    if code == "NOT_FOUND" and has_version:
        return message + CREATE_IT
    if message.endswith(_READ_AGAIN):
        told = message.removesuffix(_READ_AGAIN)
        return f"{told}. Get it again and reapply your change, or omit meta.version to overwrite it."
    return f"{message}. Nothing was stored: retry." if code == "UNAVAILABLE" else f"{message}."


def worst(exits: Sequence[Exit]) -> Exit:
    """The exit code for many items: what all failures have in common, else just `refused`."""
    failures = {code for code in exits if code is not Exit.OK}
    return Exit.OK if not failures else failures.pop() if len(failures) == 1 else Exit.REFUSED


async def _warn_of_ports(client: Client, documents: Sequence[WrittenInstance]) -> None:
    """Two instances of a node with one port are legal, and nearly always a mistake."""
    nodes = nodes_with_ports(document.instance for document in documents)
    if not nodes:
        return
    where = pb.InstanceFilter(node_name=nodes)
    fields = ("meta.id", "spec.node_name", "spec.allocation.port")
    found = [i async for page in client.find(where, fields=fields) for i in page.instances]
    ours = {document.instance.meta.id for document in documents}
    for clash in clashes(found):
        if ours.intersection(clash.ids):
            warn(f"{clash.node}: port {clash.port} is allocated to {plural(len(clash.ids), 'instance')}: {clash}")
