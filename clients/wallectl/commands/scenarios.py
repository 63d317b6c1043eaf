"""walle scenarios"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hqcli.formats import LISTS, TEXTS, output_option
from hqcli.sorting import columns_of, sort_key, sort_option
from hqcli.terminal import say
from hqcli.watching import watched
from wallectl.asking import call, call_pages
from wallectl.output import print_if_data, scenario_row, table
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_DECOMMISSION,
    SCENARIO_KIND_PROFILE,
    SCENARIO_KIND_REBOOT,
    SCENARIO_KIND_SWITCH_MAINTENANCE,
    ScenarioKind,
)
from wallepb.v1.service_pb2 import Steering

F = TypeVar("F", bound=Callable[..., Any])

_MOST_LEFT = 100
_HEAD = ("SCENARIO", "STAGE", "TICKET", "HOSTS", "MESSAGE")
_reason = click.option("-m", "--reason", default="", help="Why.")
_why = click.option("-m", "--reason", required=True, help="Why; recorded.")


@click.group()
def scenarios() -> None:
    """Plan work on a switch or on many hosts."""


@scenarios.group()
def add() -> None:
    """Begin planned work."""


@add.command("switch-maintenance")
@click.argument("scenario", default="")
@click.option("--switch", required=True, help="The switch.")
@click.option("--dc", default="", help="Its data centre.")
@click.option("--ticket", required=True, help="The work's reference in an issue tracker; names the scenario.")
@_reason
def switch_maintenance(scenario: str, switch: str, dc: str, ticket: str, reason: str) -> None:
    """Ask for a one-hour window in which the hosts of a switch may be unreachable for some minutes.

    SCENARIO: its name. Default: the ticket.
    """
    name, kind = scenario or ticket, SCENARIO_KIND_SWITCH_MAINTENANCE
    order = pb.AddScenarioRequest(scenario=name, kind=kind, switch=switch, dc=dc, ticket=ticket, reason=reason)
    call("AddScenario", order)
    click.echo(f"scenario {name}: asking for approval; see `walle scenarios get {name}`")


def _wave_options(function: F) -> F:
    """Add the options that all work in waves has."""
    most = "More failed hosts stop it: 3, or 10%. Default: none in the first wave, then 10%."
    options = (
        click.argument("scenario"),
        click.argument("host", nargs=-1),
        click.option("--project", default="", help="Of patterns only hosts of this project; without HOST all of its."),
        click.option("--at-once", "wave_size", default="1", show_default=True, help="Hosts in a wave: 5, or 10%."),
        click.option("--by", "by_domain", type=click.Choice(["rack", "switch", "dc"]), help="One of these in a wave."),
        click.option("--max-failures", default="", metavar="AMOUNT", help=most),
        click.option("--ticket", default="", help="The work's reference in an issue tracker."),
        _reason,
    )
    for option in reversed(options):
        function = option(function)
    return function


@add.command("mass-reboot")
@_wave_options
@click.option("--firmware", is_flag=True, help="Profile the hosts instead of rebooting them.")
@click.option("--verify", type=click.Choice(["none"]), help="none: hosts that nobody reports count as back.")
def mass_reboot(scenario: str, host: tuple[str, ...], firmware: bool, verify: str | None, **given: Any) -> None:
    """Reboot hosts in waves, each with its CMSs' approval.

    HOST: names, or patterns as 'prod-*', which stand for hosts in use.

    A wave begins once every host of the one before is back: none of its checks has failed for a while, somebody has
    reported something of it since, and what was ready there in HQ is ready again. Hosts that are not back 15 min after
    their reboot have failed. Too many of them stop the work: see continue, retry and cancel.
    """
    kind = SCENARIO_KIND_PROFILE if firmware else SCENARIO_KIND_REBOOT
    _add_waves(scenario, kind, host, verify=verify or "", **given)


@add.command()
@_wave_options
def decommission(scenario: str, host: tuple[str, ...], **given: Any) -> None:
    """Take hosts out of use in waves, each with its CMSs' approval; they are free then.

    HOST: names, or patterns as 'prod-*', which stand for hosts in use.
    """
    _add_waves(scenario, SCENARIO_KIND_DECOMMISSION, host, **given)


def _add_waves(scenario: str, kind: ScenarioKind, hosts: tuple[str, ...], **given: Any) -> None:
    order = pb.AddScenarioRequest(scenario=scenario, kind=kind, hosts=hosts)
    for name, value in given.items():
        setattr(order, name, value or "")
    if not hosts and not order.project:
        raise click.UsageError("give hosts, patterns of hosts, or --project")
    call("AddScenario", order)
    count = len(call("GetScenario", pb.GetScenarioRequest(scenario=scenario)).scenario.host)
    size = order.wave_size
    click.echo(f"scenario {scenario}: {count} hosts, {size} at a time; see `walle scenarios get {scenario}`")


@scenarios.command("list")
@click.option("--open", "open_only", is_flag=True, help="Only those that are not over.")
@watched
@sort_option
@output_option(*LISTS)
def list_(open_only: bool, output: str, sort_by: str) -> None:
    """List scenarios."""
    key = sort_key(sort_by or "scenario", columns_of(_HEAD, scenario_row))
    shown = call_pages("ListScenarios", pb.ListScenariosRequest(open=open_only))
    shown.scenarios.sort(key=key)
    if print_if_data(shown, output):
        return
    none = "No work is planned: see `walle scenarios add --help`."
    table([scenario_row(one) for one in shown.scenarios], _HEAD, none)


@scenarios.command()
@click.argument("scenario")
@output_option(*TEXTS)
def get(scenario: str, output: str) -> None:
    """Show a scenario, and whose approval it waits for."""
    shown = call("GetScenario", pb.GetScenarioRequest(scenario=scenario))
    if print_if_data(shown, output):
        return
    table([scenario_row(shown.scenario)], _HEAD)
    for host in shown.scenario.host:
        if host.not_needed:
            say(f"{host.name}: no approval needed: {host.not_needed}")
        if host.problem:
            say(f"{host.name}: {host.problem}")
        for one in host.agreed:
            say(f"{host.name}: {one.cms}: {one.by} agreed: {one.reason}")
    for line in shown.blocking:
        say(line)
    left = [host.name for host in shown.scenario.host if not host.outcome and not host.operation_id]
    if left and shown.scenario.kind != SCENARIO_KIND_SWITCH_MAINTENANCE:
        more = f" and {len(left) - _MOST_LEFT} more" if len(left) > _MOST_LEFT else ""
        say(f"not begun: {' '.join(left[:_MOST_LEFT])}{more}")


@scenarios.command()
@click.argument("scenario")
@click.option("--project", required=True, help="Project whose hosts are meant; its owners agree for them.")
@click.option("--refuse", is_flag=True, help="Refuse instead of agreeing.")
@click.option("-m", "--reason", required=True, help="Why; recorded.")
def agree(scenario: str, project: str, refuse: bool, reason: str) -> None:
    """Agree for the hosts of a project whose CMSs cannot be asked."""
    order = pb.AgreeScenarioRequest(scenario=scenario, project=project, refused=refuse, reason=reason)
    call("AgreeScenario", order)
    click.echo(f"scenario {scenario}: {'refused' if refuse else 'agreed'} for {project}")


@scenarios.command()
@click.argument("scenario")
@_reason
def done(scenario: str, reason: str) -> None:
    """Report that the work is done: the hosts go back to automation."""
    call("EndScenario", pb.EndScenarioRequest(scenario=scenario, done=True, reason=reason))
    click.echo(f"scenario {scenario}: done")


@scenarios.command()
@click.argument("scenario")
@_reason
def cancel(scenario: str, reason: str) -> None:
    """Cancel the work."""
    call("EndScenario", pb.EndScenarioRequest(scenario=scenario, done=False, reason=reason))
    click.echo(f"scenario {scenario}: cancelled")


@scenarios.command()
@click.argument("scenario")
@_why
def pause(scenario: str, reason: str) -> None:
    """Begin no further wave; what is in work ends."""
    _steer(scenario, pb.STEERING_PAUSE, reason, "paused")


@scenarios.command("continue")
@click.argument("scenario")
@_why
def continue_(scenario: str, reason: str) -> None:
    """Begin the next wave; hosts that failed go back to automation."""
    _steer(scenario, pb.STEERING_CONTINUE, reason, "goes on")


@scenarios.command()
@click.argument("scenario")
@_why
def retry(scenario: str, reason: str) -> None:
    """Do the work again on the hosts that failed, then go on."""
    _steer(scenario, pb.STEERING_RETRY, reason, "tries the failed hosts again")


def _steer(scenario: str, steering: Steering, reason: str, done: str) -> None:
    call("SteerScenario", pb.SteerScenarioRequest(scenario=scenario, steering=steering, reason=reason))
    click.echo(f"scenario {scenario}: {done}")
