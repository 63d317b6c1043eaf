"""The command line: what commands there are. Each is imported when it is used, so that help comes at once."""

from __future__ import annotations

import click

from hqcli.exits import Exit
from hqcli.group import LazyGroup
from hqclient.credential_files import CredentialFiles
from hqctl.asking.cluster import cluster_option, naming_cluster
from hqctl.asking.session import complain, connection_options
from hqctl.examples import with_examples

# Name: module, attribute, help in one line.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "get": ("getting", "get", "Show instances by id; or budgets, windows, tasks, projects."),
    "find": ("getting", "find", "List instances by service, node, readiness (alias: list)."),
    "count": ("counting", "count", "Count instances, by service, node, revision or reason."),
    "watch": ("following", "watch", "Show instances and their changes as they happen."),
    "why": ("explaining", "why", "Show why an instance is ready or not."),
    "describe": ("explaining", "describe", "Show everything about an instance: why, and the object."),
    "apply": ("applying", "apply", "Create or replace instances from YAML or JSON."),
    "diff": ("diffing", "diff", "Show what apply would change."),
    "edit": ("editing", "edit", "Change an instance in an editor."),
    "set": ("setting", "set_", "Change single attributes of instances: their weight."),
    "delete": ("deleting", "delete", "Delete instances."),
    "revision": ("revising", "revision", "Show, put, delete or activate single revisions."),
    "wait": ("waiting", "wait", "Wait until instances are ready or deleted."),
    "report": ("reporting", "report", "Report the status of a revision, as an agent would."),
    "guard": ("orders", "guard", "Show, release or force the guard, which holds back expiries."),
    "epoch": ("store", "epoch", "Show whether HQ trusts the store after it was replaced; confirm it."),
    "status": ("status", "status", "Show what is wrong, since when, why, and what to do next."),
    "top": ("top", "top", "Show services by size, readiness and churn."),
    "events": ("events", "events", "Show recent expiries and recoveries, and how they were decided."),
    "history": ("history", "history", "Show what happened, and instances as of a time (from the recorder)."),
    "quarantine": ("store", "quarantine", "Show records that could not be decoded."),
    "suspend": ("orders", "suspend", "Suspend expiry on a node during planned work."),
    "resume": ("orders", "resume", "End planned work on a node early."),
    "suspensions": ("orders", "suspensions", "List suspended nodes."),
    "secrets": ("secrets", "secrets", "List secrets that services name and that are not their own."),
    "auth": ("auth", "auth", "Show what an identity may call at a server, by which grant, and why not."),
    "token": ("token", "token", "Sign and inspect tokens (JWT) that authenticate a caller."),
    "budget": ("kinds", "budget", "Show and set how many instances of services must stay available."),
    "windows": ("kinds", "windows", "Show and set when planned work may begin."),
    "disruptions": ("disruptions", "disruptions", "Show why tasks wait; control what may be taken down."),
    "config": ("setup", "config", "Show and choose contexts of the config file."),
    "completion": ("hqcli.completion", "completion", "Print the completion script of bash, zsh or fish."),
}
ALIASES = {"list": "find", "ls": "find", "transitions": "events"}

MEANINGS = {
    Exit.OK: "done",
    Exit.REFUSED: "refused or failed (at least one, if there were several); diff: differences found; "
    "status: problems found",
    Exit.USAGE: "usage error; diff: also refused, or not found",
    Exit.NOT_FOUND: "not found: no such instance, revision or node",
    Exit.CONFLICT: "conflict: the instance changed meanwhile, or the id already exists",
    Exit.UNAVAILABLE: "HQ is unreachable or asked to retry later; nothing was stored",
    Exit.OUTCOME_UNKNOWN: "it is unknown whether the write was stored: look before you retry",
    Exit.NOT_ALLOWED: "not authenticated or not authorized, or a credential file cannot be used",
    Exit.TIMEOUT: "timed out before a response, or before the condition was met",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
}
EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:3d}  {text}" for code, text in MEANINGS.items())
SERVERS = """\b
Servers: --server HOST:PORT (repeatable), else those of --context NAME,
else HQ_SERVER (separated by commas), else those of the current context (see
`hqctl config`), else 127.0.0.1:7071. Name all replicas: another one is asked
when one does not respond. NO_COLOR switches colours off."""


@click.command(
    cls=LazyGroup,
    package="hqctl.commands",
    commands_by_name=COMMANDS,
    complain=complain,
    aliases=ALIASES,
    finish=lambda command: naming_cluster(with_examples(command)),
    epilog=f"{SERVERS}\n\n{EXIT_CODES}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@connection_options("--timeout", "--request-timeout")
@click.version_option(package_name="hq-registry", prog_name="hqctl")
def cli(
    servers: tuple[str, ...],
    context: str | None,
    call_timeout: float | None,
    verbose: bool,
    credentials: CredentialFiles,
) -> None:
    """Query and change HQ, the registry of instances.

    A revision expires, that is, becomes not ready, when its agent has been silent for too long.

    See `hqctl COMMAND --help` for each command.
    """


cli.params.append(cluster_option())


if __name__ == "__main__":
    cli()
