"""walle projects"""

from __future__ import annotations

from typing import Any

import click

from hqcli.formats import LISTS, TEXTS, output_option
from hqcli.options import gone_option
from hqcli.sorting import sort_key, sort_option
from hqcli.terminal import say
from hqcli.watching import watched
from hqkinds.walle import PROJECT
from wallectl.asking import call, call_pages
from wallectl.commands.automation import automation
from wallectl.options import kind_named
from wallectl.output import fuse_lines, incident_text, limit_text, print_if_data, table
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.project_pb2 import Cms, IncidentBounds, Notifications, Project, Recipient, Scheme

_MODES = {"replace": pb.CHANGE_MODE_REPLACE, "add": pb.CHANGE_MODE_ADD, "remove": pb.CHANGE_MODE_REMOVE}


_ENDS_HELP = "It lasts until at most this share fails. Default: half of --begins."
_TOKEN_HELP = "Entry under cms in the configuration file whose token this CMS gets (the name comes from the protocol)."


@click.group()
def projects() -> None:
    """Show and change projects: CMSs, limits, automation."""


projects.add_command(automation)


@projects.command("list")
@watched
@sort_option
@output_option(*LISTS)
def list_(output: str, sort_by: str) -> None:
    """List all projects."""
    key = sort_key(sort_by or "project", PROJECT.values_by_column())
    shown = call_pages("ListProjects", pb.ListProjectsRequest())
    shown.projects.sort(key=key)
    if print_if_data(shown, output):
        return
    none = "There are no projects yet: add one with `walle projects add PROJECT`."
    table(PROJECT.rows(shown.projects), PROJECT.heads(), none)


@projects.command()
@click.argument("project")
@output_option(*TEXTS)
@gone_option("--json", instead="write -o json", is_flag=True)
def get(project: str, output: str) -> None:
    """Show a project: CMSs, limits, switches, warnings."""
    shown = call("GetProject", pb.GetProjectRequest(project=project))
    if print_if_data(shown, output):
        return
    say(f"{shown.project.id}: {shown.hosts} hosts, owners {', '.join(shown.project.owners) or 'none'}")
    for cms in shown.project.cms:
        say(f"cms {cms.url} {cms.version}" + (f" max_busy_hosts={cms.max_busy_hosts}" * bool(cms.max_busy_hosts)))
    for counter, limit in sorted(shown.project.limits.items()):
        say(f"limit {counter}: {limit_text(limit)}")
    if shown.project.HasField("incidents"):
        say(incident_text(shown.project.incidents))
    for line in (*fuse_lines(shown.fuse), *(f"warning: {text}" for text in shown.warnings)):
        say(line)


@projects.command()
@click.argument("project")
@click.option("--name", default="", help="Display name.")
@click.option("--owner", multiple=True, help="Identity that may change it; repeatable. Default: you.")
@click.option("--cms", default="", metavar="URL", help="`default`, or a URL.  [default: default]")
@click.option("-v", "--version", default="", metavar="v1.N", help="Version of the protocol.")
@click.option("--tvm-app-id", default="", help=_TOKEN_HELP)
@click.option("--max-busy-hosts", type=int, default=0, help="Default CMS: most hosts under work at a time.")
def add(project: str, name: str, owner: tuple[str, ...], cms: str, **setting: Any) -> None:
    """Add a project."""
    made = Project(id=project, name=name, owners=owner)
    if cms:
        made.cms.append(_cms(cms, setting))
    call("CreateProject", pb.CreateProjectRequest(project=made))
    click.echo(f"project {project} added")


@projects.command()
@click.argument("project")
def remove(project: str) -> None:
    """Remove a project without hosts."""
    call("DeleteProject", pb.DeleteProjectRequest(project=project))
    click.echo(f"project {project} removed")


@projects.command("release-tasks")
@click.argument("project")
@click.option("-m", "--reason", required=True, help="What you found; recorded.")
def release_tasks(project: str, reason: str) -> None:
    """After a restore: delete the project's unknown CMS tasks and free their hosts. Check them first."""
    call("ReleaseTasks", pb.ReleaseTasksRequest(project=project, reason=reason))
    click.echo(f"project {project}: tasks released")


@projects.command("modify-project-cms")
@click.argument("mode", type=click.Choice(list(_MODES)))
@click.argument("project")
@click.option("--cms", required=True, metavar="URL", help="`default`, or a URL.")
@click.option("-v", "--version", default="", metavar="v1.N", help="Version of the protocol, for a URL.")
@click.option("--tvm-app-id", default="", help=_TOKEN_HELP)
@click.option("--max-busy-hosts", type=int, default=0, help="Default CMS: most hosts under work at a time, at least 1.")
def modify_cms(mode: str, project: str, cms: str, **setting: Any) -> None:
    """Replace the CMSs of a project, add one, or remove one."""
    if setting["max_busy_hosts"] < 0:
        raise click.BadParameter("--max-busy-hosts: at least 1")
    order = pb.UpdateProjectRequest(project=project, cms_mode=_MODES[mode], cms=[_cms(cms, setting)])
    call("UpdateProject", order)
    click.echo(f"project {project}: CMS {cms}: {mode}")


@projects.command("modify-owners")
@click.argument("project")
@click.argument("owner", nargs=-1)
def modify_owners(project: str, owner: tuple[str, ...]) -> None:
    """Set the identities that may change a project."""
    call("UpdateProject", pb.UpdateProjectRequest(project=project, set_owners=True, owners=owner))
    click.echo(f"project {project}: owners {', '.join(owner) or 'none'}")


@projects.command("modify-notifications")
@click.argument("project")
@click.option("--info", multiple=True, metavar="ADDRESS", help="Recipient of all notices; repeatable.")
@click.option("--warning", multiple=True, metavar="ADDRESS", help="Recipient of warnings and above; repeatable.")
@click.option("--error", multiple=True, metavar="ADDRESS", help="Recipient of errors and above; repeatable.")
@click.option(
    "--critical",
    multiple=True,
    metavar="ADDRESS",
    help="Recipient of critical notices only (a fuse tripped); repeatable.",
)
def modify_notifications(project: str, **by_severity: tuple[str, ...]) -> None:
    """Set who is notified: mail addresses, or URLs of webhooks."""
    recipients = [
        Recipient(severity=f"SEVERITY_{name.upper()}", address=address)
        for name, addresses in by_severity.items()
        for address in addresses
    ]
    notifications = Notifications(recipient=recipients)
    call("UpdateProject", pb.UpdateProjectRequest(project=project, set_notifications=True, notifications=notifications))
    click.echo(f"project {project}: {len(recipients)} recipients")


@projects.command("modify-scheme")
@click.argument("project")
@click.option("-o", "schemes", nargs=2, multiple=True, metavar="CHECK STEP,STEP", help="Steps of a check, in order.")
def modify_scheme(project: str, schemes: tuple[tuple[str, str], ...]) -> None:
    """Set the repair steps of checks; those not named keep Wall-E's defaults."""
    made = [Scheme(check=check, step=[kind_named(one) for one in steps.split(",")]) for check, steps in schemes]
    call("UpdateProject", pb.UpdateProjectRequest(project=project, set_scheme=True, scheme=made))
    click.echo(f"project {project}: scheme of {len(made)} checks")


@projects.command("modify-incident-bounds")
@click.argument("project")
@click.option("--min-hosts", type=click.IntRange(2, 1000), metavar="COUNT", help="As many fail at least. Default: 3.")
@click.option(
    "--begins", type=click.IntRange(1, 99), metavar="PERCENT", help="More than this share fails. Default: 50."
)
@click.option("--ends", type=click.IntRange(1, 99), metavar="PERCENT", help=_ENDS_HELP)
def modify_incident_bounds(project: str, min_hosts: int | None, begins: int | None, ends: int | None) -> None:
    """Set when hosts of a rack or switch fail together, so that none is repaired; without options the defaults hold."""
    bounds = IncidentBounds(min_hosts=min_hosts, begins_percent=begins, ends_percent=ends)
    call("UpdateProject", pb.UpdateProjectRequest(project=project, incidents=bounds))
    click.echo(f"project {project}: {incident_text(bounds)}")


def _cms(url: str, setting: dict[str, Any]) -> Cms:
    return Cms(
        url=url,
        version=setting["version"],
        tvm_app_id=setting["tvm_app_id"],
        max_busy_hosts=setting["max_busy_hosts"],
    )
