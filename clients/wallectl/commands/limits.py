"""walle limits"""

from __future__ import annotations

import click

from hqcli.formats import TEXTS, output_option
from hqcli.terminal import say
from wallectl.asking import call
from wallectl.output import fuse_lines, print_if_data, table
from wallepb.v1 import service_pb2 as pb


@click.group()
def limits() -> None:
    """Show which hosts used up a limit."""


@limits.command()
@click.argument("project", default="")
@output_option(*TEXTS)
def show(project: str, output: str) -> None:
    """Show the limits of a project; without one, the global limits."""
    shown = call("GetLimits", pb.GetLimitsRequest(project=project))
    if print_if_data(shown, output):
        return
    for line in fuse_lines(shown.fuse):
        say(line)
    rows = [(use.counter, use.pair, str(use.used), ",".join(use.hosts[:5]) or "-") for use in shown.usage]
    table(rows, ("COUNTER", "LIMIT", "USED", "HOSTS"))
    for mark in shown.fuse.mark:
        paid = " (credit)" if mark.by_credit else ""
        say(f"{mark.time.ToJsonString()}  {mark.counter}  {mark.host}{paid}")
    for one in shown.fuse.switching[:10]:
        turned = "off" if one.off else "on"
        cleared = f", {one.marks_cleared} uses reset" if one.marks_cleared else ""
        say(f"{one.time.ToJsonString()}  {one.automation} {turned} by {one.by}: {one.reason}{cleared}")
