"""walle projects automation"""

from __future__ import annotations

from typing import Any

import click
from google.protobuf.duration_pb2 import Duration

from hqcli.terminal import say
from wallectl.asking import call
from wallectl.options import Period, credit_options, credit_words, credits_in, limit_options, limits_in, pair
from wallepb.v1 import service_pb2 as pb


@click.group()
def automation() -> None:
    """Switch a project's automation on and off, and set its limits."""


_which = click.option("--only", type=click.Choice(["healing", "dns"]), default=None, help="One of the two automations.")


@automation.command()
@click.argument("project")
@click.option("--credit-time", type=Period(), default=None, metavar="PERIOD", help="How long credits last, e.g. 1h.")
@credit_options
@_which
@click.option("-m", "--reason", default="", help="Why; recorded.")
@click.option("--yes", is_flag=True, help="Switch on even if a limit would trip at once.")
def enable(
    project: str,
    credit_time: Duration | None,
    only: str | None,
    reason: str,
    yes: bool,
    other: tuple[tuple[str, str], ...],
    **given: Any,
) -> None:
    """Switch automation on; counters start at zero, and credits may exceed the limits for a time.

    Shows first which hosts wait, and which limit would trip.
    """
    credits_ = credits_in(given, other)
    forecast = call("GetForecast", pb.GetForecastRequest(project=project, automation=only or "", credits=credits_))
    for line in forecast.lines:
        say(line)
    if forecast.trips and not yes:
        raise click.UsageError("a limit would trip at once: give credits, or --yes")
    order = pb.SwitchAutomationRequest(project=project, on=True, automation=only or "", credits=credits_)
    order.reason = reason or "switched on by hand"
    if credit_time is not None:
        order.credit_time.CopyFrom(credit_time)
    call("SwitchAutomation", order)
    click.echo(f"project {project}: {only or 'healing and dns'} on")
    for warning in call("GetProject", pb.GetProjectRequest(project=project)).warnings:
        say(f"but: {warning}")


@automation.command()
@click.argument("project")
@_which
@click.option("-m", "--reason", default="", help="Why; recorded.")
def disable(project: str, only: str | None, reason: str) -> None:
    """Switch automation off; running work goes on."""
    text = reason or "switched off by hand"
    call("SwitchAutomation", pb.SwitchAutomationRequest(project=project, on=False, automation=only or "", reason=text))
    click.echo(f"project {project}: {only or 'healing and dns'} off")


@automation.command()
@click.argument("project")
@_which
@credit_options
def forecast(project: str, only: str | None, other: tuple[tuple[str, str], ...], **given: Any) -> None:
    """Show what switching on would do, and what would be done to each waiting host."""
    request = pb.GetForecastRequest(project=project, automation=only or "", credits=credits_in(given, other))
    shown = call("GetForecast", request)
    for line in (*(shown.lines or ["no host is waiting"]), *shown.decisions):
        say(line)
    if shown.credits_needed:
        enough = " ".join(credit_words(shown.credits_needed))
        say(
            f"with credits for all of them: walle projects automation enable --credit-time 1h {enough} -m WHY {project}"
        )


@automation.group()
def limits() -> None:
    """Set limits of automatic work."""


@limits.command("set")
@click.argument("project")
@limit_options
@click.option(
    "--repairs-per-host", multiple=True, metavar="PERIOD:COUNT", help="Repairs of one host, over all checks; 1d:3."
)
@click.option("-m", "--reason", default="", help="Why; recorded.")
def set_limits(
    project: str, reason: str, other: tuple[tuple[str, str], ...], repairs_per_host: tuple[str, ...], **given: Any
) -> None:
    """Set limits as PERIOD:COUNT (--ssh 2h:5 --dns-fixes 1d:5 -o CHECK 1d:10); others stay."""
    wanted = limits_in(given, other)
    if not wanted and not repairs_per_host:
        raise click.UsageError("give at least one limit")
    order = pb.UpdateProjectRequest(project=project, limits=wanted, reason=reason)
    order.max_repairs_per_host.pair.extend(map(pair, repairs_per_host))
    if not repairs_per_host:
        order.ClearField("max_repairs_per_host")
    call("UpdateProject", order)
    names = [*sorted(wanted), *(["repairs per host"] if repairs_per_host else [])]
    click.echo(f"project {project}: limits of {', '.join(names)} set")
