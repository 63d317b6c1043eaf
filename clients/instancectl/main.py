"""The command line of instancectl."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import NoReturn

import click

from hqcli.options import DurationParam, addresses_in, credential_options
from hqclient.credential_files import BadCredentials, CredentialFiles
from instancectl.containers.restarts import RestartSettings
from instancectl.processes.output import OutputSettings
from instancectl.settings import (
    BadProvider,
    BadSpeaker,
    ProviderSpec,
    RunSettings,
    Speaker,
    parse_provider,
    parse_speaker,
)

FAILED, UNREACHABLE, NOT_AS_WANTED = 1, 3, 4
DEFAULT_DIRECTORY = Path("instance")
DEFAULT_AGENT = Path("/run/instancectl/host-agent.sock")


class Provider(click.ParamType[ProviderSpec]):
    """NAME=dir:PATH or NAME=command:PROGRAM."""

    name = "NAME=KIND:PLACE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> ProviderSpec:
        try:
            return parse_provider(value)
        except BadProvider as error:
            self.fail(str(error), param, ctx)


class Network(click.ParamType[IPv4Network | IPv6Network]):
    """An IP address, or a network as ADDRESS/BITS."""

    name = "ADDRESS"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> IPv4Network | IPv6Network:
        try:
            return ip_network(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid IP address or network: write 127.0.0.1 or 127.0.0.0/8", param, ctx)


class SpeakerOption(click.ParamType[Speaker]):
    """USER=INSTANCE[,INSTANCE]..."""

    name = "USER=INSTANCE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Speaker:
        try:
            return parse_speaker(value)
        except BadSpeaker as error:
            self.fail(str(error), param, ctx)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hq-registry", prog_name="instancectl")
def cli() -> None:
    """Supervise an instance: prepare its revisions, run the READY one, report all of them to HQ."""


_SOME_S = click.FloatRange(min=0, min_open=True)
directory_option = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_DIRECTORY,
    show_default=True,
    help="Directory of the instance, used by nothing else.",
)
server_option = click.option(
    "--server", "servers", multiple=True, envvar="HQ_SERVER", metavar="HOST:PORT", help="A replica of HQ; repeatable."
)


@cli.command(short_help="Supervise an instance until SIGTERM.")
@directory_option
@server_option
@credential_options
@click.option("--instance", "instance_id", default="", help="Id of the instance in HQ.")
@click.option("--node", default="", help="Name of this node.  [default: host name]")
@click.option(
    "--file", type=click.Path(dir_okay=False, path_type=Path), help="File with the desired instance, instead of HQ."
)
@click.option(
    "--host-agent",
    type=click.Path(path_type=Path),
    help=f"Socket of this node's host agent.  [default: without --server {DEFAULT_AGENT}]",
)
@click.option("--secrets", "providers", type=Provider(), multiple=True, help="Provider of secret values; repeatable.")
@click.option(
    "--store", type=click.Path(file_okay=False, path_type=Path), help="Cache of fetched content, shared with others."
)
@click.option(
    "--file-root", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Allow file: sources, below this directory; without it, none are.",
)  # fmt: skip
@click.option(
    "--fetch-from", type=Network(), multiple=True, metavar="ADDRESS",
    help="Allow http(s): sources at this loopback or link-local address or network, too; repeatable.",
)  # fmt: skip
@click.option(
    "--fetch-bytes", type=click.IntRange(1), default=20 << 30, show_default=True, help="Size of the largest source.",
)  # fmt: skip
@click.option(
    "--when-fenced", type=click.Choice(["stop", "keep"]), default="stop", show_default=True,
    help="What to do with the containers when another supervisor of this instance takes over.",
)  # fmt: skip
@click.option(
    "--log-bytes",
    type=click.IntRange(1),
    default=10 << 20,
    show_default=True,
    help="Size at which a container's log is rotated.",
)
@click.option("--log-files", type=click.IntRange(1), default=3, show_default=True, help="Rotated logs to keep.")
@click.option("--restart-first", type=_SOME_S, default=0.5, show_default=True, help="Seconds before the first restart.")
@click.option(
    "--restart-max", type=_SOME_S, default=60.0, show_default=True, help="Longest delay before a restart, in seconds."
)
@click.option("--once", is_flag=True, help="Prepare, remove and report once, start nothing, then exit.")
@click.option("-v", "--verbose", is_flag=True, help="Log debug messages.")
def run(
    *, directory: Path, servers: tuple[str, ...], credentials: CredentialFiles, instance_id: str,
    node: str, file: Path | None,
    host_agent: Path | None, providers: tuple[ProviderSpec, ...], store: Path | None,
    file_root: Path | None, fetch_from: tuple[IPv4Network | IPv6Network, ...], fetch_bytes: int, when_fenced: str,
    log_bytes: int, log_files: int, restart_first: float, restart_max: float, once: bool, verbose: bool,
) -> None:  # fmt: skip
    """Supervise an instance until SIGTERM; SIGHUP reloads the specification at once."""
    addresses = _split(servers)
    if file is None and not instance_id:
        raise click.UsageError("give --file FILE or --instance ID")
    if file is None and host_agent is None and not addresses:
        host_agent = DEFAULT_AGENT
    _log_to_stderr(verbose)
    _supervise(
        RunSettings(
            directory=directory,
            node=node or socket.gethostname(),
            instance_id=instance_id,
            file=file,
            servers=addresses,
            credentials=credentials,
            host_agent=host_agent,
            store=store,
            file_root=Path(os.path.normpath(file_root.absolute())) if file_root else None,
            fetch_from=fetch_from,
            fetch_bytes=fetch_bytes,
            providers=providers,
            when_fenced=when_fenced,
            once=once,
            restarts=RestartSettings(restart_first, restart_max),
            output=OutputSettings(log_bytes, log_files),
        )
    )


def _supervise(settings: RunSettings) -> NoReturn:
    # Imported here: help and mistakes on the command line need no gRPC.
    from instancectl.assembly import run as supervise
    from instancectl.files import Occupied
    from instancectl.housekeeping import WrongDirectory
    from instancectl.state import StateUnreadable

    try:
        done = asyncio.run(supervise(settings))
    except (BadCredentials, Occupied, StateUnreadable, WrongDirectory, OSError) as error:
        _fail(str(error))
    sys.exit(0 if done else FAILED)


@cli.command(short_help="Show the status of a supervisor or host agent.")
@directory_option
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--host-agent", type=click.Path(path_type=Path), help="Show the host agent at this socket instead.")
@click.option(
    "--wait",
    "wait_s",
    type=DurationParam(),
    default=0.0,
    metavar="SPAN",
    help="Wait this long until everything is as desired, e.g. 20s.",
)
def status(directory: Path, output: str, host_agent: Path | None, wait_s: float) -> None:
    """Show the status of the supervisor of a directory, or of a host agent.

    Exits with 3 if there is none, and with 4 if --wait ran out before everything was as desired (for a host agent:
    before everything was reported).
    """
    from hqcli.terminal import print_table
    from instancectl import status as own_status
    from instancectl.control_socket import ask, ask_until
    from instancectl.hostagent import status as agent_status
    from instancectl.layout import Layout

    shown = agent_status if host_agent else own_status
    is_good = agent_status.is_reported if host_agent else own_status.is_as_wanted
    place = Layout.at(directory).socket
    asking = partial(agent_status.ask, host_agent) if host_agent else partial(ask, place, "status")
    found = asyncio.run(ask_until(asking, is_good, wait_s))
    if found is None:
        who = f"no host agent answers at {host_agent}" if host_agent else f"no instancectl runs in --dir {directory}"
        _fail(f"{who}, or it is another user's", UNREACHABLE)
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    else:
        print_table(shown.COLUMNS, shown.rows(found))
        click.echo("\n" + "\n".join(shown.remarks(found)))
    if wait_s and not is_good(found):
        sys.exit(NOT_AS_WANTED)


@cli.command(short_help="Validate a file with one instance.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def validate(file: Path) -> None:
    """Validate FILE (one instance as YAML or JSON) for instancectl."""
    from hqcli.documents import BadDocument
    from instancectl.content.spec_faults import faults
    from instancectl.wanted.source import read_desired

    try:
        desired = read_desired(file, "")
    except BadDocument as error:
        _fail(str(error))
    if found := faults(desired):
        _fail("\n".join(found))
    click.echo(f"{file}: instance {desired.instance_id}, {len(desired.revisions)} revisions, valid")


@cli.command(short_help="Run the host agent: relay between HQ and this node's supervisors.")
@server_option
@credential_options
@click.option("--node", default="", help="Name of this node.  [default: host name]")
@click.option(
    "--socket", "path", type=click.Path(path_type=Path), default=DEFAULT_AGENT, show_default=True,
    help="Socket to listen on for supervisors.",
)  # fmt: skip
@click.option(
    "--allow", "speakers", type=SpeakerOption(), multiple=True,
    help="Let USER report for these instances, besides root and this user; {user} stands for the user's name.",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Log debug messages.")
def host_agent(
    *, servers: tuple[str, ...], credentials: CredentialFiles, node: str, path: Path, speakers: tuple[Speaker, ...],
    verbose: bool,
) -> None:  # fmt: skip
    """Run the host agent: relay between HQ and this node's supervisors, over one connection, until SIGTERM."""
    addresses = _split(servers)
    if not addresses:
        raise click.UsageError("give a replica of HQ: --server HOST:PORT")
    _log_to_stderr(verbose)
    from instancectl.files import Occupied
    from instancectl.hostagent.agent import run_host_agent

    try:
        run_host_agent(node or socket.gethostname(), addresses, credentials, path, speakers)
    except (BadCredentials, Occupied, OSError) as error:
        _fail(str(error))


def _split(servers: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return addresses_in(servers)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--server") from None


def _log_to_stderr(verbose: bool) -> None:
    level = logging.DEBUG if verbose else logging.INFO
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname).1s %(message)s")
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def _fail(text: str, code: int = FAILED) -> NoReturn:
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    for line in text.splitlines():
        click.secho("instancectl: ", fg="red", nl=False, err=True, color=colour)
        click.echo(line, err=True)
    sys.exit(code)


if __name__ == "__main__":
    cli()
