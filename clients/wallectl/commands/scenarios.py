"""walle scenarios"""

from __future__ import annotations

import click

from wallectl.asking import call
from wallectl.output import scenario_row, table
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.project_pb2 import SCENARIO_KIND_PROFILE, SCENARIO_KIND_REBOOT, SCENARIO_KIND_SWITCH_MAINTENANCE

_HEAD = ("SCENARIO", "STAGE", "TICKET", "HOSTS", "MESSAGE")
_reason = click.option("-m", "--reason", default="", help="Why.")


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


@add.command("mass-reboot")
@click.argument("scenario")
@click.argument("host", nargs=-1, required=True)
@click.option("--at-once", default=1, show_default=True, help="Hosts in a wave.")
@click.option("--firmware", is_flag=True, help="Profile the hosts instead of rebooting them.")
@click.option("--ticket", default="", help="The work's reference in an issue tracker.")
@_reason
def mass_reboot(scenario: str, host: tuple[str, ...], at_once: int, firmware: bool, ticket: str, reason: str) -> None:
    """Reboot hosts in waves, each with its CMSs' approval.

    A wave begins once every host of the one before is back, that is, none of its checks fails. If one is not back
    15 min after its reboot, no more hosts are rebooted.
    """
    kind = SCENARIO_KIND_PROFILE if firmware else SCENARIO_KIND_REBOOT
    order = pb.AddScenarioRequest(scenario=scenario, kind=kind, hosts=host, at_once=at_once)
    order.ticket, order.reason = ticket, reason
    call("AddScenario", order)
    click.echo(f"scenario {scenario}: {len(host)} hosts, {at_once} at a time; see `walle scenarios get {scenario}`")


@scenarios.command("list")
def list_() -> None:
    """List scenarios."""
    shown = call("ListScenarios", pb.ListScenariosRequest()).scenarios
    none = "No work is planned: see `walle scenarios add --help`."
    table(sorted(scenario_row(one) for one in shown), _HEAD, none)


@scenarios.command()
@click.argument("scenario")
def get(scenario: str) -> None:
    """Show a scenario, and whose approval it waits for."""
    shown = call("GetScenario", pb.GetScenarioRequest(scenario=scenario))
    table([scenario_row(shown.scenario)], _HEAD)
    for host in shown.scenario.host:
        if host.not_needed:
            click.echo(f"{host.name}: no approval needed: {host.not_needed}")
        if host.problem:
            click.echo(f"{host.name}: {host.problem}")
        for one in host.agreed:
            click.echo(f"{host.name}: {one.cms}: {one.by} agreed: {one.reason}")
    for line in shown.blocking:
        click.echo(line)
    left = [host.name for host in shown.scenario.host if not host.outcome and not host.operation_id]
    if left and shown.scenario.kind != SCENARIO_KIND_SWITCH_MAINTENANCE:
        click.echo(f"not begun: {' '.join(left)}")


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
