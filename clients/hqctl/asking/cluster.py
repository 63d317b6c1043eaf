"""--cluster: which of a gateway's locations to ask."""

from __future__ import annotations

import click

CLUSTER_HEADER = "x-hq-cluster"
NAME_IT = "With hqctl: add --cluster NAME."
_KEY = "hqctl.cluster"


def cluster_option() -> click.Option:
    """The option. All commands have it, so it is not passed as an argument: `named_cluster` returns its value."""
    text = "Cluster to call, where a federation gateway serves several; replicas of other clusters refuse."
    return click.Option(["--cluster"], metavar="NAME", expose_value=False, callback=_remember, help=text)


def naming_cluster(command: click.Command) -> click.Command:
    """Add the option to a command, or to a group's commands, unless a command has it or asks no server."""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            naming_cluster(one)
        return command
    options = {option for param in command.params for option in param.opts}
    if "--server" in options and "--cluster" not in options:
        command.params.append(cluster_option())
    return command


def named_cluster(context: click.Context) -> str:
    """Return the value of --cluster, before or after the name of the command; empty: it was not given."""
    found = context.meta.get(_KEY, "")
    assert isinstance(found, str)
    return found


def name_cluster(context: click.Context, cluster: str) -> None:
    """Set the value as if --cluster had been given."""
    context.meta[_KEY] = cluster


def _remember(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        name_cluster(context, value)
