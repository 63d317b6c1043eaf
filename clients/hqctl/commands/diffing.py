"""diff: what apply would change."""

from __future__ import annotations

import asyncio
import difflib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hqcli.exits import Exit
from hqcli.formats import as_dict, yaml_text
from hqcli.terminal import colour_of, escape_controls
from hqctl.asking.failures import CREATE_IT
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.manifests.filenames import documents_or_exit, filenames
from hqpb.v1 import instance_pb2

if TYPE_CHECKING:
    from hqcli.instances import WrittenInstance
    from hqclient.client import Client, HqApiError

AT_ONCE = 8
DIFFERENT = Exit.REFUSED  # 1, as of diff(1) and kubectl
FAILED = Exit.USAGE
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_NOISE = ("modificationTime", "version", "statusVersion")


@click.command()
@filenames()
@with_session
def diff(session: HqctlSession, names: tuple[str, ...], recursive: bool) -> None:
    """Show what `apply -f` would change, as computed by HQ. Exits with 1 if there are differences.

    Secret descriptors are only counted: HQ shows them to agents and uploaders only.
    """
    documents = documents_or_exit(names, recursive=recursive, code=FAILED)

    async def work(client: Client) -> Exit:
        turns = asyncio.Semaphore(AT_ONCE)
        found = await asyncio.gather(*(_diff_document(client, turns, document) for document in documents))
        return _print_diffs(session, documents, found)

    session.run(work)


def _print_diffs(session: HqctlSession, documents: list[WrittenInstance], found: list[list[str] | HqApiError]) -> Exit:
    worst = Exit.OK
    for document, one in zip(documents, found, strict=True):
        if isinstance(one, list):
            _print(one)
            worst = max(worst, DIFFERENT if one else Exit.OK)
        else:
            worst = max(worst, FAILED, _tell(session, document, one))
    return worst


def _tell(session: HqctlSession, document: WrittenInstance, error: HqApiError) -> Exit:
    subject = f"{document.place}: {document.instance.meta.id}"
    if error.code.name == "NOT_FOUND" and document.instance.meta.version:
        complain(f"{subject}: {error.message}{CREATE_IT}")
        return FAILED
    return session.tell(error, writing=False, subject=subject)


async def _diff_document(client: Client, turns: asyncio.Semaphore, document: WrittenInstance) -> list[str] | HqApiError:
    from hqclient.client import HqApiError

    wanted = document.instance
    async with turns:
        try:
            now = await _standing(client, wanted.meta.id)
            if now is None and not wanted.meta.version:  # with a version, apply creates nothing either
                after = (await client.create(wanted, validate_only=True)).instance
            else:
                after = (await client.update(wanted, validate_only=True)).instance
        except HqApiError as error:
            return error
    return list(unified_diff(now, after, wanted.meta.id, document.place))


async def _standing(client: Client, instance_id: str) -> instance_pb2.Instance | None:
    from hqclient.client import HqApiError

    try:
        return (await client.get(instance_id)).instance
    except HqApiError as error:
        if error.code.name != "NOT_FOUND":
            raise
        return None


def unified_diff(
    now: instance_pb2.Instance | None, after: instance_pb2.Instance, instance_id: str, place: str
) -> Iterator[str]:
    """The lines of a unified diff of two states of an instance; none: they are the same."""
    old = [] if now is None else comparable(now).splitlines()
    name = f"{instance_id} as stored" if now is not None else f"{instance_id} does not exist"
    return difflib.unified_diff(old, comparable(after).splitlines(), name, f"{instance_id} by {place}", lineterm="")


def comparable(instance: instance_pb2.Instance) -> str:
    """An instance as YAML, without its status and what changes with every write."""
    data: dict[str, Any] = as_dict(instance)
    data.pop("status", None)
    for name in _NOISE:
        data.get("meta", {}).pop(name, None)
    return yaml_text(data)


def _print(lines: list[str]) -> None:
    coloured = colour_of(sys.stdout)
    for line in map(escape_controls, lines):
        colour = _COLOURS.get(line[:1])
        click.echo(click.style(line, fg=colour) if coloured and colour else line)
