"""windows: when planned work and roll-outs may begin."""

from __future__ import annotations

import click

from cmspb.v1 import cms_pb2 as pb
from hqcli.exits import Exit
from hqcli.formats import TEXTS, is_data, output_option, print_data
from hqcli.terminal import print_table
from hqctl.asking.cms import CmsProcesses, at_cms
from hqctl.commands.budgets import messages_in

_NAMES = ("NAME", "FOR", "HOURS", "ZONE", "MARGIN", "STATE")


@click.group()
@at_cms
def windows(_: CmsProcesses) -> None:
    """Show and set windows and freezes: when planned work and roll-outs may begin.

    They are kept by the CMS (cluster management system, `cms serve`). Repairs and urgent work need no window.
    """


@windows.command(name="list", short_help="List windows, and when they open.")
@click.argument("service", default="")
@output_option(*TEXTS)
@at_cms
def list_windows(cms: CmsProcesses, service: str, output: str) -> None:
    """List windows and how they stand, those that are for SERVICE or all."""

    async def work() -> Exit:
        answer = await cms.call("ListWindows", pb.ListWindowsRequest(service=service))
        if is_data(output):
            print_data(answer, output)
        else:
            print_table(_NAMES, [_row(state) for state in answer.state])
        return Exit.OK

    cms.run(work())


@windows.command(short_help="Set windows and freezes from YAML or JSON.")
@click.option("-f", "--filename", "names", multiple=True, required=True, help="File, folder, or - for standard input.")
@at_cms
def apply(cms: CmsProcesses, names: tuple[str, ...]) -> None:
    """Set windows and freezes from YAML or JSON, one per document; each replaces the one of its name.

    \b
    For example: {name: nights, service: web, zone: Europe/Berlin, margin: 30m,
                  hours: [{days: mon-fri, begin: "22:00", end: "06:00"}]}
    """
    wanted = messages_in(names, pb.Windows)

    async def work() -> Exit:
        for one in wanted:
            await cms.call("PutWindows", pb.PutWindowsRequest(windows=one))
            click.echo(f"windows {one.name} set")
        return Exit.OK

    cms.run(work(), writing=True)


@windows.command(short_help="Delete windows.")
@click.argument("name")
@at_cms
def delete(cms: CmsProcesses, name: str) -> None:
    """Delete the windows and freezes of NAME: they keep nothing waiting any more."""

    async def work() -> Exit:
        await cms.call("DeleteWindows", pb.DeleteWindowsRequest(name=name))
        click.echo(f"windows {name} deleted")
        return Exit.OK

    cms.run(work(), writing=True)


def _row(state: pb.WindowsState) -> list[str]:
    one = state.windows
    subject = f"service {one.service}" if one.service else f"project {one.project}" if one.project else "all"
    hours = ", ".join(f"{h.days or 'mon-sun'} {h.begin}-{h.end}" for h in one.hours) or "always"
    opens = f"; opens {state.open_time.ToDatetime():%Y-%m-%dT%H:%MZ}" if state.HasField("open_time") else ""
    return [one.name, subject, hours, one.zone or "UTC", one.margin or "-", f"{state.message or 'open'}{opens}"]
