"""walle hosts import"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import click

from hqcli.documents import BadDocument, texts
from hqcli.exits import Exit
from hqcli.terminal import say
from wallectl.asking import WalleProcesses, call_pages, complain
from wallectl.hostfile import HostRow, read_rows
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import Machine

_AT_ONCE: Final = 50  # more are refused in one call
_CONDITIONS: Final = 110  # of one transaction: two for each row, one for each project
_PLACE: Final = re.compile(r"(?:machines|hosts)\[([0-9]+)\]\.?")
_NAMED: Final = re.compile(r"(?:machine|host) (\S+?):? ")


@click.command("import")
@click.argument("file")
@click.option("--project", default="", help="Of rows that name none.")
@click.option("--dry-run", is_flag=True, help="Check everything, print what would change, and change nothing.")
@click.option("--ignore-cms", is_flag=True, help="Ask no CMS about hosts that are added as assigned.")
def import_(file: str, project: str, dry_run: bool, ignore_cms: bool) -> None:
    """Import machines from FILE and add them as hosts; `-` is stdin.

    FILE is CSV whose first row names the columns, or JSON lines or a YAML list with the same names: name, project,
    state (assigned or free), inventory, bmc, address (several with blanks between), dc, rack, switch. Columns that it
    does not have stay as they are. It can be repeated. Everything is checked before anything is changed.
    """
    try:
        ((_, text),) = texts((file,))
        rows = read_rows(text, project=project)
        known = {one.name: one for one in call_pages("ListMachines", pb.ListMachinesRequest()).machines}
        batches = [(part, _batch(part, known, ignore_cms)) for part in _parts(rows)]
    except (BadDocument, ValueError) as error:
        complain(f"{file}: {error}")
        sys.exit(Exit.USAGE)
    walle: WalleProcesses = click.get_current_context().find_root().obj
    walle.run(_import(walle, file, batches, dry_run=dry_run), writing=not dry_run)


def _parts(rows: Sequence[HostRow]) -> Iterator[Sequence[HostRow]]:
    """Split rows into batches that fit one call each, in order."""
    first, projects = 0, set[str]()
    for number, row in enumerate(rows):
        projects.add(row.values["project"])
        count = number + 1 - first
        if count > _AT_ONCE or 2 * count + len(projects) > _CONDITIONS:
            yield rows[first:number]
            first, projects = number, {row.values["project"]}
    if rows:
        yield rows[first:]


def _batch(rows: Sequence[HostRow], known: dict[str, Machine], ignore_cms: bool) -> pb.ImportMachinesRequest:
    """Raises BadDocument."""
    machines = [row.machine(known.get(row.name)) for row in rows]
    return pb.ImportMachinesRequest(machines=machines, hosts=[row.order(ignore_cms=ignore_cms) for row in rows])


async def _import(
    walle: WalleProcesses,
    file: str,
    batches: Sequence[tuple[Sequence[HostRow], pb.ImportMachinesRequest]],
    *,
    dry_run: bool,
) -> Exit:
    from hqclient.errors import HqApiError

    done, total = Counter[str](), sum(len(rows) for rows, _ in batches)
    for is_dry in (True,) if dry_run else (True, False):
        for number, (rows, batch) in enumerate(batches):
            batch.dry_run = is_dry
            try:
                answer = await walle.call("ImportMachines", batch)
            except HqApiError as error:
                left = "" if is_dry or not number else f"; the rows before row {rows[0].number} are imported"
                error.message = f"{file}: {_with_row(error.message, rows)}{left}"
                raise
            if is_dry:
                _print_changes(answer.changes, done)
    word = "would be imported" if dry_run else "imported"
    counts = f"{done['new']} new, {done['changed']} changed, {total - done['new'] - done['changed']} as they were"
    click.echo(f"{total} hosts {word}: {counts}")
    return Exit.OK


def _print_changes(changes: Sequence[pb.MachineChange], done: Counter[str]) -> None:
    for change in changes:
        done["new" if change.project else "changed"] += 1
        say(f"{'+' if change.project else '~'} {change.machine}{f' in {change.project}' if change.project else ''}")
        for line in change.differences:
            say(f"    {line}")


def _with_row(message: str, rows: Sequence[HostRow]) -> str:
    """The server's message with the row in the file: it names the place in its request, or the machine."""
    if place := _PLACE.match(message):
        return f"row {rows[int(place[1])].number}: {message[place.end() :]}"
    named = _NAMED.match(message)
    row = next((one for one in rows if named is not None and one.name == named[1]), None)
    return (
        f"row {row.number}: {message}" if row is not None else f"rows {rows[0].number} to {rows[-1].number}: {message}"
    )
