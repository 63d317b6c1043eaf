"""edit: change an instance in an editor."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hqcli.exits import Exit, exit_of
from hqcli.formats import as_dict, yaml_text
from hqctl.asking.failures import sentence
from hqctl.asking.session import HqctlSession, complain, with_session
from hqctl.manifests.merging import Contradiction, merge_three_way
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from hqclient.client import Client, HqApiError

HEAD = """\
# Edit, save and quit; quit without changes to cancel.
# Status and times are omitted: agents and HQ write them.
"""


@dataclass(slots=True)
class EditDraft:
    """An instance under edit.

    Attributes:
        file: where the text is while the editor is open, and afterwards if it could not be stored.
        base: the instance that the text was made from.
    """

    file: Path
    base: instance_pb2.Instance

    def write(self, data: dict[str, Any], complaint: str = "") -> None:
        """Write the text for the editor, below the complaint about the text before, if any."""
        told = "".join(f"# {line}\n" for line in complaint.splitlines())
        self.file.write_text(f"{HEAD}{told}{yaml_text(data)}", encoding="utf-8")

    def text(self) -> str:
        """The text without the comments at its head."""
        lines = self.file.read_text(encoding="utf-8").splitlines(keepends=True)
        while lines and lines[0].startswith("#"):
            lines.pop(0)
        return "".join(lines)

    def complain(self, complaint: str) -> None:
        """Put a complaint above the text as it is."""
        told = "".join(f"# {line}\n" for line in complaint.splitlines())
        self.file.write_text(f"{HEAD}{told}{self.text()}", encoding="utf-8")


@click.command()
@click.argument("instance_id", metavar="INSTANCE")
@with_session
def edit(session: HqctlSession, instance_id: str) -> None:
    """Edit meta and spec of an instance in VISUAL, EDITOR, or a default editor.

    Concurrent changes by others are merged; if both changed the same field, you see it and decide.
    A text that cannot be stored is kept in a file, whose name is shown.
    """

    async def work(client: Client) -> Exit:
        base = (await client.get(instance_id)).instance
        handle, name = tempfile.mkstemp(prefix=f"hqctl-{instance_id}-", suffix=".yaml")
        os.close(handle)
        draft = EditDraft(Path(name), base)
        draft.write(editable(base))
        return await _edit_until_stored(client, draft)

    session.run(work, writing=True)


def editable(instance: instance_pb2.Instance) -> dict[str, Any]:
    """Return the part of an instance that people may change, with the version that their change is for."""
    from hqcli.instances import without_what_hq_sets

    copy = instance_pb2.Instance()
    copy.CopyFrom(instance)
    return as_dict(without_what_hq_sets(copy))


async def _edit_until_stored(client: Client, draft: EditDraft) -> Exit:
    """Reopen the editor until the text is stored, abandoned or beyond repair."""
    before = draft.text()
    refused = Exit.OK  # why the text in the file was not stored
    while True:
        _open_editor(draft.file)
        if draft.text() == before:
            return _give_up(draft, refused)
        fault = await _attempt(client, draft)
        if fault is None:
            draft.file.unlink()
            return Exit.OK
        refused = fault.code
        if not fault.mendable:
            return _keep_draft(draft, fault.complaint, refused)
        draft.complain(fault.complaint)
        if not _asks_again(fault.complaint):
            return _keep_draft(draft, "", refused)
        before = draft.text()


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a text was not stored; `mendable`: another edit can help."""

    complaint: str
    code: Exit
    mendable: bool = True


async def _attempt(client: Client, draft: EditDraft) -> _Fault | None:
    from hqclient.client import HqApiError

    try:
        await store(client, draft.base, _parse_instance(draft.text(), draft.base.meta.id))
    except _BadEdit as fault:
        return _Fault(str(fault), Exit.REFUSED)
    except Contradiction as fault:
        return _Fault(await _rebase_draft(client, draft, fault), Exit.CONFLICT)
    except HqApiError as error:
        mendable = error.code.name in ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
        return _Fault(sentence(error, writing=True), exit_of(error, writing=True), mendable)
    return None


class _BadEdit(Exception):
    """The text is not an instance, or is a different one."""


def _parse_instance(text: str, instance_id: str) -> instance_pb2.Instance:
    import yaml

    from hqcli.documents import BadDocument
    from hqcli.instances import parse_text

    try:
        (wanted,) = parse_text(text)
    except BadDocument as fault:
        raise _BadEdit(str(fault)) from None
    except (ValueError, yaml.YAMLError):
        raise _BadEdit("expected exactly one document: the instance") from None
    if wanted.meta.id != instance_id:
        raise _BadEdit(f"meta.id: an instance cannot be renamed; it is {instance_id}")
    return wanted


async def store(client: Client, base: instance_pb2.Instance, wanted: instance_pb2.Instance) -> None:
    """Store `wanted`; what others changed meanwhile is merged in. Raises Contradiction, HqApiError."""
    from hqclient.client import HqApiError

    while isinstance(stored := await _try_update(client, wanted), HqApiError):
        newer = pb.ReadOptions(min_version=stored.current_version or 0)
        theirs = (await client.get(base.meta.id, read=newer)).instance
        if theirs.meta.version == wanted.meta.version:
            raise stored  # no newer version can be read, so there is nothing to merge
        wanted = _merge(base, wanted, theirs)
        base = theirs
        click.echo(f"{base.meta.id} changed meanwhile (now version {base.meta.version}): merged.", err=True)
    outcome = "unchanged" if stored.meta.version == wanted.meta.version else "edited"
    click.echo(f"{base.meta.id} {outcome} (version {stored.meta.version})")


async def _try_update(client: Client, wanted: instance_pb2.Instance) -> instance_pb2.Instance | HqApiError:
    """The instance as stored, or the error that somebody else has changed it meanwhile."""
    from hqclient.client import HqApiError

    try:
        return (await client.update(wanted, fields=("*",))).instance
    except HqApiError as error:
        if error.code.name != "ABORTED":
            raise
        return error


def _merge(
    base: instance_pb2.Instance, ours: instance_pb2.Instance, theirs: instance_pb2.Instance
) -> instance_pb2.Instance:
    from google.protobuf.json_format import ParseDict

    sides = [editable(one) for one in (base, ours, theirs)]
    for side in sides:
        side["meta"].pop("version", None)
    result = ParseDict(merge_three_way(*sides), instance_pb2.Instance())
    result.meta.version = theirs.meta.version
    return result


async def _rebase_draft(client: Client, draft: EditDraft, fault: Contradiction) -> str:
    """Apply both changes to the newest version; the returned message says what others wrote in the same fields."""
    from hqctl.commands.diffing import unified_diff

    theirs = (await client.get(draft.base.meta.id)).instance
    changed = [line for line in list(unified_diff(draft.base, theirs, "", ""))[2:] if line.startswith(("+", "-"))]
    draft.base = theirs
    fault.ours_first["meta"]["version"] = str(theirs.meta.version)
    draft.write(fault.ours_first)
    told = "\n".join(changed)
    return f"Conflict: somebody else also changed {', '.join(fault.fields)}. Saving again overwrites that:\n{told}"


def _asks_again(complaint: str) -> bool:
    """Whether to reopen the editor. Only a person at a terminal can say yes."""
    complain(complaint)
    return sys.stdin.isatty() and click.confirm("Edit again?", default=True, err=True)


def _open_editor(file: Path) -> None:
    try:
        click.edit(filename=str(file), require_save=False)
    except click.ClickException as error:
        complain(f"{error.format_message()}; your text is in {file}. Check EDITOR.")
        raise SystemExit(Exit.REFUSED) from None


def _give_up(draft: EditDraft, refused: Exit) -> Exit:
    if refused is Exit.OK:
        draft.file.unlink()
        click.echo("No changes: nothing was stored.", err=True)
        return Exit.OK
    return _keep_draft(draft, "", refused)


def _keep_draft(draft: EditDraft, complaint: str, code: Exit) -> Exit:
    told = f"{complaint} " if complaint else ""
    complain(f"{told}Your text is kept in {draft.file}; correct it, then `hqctl apply -f {draft.file}`.")
    return code
