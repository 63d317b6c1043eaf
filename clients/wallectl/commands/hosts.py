"""walle hosts"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Final

import click

from hqcli.exits import Exit
from hqcli.formats import LISTS, TEXTS, output_option
from hqcli.options import DurationParam, gone_option
from hqcli.sorting import columns_of, sort_key, sort_option
from hqcli.terminal import say
from hqcli.watching import watched
from wallectl.asking import call, call_pages, complain
from wallectl.commands.hosts_import import import_
from wallectl.options import kind_named
from wallectl.output import HOST_HEAD, host_lines, host_row, print_if_data, table
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_FREE,
    HOST_STATE_MAINTENANCE,
    HOST_STATE_PROBATION,
    HOST_STATUS_READY,
    OUTCOME_DONE,
    Finished,
    HostStatus,
    Location,
)

_LOOK_EVERY_S: Final = 0.5
_STATES = {
    "free": HOST_STATE_FREE,
    "assigned": HOST_STATE_ASSIGNED,
    "maintenance": HOST_STATE_MAINTENANCE,
    "probation": HOST_STATE_PROBATION,
}
_STATUSES = {name.removeprefix("HOST_STATUS_").lower(): value for name, value in HostStatus.items() if value}
_ignore_cms = click.option("--ignore-cms", is_flag=True, help="Do not ask any CMS.")
_reason = click.option("-m", "--reason", default="", help="Why.")


@click.group()
def hosts() -> None:
    """Show, add, prepare, repair, move and remove hosts. HOST is a name or an inventory number."""


@hosts.command("list")
@click.option("--project", default="", help="Only hosts of this project.")
@click.option("--dc", default="", help="Only hosts in this data centre.")
@click.option("--rack", default="", help="Only hosts in this rack.")
@click.option("--switch", default="", help="Only hosts behind this switch.")
@click.option("--state", type=click.Choice(list(_STATES)), help="Only hosts in this state.")
@click.option("--status", type=click.Choice(list(_STATUSES)), help="Only hosts with this status.")
@click.option("--check", default="", help="Only hosts where this check fails.")
@click.option("--troubled", is_flag=True, help="Only hosts with a failing check, an operation, or not ready.")
@click.argument("names", nargs=-1)
@watched
@sort_option
@output_option(*LISTS)
def list_(output: str, sort_by: str, state: str | None, status: str | None, **where: Any) -> None:
    """List hosts; NAMES are patterns with `*`."""
    where |= {"state": _STATES[state] if state else None, "status": _STATUSES[status] if status else None}
    key = sort_key(sort_by or "host", columns_of(HOST_HEAD, host_row))
    shown = call_pages("ListHosts", pb.ListHostsRequest(**where))
    shown.hosts.sort(key=key)
    if print_if_data(shown, output):
        return
    none = "No host matches." if any(where.values()) else "There are no hosts yet: add one with `walle hosts add HOST`."
    table([host_row(one) for one in shown.hosts], HOST_HEAD, none)


hosts.add_command(import_)


@hosts.command()
def sites() -> None:
    """Print where hosts stand, as YAML for the CMS's --sites file."""
    places = {one.host.name: _place(one.host.location) for one in call_pages("ListHosts", pb.ListHostsRequest()).hosts}
    click.echo("hosts:" if any(places.values()) else "hosts: {}")
    for name, place in sorted(places.items()):
        if place:
            click.echo(f"  {json.dumps(name)}: {json.dumps(place)}")


def _place(location: Location) -> dict[str, str]:
    named = {name: getattr(location, name) for name in ("dc", "rack", "switch")}
    return {name: value for name, value in named.items() if value}


@hosts.command()
@click.argument("host")
@output_option(*TEXTS)
@gone_option("--json", instead="write -o json", is_flag=True)
def get(host: str, output: str) -> None:
    """Show a host: its checks, what would be done, what is in the way."""
    shown = call("GetHost", pb.GetHostRequest(host=host))
    if not print_if_data(shown, output):
        say("\n".join(host_lines(shown)))


@hosts.command()
@click.argument("host")
@click.option("--project", required=True, help="Its project.")
@click.option("--inventory", type=int, default=0, help="Inventory number.")
@click.option(
    "-S",
    "--state",
    type=click.Choice(["free", "assigned"]),
    default="assigned",
    show_default=True,
    help="assigned: Wall-E looks after it; free: nothing runs there.",
)
@click.option("--dc", default="", help="Data centre.")
@click.option("--rack", default="", help="Rack.")
@click.option("--switch", default="", help="Switch.")
@click.option("--bmc", default="", metavar="HOST[:PORT]", help="Management controller.")
@click.option("--address", multiple=True, help="Address that its name should resolve to; repeatable.")
@click.option(
    "--preordered",
    is_flag=True,
    help="The host was ordered but is not in use yet: it stays free unless you give --prepare.",
)
@click.option("--prepare", is_flag=True, help="With --preordered: take it into use.")
@_ignore_cms
def add(host: str, state: str, dc: str, rack: str, switch: str, **given: Any) -> None:
    """Add a host that is in the inventory, by its name or number.

    An assigned one is prepared first, with its CMSs' approval; for a free one nobody is asked. If you may import it, it
    is imported with --inventory, --bmc, --address, --dc, --rack and --switch.
    """
    location = Location(dc=dc, rack=rack, switch=switch)
    call("AddHost", pb.AddHostRequest(host=host, state=_STATES[state], location=location, **given))
    click.echo(f"host {host} added")


@hosts.command()
@click.argument("host")
@_ignore_cms
@_reason
def prepare(host: str, ignore_cms: bool, reason: str) -> None:
    """Take a host into use."""
    _change(host, pb.HOST_CHANGE_PREPARE, ignore_cms=ignore_cms, reason=reason)


@hosts.command("switch-project")
@click.argument("host")
@click.argument("project")
@click.option("--release", is_flag=True, help="Free it first, with the approval of its current CMSs.")
@_ignore_cms
@_reason
def switch_project(host: str, project: str, release: bool, ignore_cms: bool, reason: str) -> None:
    """Move a host to another project."""
    given: dict[str, Any] = {"project": project, "release": release}
    _change(host, pb.HOST_CHANGE_MOVE, ignore_cms=ignore_cms, reason=reason, **given)


@hosts.command()
@click.argument("host")
@_ignore_cms
@_reason
def remove(host: str, ignore_cms: bool, reason: str) -> None:
    """Remove a host from Wall-E."""
    _change(host, pb.HOST_CHANGE_REMOVE, ignore_cms=ignore_cms, reason=reason)


@hosts.command("set-state")
@click.argument("host")
@click.argument("state", type=click.Choice(["assigned", "maintenance", "probation"]))
@_reason
def set_state(host: str, state: str, reason: str) -> None:
    """Set the state of a host in use."""
    call("SetHostState", pb.SetHostStateRequest(host=host, state=_STATES[state], reason=reason))
    click.echo(f"host {host}: {state}")


@hosts.command("set-ready")
@click.argument("host")
@_reason
def set_ready(host: str, reason: str) -> None:
    """Take a dead or manual host back into automation."""
    call("SetHostState", pb.SetHostStateRequest(host=host, status=HOST_STATUS_READY, reason=reason))
    click.echo(f"host {host}: ready")


@hosts.command()
@click.argument("operation")
@click.argument("host", nargs=-1, required=True)
@click.option("--group", default="", help="Id shared by these operations.")
@_ignore_cms
@click.option("--wait", type=DurationParam(1.0), metavar="SPAN", help="Wait for it; exits with 1 unless done.")
@_reason
def run(operation: str, host: tuple[str, ...], group: str, ignore_cms: bool, wait: float | None, reason: str) -> None:
    """Begin an operation: reboot, profile, redeploy, power-off, change-disk, change-memory, repair-link."""
    kind = kind_named(operation)
    for one in host:
        before = {over.id for over in call("GetHost", pb.GetHostRequest(host=one)).host.history}
        order = pb.StartOperationRequest(host=one, kind=kind, ignore_cms=ignore_cms, reason=reason, group_id=group)
        call("StartOperation", order)
        click.echo(f"host {one}: {operation} requested")
        shown = call("GetHost", pb.GetHostRequest(host=one))
        if shown.host.HasField("operation") and shown.blocked:
            complain(f"host {one}: not begun: {shown.blocked}")
        if wait is not None:
            _wait_for_end(one, before, wait)


def _wait_for_end(host: str, before: set[str], longest_s: float) -> None:
    """Exits with the code of a refusal if the operation was not done."""
    until = time.monotonic() + longest_s
    while (shown := call("GetHost", pb.GetHostRequest(host=host)).host).HasField("operation"):
        if time.monotonic() >= until:
            complain(f"host {host}: not over within {longest_s:g} s: {shown.operation.message or 'no answer yet'}")
            sys.exit(Exit.TIMEOUT)
        time.sleep(_LOOK_EVERY_S)
    ended = next((one for one in shown.history if one.id not in before), Finished())
    say(f"host {host}: {ended.message or 'over'}")
    if ended.outcome != OUTCOME_DONE:
        sys.exit(Exit.REFUSED)


@hosts.command()
@click.argument("host")
@_reason
def cancel(host: str, reason: str) -> None:
    """Cancel an operation whose work has not begun."""
    call("CancelOperation", pb.CancelOperationRequest(host=host, reason=reason))
    click.echo(f"host {host}: cancelled")


@hosts.command()
@click.argument("host")
@click.argument("check")
@click.option("--failing/--fine", required=True)
@click.option("--text", default="", help="Message of the check.")
@click.option("--source", default="", help="In whose name; only operators and administrators may say. Default: you.")
def report(host: str, check: str, failing: bool, text: str, source: str) -> None:
    """Report a check, as a monitoring system would. It fails while any source says so.

    `--fine --source NAME` clears what a source said that does not speak any more (`walle hosts get` shows its name).
    """
    one = pb.CheckReport(name=check, failing=failing, text=text, source=source)
    answer = call("ReportChecks", pb.ReportChecksRequest(hosts=[pb.HostChecks(host=host, check=[one])]))
    if answer.unknown:
        complain(f"host {host} does not exist")
        sys.exit(Exit.NOT_FOUND)
    click.echo(f"host {host}: {check} {'fails' if failing else 'is fine'}")


def _change(host: str, change: Any, **given: Any) -> None:
    call("ChangeHost", pb.ChangeHostRequest(host=host, change=change, **given))
    click.echo(f"host {host}: {pb.HostChange.Name(change).removeprefix('HOST_CHANGE_').lower()} requested")
