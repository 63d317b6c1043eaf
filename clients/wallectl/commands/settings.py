"""walle settings, walle kill"""

from __future__ import annotations

import click

from hqcli.formats import TEXTS, output_option
from hqcli.readable import mended_words
from hqcli.terminal import say
from wallectl.asking import call
from wallectl.output import fuse_lines, print_if_data
from wallepb.v1 import service_pb2 as pb

# Setting: the automation that it switches off; empty: both.
_SETTINGS = {
    "disable_automation": "",
    "disable_healing_automation": "healing",
    "disable_dns_automation": "dns",
}
_reason = click.option("-m", "--reason", default="", help="Why; recorded.")


@click.group()
def settings() -> None:
    """Show and change settings of all projects."""


@settings.command()
@output_option(*TEXTS)
def get(output: str) -> None:
    """Show which process is the leader, what is switched off, and why nothing begins."""
    shown = call("GetSettings", pb.GetSettingsRequest())
    if print_if_data(shown, output):
        return
    say(f"Wall-E {shown.installation}, leader: {shown.acting or 'no process'}")
    for line in fuse_lines(shown.fuse):
        say(line)
    if shown.stopped:
        say(f"nothing begins at this process: {shown.stopped}")
    if shown.mended:
        say(mended_words(shown.mended, "this process", "its store"))


@settings.command("set")
@click.argument("setting", type=click.Choice(list(_SETTINGS)))
@click.argument("value", type=bool)
@_reason
def set_switch(setting: str, value: bool, reason: str) -> None:
    """Switch the automation of all projects: `disable_automation false` switches it on again. For admins."""
    order = pb.SwitchAutomationRequest(automation=_SETTINGS[setting], on=not value)
    order.reason = reason or f"{setting} {str(value).lower()}"
    call("SwitchAutomation", order)
    click.echo(f"{setting}: {str(value).lower()}")


@click.command()
@_reason
def kill(reason: str) -> None:
    """Begin nothing more, in any project; work that is running is completed.

    Without the store, send SIGUSR1 to the processes, or create their --stop-file.
    """
    call("Freeze", pb.FreezeRequest(frozen=True, reason=reason))
    click.echo("nothing more begins; `walle unkill` takes it back")


@click.command()
@_reason
def unkill(reason: str) -> None:
    """Undo `kill`."""
    call("Freeze", pb.FreezeRequest(frozen=False, reason=reason))
    click.echo("automation may begin work again")


@click.command("open-epoch")
@_reason
def open_epoch(reason: str) -> None:
    """Resume on a store that was restored or replaced, after you have checked its contents."""
    call("OpenEpoch", pb.OpenEpochRequest(reason=reason))
    click.echo("Wall-E resumes on the restored store")
