"""The command line: what commands there are. Each is imported when it is used, so that help comes at once."""

from __future__ import annotations

import importlib

import click

from clients.hqctl.exits import MEANINGS
from clients.hqctl.naming import naming_cluster
from clients.hqctl.session import connection_options

# Name: module, attribute, help in one line.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "get": ("getting", "get", "Show instances by id."),
    "find": ("getting", "find", "List instances by service, node, labels, readiness (alias: list)."),
    "count": ("counting", "count", "Count instances and those ready, by service, node or revision."),
    "watch": ("following", "watch", "Show instances and their changes as they happen."),
    "why": ("explaining", "why", "Tell why an instance is ready or not."),
    "apply": ("applying", "apply", "Create or replace instances from YAML or JSON."),
    "delete": ("deleting", "delete", "Remove instances."),
    "report": ("reporting", "report", "Play an agent by hand: report the status of a revision."),
    "guard": ("guarding", "guard", "Show, release or force the guard that holds flips back."),
    "status": ("operating", "status", "Show replicas, store and guard."),
    "transitions": ("operating", "transitions", "Show recent flips and recoveries with their receipts."),
    "quarantine": ("operating", "quarantine", "Show records that could not be decoded."),
    "suspend": ("planning", "suspend", "Planned work: call nothing on a node silent for a while."),
    "resume": ("planning", "resume", "End planned work on a node early."),
    "suspensions": ("planning", "suspensions", "List the nodes under planned work."),
}
ALIASES = {"list": "find", "ls": "find"}

EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:3d}  {text}" for code, text in MEANINGS.items())
SERVERS = """\b
Servers: --server HOST:PORT (may be repeated), else those of --context NAME, else
HQ_SERVER (separated by commas), else those of the current context (see `hqctl
config`), else 127.0.0.1:7071. Name all replicas: another one is asked when one
does not answer. NO_COLOR switches colours off."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[name]
        command = getattr(importlib.import_module(f"clients.hqctl.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.command(
    cls=LazyGroup,
    epilog=f"{SERVERS}\n\n{EXIT_CODES}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@connection_options("--timeout", "--request-timeout")
@naming_cluster
@click.version_option(package_name="hq", prog_name="hqctl")
def cli(servers: tuple[str, ...], context: str | None, timeout: float | None, verbose: bool) -> None:
    """Ask HQ, the registry of instances, and tell it what shall be.

    `hqctl COMMAND --help` says more about each command.
    """


if __name__ == "__main__":
    cli()
