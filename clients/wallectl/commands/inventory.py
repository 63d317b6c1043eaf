"""walle inventory"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import click
from google.protobuf.json_format import MessageToDict

from hqcli.documents import BadDocument, texts, value_of
from hqcli.exits import Exit
from hqcli.formats import LISTS, output_option, yaml_text
from hqcli.shape import fill_message
from hqcli.sorting import columns_of, sort_key, sort_option
from hqcli.watching import watched
from wallectl.asking import call, call_pages, complain
from wallectl.output import print_if_data, table
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import Machine

_AT_ONCE: Final = 50  # more are refused in one call
_HEAD: Final = ("MACHINE", "NUMBER", "BMC", "ADDRESSES", "PLACE", "PROJECTS")


@click.group()
def inventory() -> None:
    """Show and import machines: what names them, and which projects may add them."""


@inventory.command("list")
@click.option("--project", default="", help="Only machines that this project may add.")
@watched
@sort_option
@output_option(*LISTS)
def list_(project: str, sort_by: str, output: str) -> None:
    """List machines; addresses only of those that you may import."""
    key = sort_key(sort_by or "machine", columns_of(_HEAD, _row))
    shown = call_pages("ListMachines", pb.ListMachinesRequest(project=project))
    shown.machines.sort(key=key)
    if print_if_data(shown, output):
        return
    none = "No machine is listed. Import some with `walle inventory import FILE`."
    table([_row(one) for one in shown.machines], _HEAD, none)


@inventory.command("import")
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
def import_(file: str, dry_run: bool) -> None:
    """Import machines from a YAML or JSON FILE, as `walle inventory export` prints them; `-` is stdin.

    A machine becomes what the file says. Machines that it does not name stay.
    """
    try:
        machines = [one for name, text in texts((file,)) for one in _machines(name, text)]
    except BadDocument as error:
        complain(str(error))
        sys.exit(Exit.USAGE)
    known = {one.name: one for one in call_pages("ListMachines", pb.ListMachinesRequest()).machines}
    changed = [one for one in machines if known.get(one.name) != one]
    for one in changed:
        click.echo(f"machine {one.name}: {'changed' if one.name in known else 'new'}")
    # Unchanged ones as well: hosts may have been added before there was an inventory.
    for first in range(0, 0 if dry_run else len(machines), _AT_ONCE):
        call("ImportMachines", pb.ImportMachinesRequest(machines=machines[first : first + _AT_ONCE]))
    done = "would be imported" if dry_run else "imported"
    click.echo(f"{len(machines)} machines {done}, {len(changed)} of them new or changed")


@inventory.command()
def export() -> None:
    """Print the inventory as YAML, with hosts that are not in it: look at those, then import the file."""
    machines = [*call_pages("ListMachines", pb.ListMachinesRequest()).machines, *_unlisted_machines()]
    shown = [MessageToDict(one) for one in sorted(machines, key=lambda one: one.name)]
    click.echo(yaml_text({"machines": shown}), nl=False)


@inventory.command()
@click.argument("machine")
def remove(machine: str) -> None:
    """Remove a machine that is no host."""
    call("RemoveMachine", pb.RemoveMachineRequest(machine=machine))
    click.echo(f"machine {machine} removed")


def _machines(name: str, text: str) -> list[Machine]:
    """Raises BadDocument."""
    try:
        given: Any = value_of(text)
    except BadDocument as error:
        raise BadDocument(f"{name}: {error}") from None
    if not isinstance(given, dict) or set(given) != {"machines"} or not isinstance(given["machines"], list):
        raise BadDocument(f"{name}: write `machines:` and a list of machines below it")
    found: list[Machine] = []
    for number, one in enumerate(given["machines"]):
        found.append(Machine())
        if faults := fill_message(one, found[-1], f"machines[{number}]"):
            raise BadDocument("\n".join(f"{name}: {fault}" for fault in faults))
    return found


def _unlisted_machines() -> Iterator[Machine]:
    for shown in call_pages("ListHosts", pb.ListHostsRequest()).hosts:
        host = shown.host
        if not host.listed:
            yield Machine(
                name=host.name,
                inventory=host.inventory,
                bmc=host.bmc,
                address=host.address,
                location=host.location,
                project=[host.project],
            )


def _row(machine: Machine) -> tuple[str, ...]:
    place = machine.location
    return (
        machine.name,
        str(machine.inventory or "-"),
        machine.bmc or "-",
        ",".join(machine.address) or "-",
        "/".join(filter(None, (place.dc, place.rack, place.switch))) or "-",
        ",".join(machine.project) or "-",
    )
