"""The command line of instancectl."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, NoReturn

import click

from hqcli.complaints import complainer, complaints_as_asked
from hqcli.completion import completion
from hqcli.exits import Exit
from hqcli.formats import output_option, print_data
from hqcli.options import DurationParam, addresses_in, credential_options
from hqclient.credential_files import BadCredentials, CredentialFiles
from instancectl.containers.restarts import RestartSettings
from instancectl.log_lines import log_to_stderr
from instancectl.options import (
    DEFAULT_AGENT,
    ServiceUserOption,
    UidRangeOption,
    directory_option,
    host_agent_socket_option,
    instance_options,
    node_directory_option,
    node_option,
    server_option,
    speaker_option,
    verbose_option,
)
from instancectl.processes.output import OutputSettings
from instancectl.settings import NodeSettings, ProviderSpec, RunSettings, ServiceUser, Speaker, UidRange, node_socket_of

complain = complainer("instancectl")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hq-registry", prog_name="instancectl")
def cli() -> None:
    """Supervise an instance: prepare its revisions, run the READY one, report all of them to HQ."""


@cli.command(short_help="Supervise an instance until SIGTERM.")
@directory_option
@server_option
@credential_options
@click.option("--instance", "instance_id", default="", help="Id of the instance in HQ.")
@node_option
@click.option(
    "--file", type=click.Path(dir_okay=False, path_type=Path), help="File with the desired instance, instead of HQ."
)
@click.option(
    "--host-agent",
    type=click.Path(path_type=Path),
    help=f"Socket of this node's host agent.  [default: without --server {DEFAULT_AGENT}]",
)
@instance_options
@click.option("--once", is_flag=True, help="Prepare, remove and report once, start nothing, then exit.")
@verbose_option
def run(
    *, servers: tuple[str, ...], instance_id: str, file: Path | None, host_agent: Path | None, once: bool,
    verbose: bool, **others: Any,
) -> None:  # fmt: skip
    """Supervise an instance until SIGTERM; SIGHUP reloads the specification at once."""
    addresses = _split(servers)
    if file is None and not instance_id:
        raise click.UsageError("give --file FILE or --instance ID")
    if file is None and host_agent is None and not addresses:
        host_agent = DEFAULT_AGENT
    log_to_stderr(logging.DEBUG if verbose else logging.INFO)
    settings = _instance_settings(addresses, **others)
    _supervise(replace(settings, instance_id=instance_id, file=file, host_agent=host_agent, once=once))


def _instance_settings(
    servers: tuple[str, ...], *, directory: Path, credentials: CredentialFiles, node: str,
    providers: tuple[ProviderSpec, ...], store: Path | None, file_root: Path | None,
    fetch_from: tuple[IPv4Network | IPv6Network, ...], fetch_bytes: int, allow_unchecked: bool, when_fenced: str,
    log_bytes: int, log_files: int, restart_first: float, restart_max: float,
) -> RunSettings:  # fmt: skip
    return RunSettings(
        directory=directory.absolute(),
        node=node or socket.gethostname(),
        servers=servers,
        credentials=credentials,
        store=store,
        file_root=Path(os.path.normpath(file_root.absolute())) if file_root else None,
        fetch_from=fetch_from,
        fetch_bytes=fetch_bytes,
        allow_unchecked=allow_unchecked,
        providers=providers,
        when_fenced=when_fenced,
        restarts=RestartSettings(restart_first, restart_max),
        output=OutputSettings(log_bytes, log_files),
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
        _fail(_reason(error, {"--dir": settings.directory, "--store": settings.store}))
    sys.exit(0 if done else Exit.REFUSED)


@cli.command(short_help="Supervise all instances of a node until SIGTERM.")
@node_directory_option
@server_option
@credential_options
@node_option
@host_agent_socket_option
@speaker_option
@click.option(
    "--on-stop", type=click.Choice(["leave", "stop"]), default="leave", show_default=True,
    help="What to do with the instances at SIGTERM: leave them running for the next agent, or stop them.",
)  # fmt: skip
@click.option(
    "--uids", type=UidRangeOption(), default="200000-265535", show_default=True,
    help="Uids for the users of services; nothing else on this node may use them.",
)  # fmt: skip
@click.option("--allow-root", "rooted", multiple=True, metavar="SERVICE", help="Run this service as root; repeatable.")
@click.option(
    "--allow-user", "users", type=ServiceUserOption(), multiple=True,
    help="Run this service as this user of the node, by name or number; repeatable.",
)  # fmt: skip
@click.option(
    "--runtime", type=click.Choice(["auto", "bubblewrap", "plain"]), default="auto", show_default=True,
    help="What keeps instances apart beside users.",
)  # fmt: skip
@instance_options
@verbose_option
def node(
    *, servers: tuple[str, ...], path: Path, speakers: tuple[Speaker, ...], on_stop: str, uids: UidRange,
    rooted: tuple[str, ...], users: tuple[ServiceUser, ...], runtime: str, verbose: bool, **others: Any,
) -> None:  # fmt: skip
    """Supervise all instances that HQ places on this node, and serve its other supervisors as a host agent.

    Each service runs as a user of its own, without privileges, if this is started as root.
    SIGTERM ends it; the instances run on, and the next agent adopts them. SIGHUP reloads all specifications.
    """
    settings = replace(_instance_settings(_servers(servers), **others), host_agent=path.absolute())
    log_to_stderr(logging.DEBUG if verbose else logging.INFO)
    from instancectl.files import Occupied
    from instancectl.node.agent import run_node

    try:
        if settings.store is not None:  # else each instance would find out by itself
            settings.store.mkdir(parents=True, exist_ok=True)
        asyncio.run(run_node(NodeSettings(settings, speakers, on_stop == "stop", uids, rooted, users, runtime)))
    except (BadCredentials, Occupied, OSError, ValueError) as error:
        _fail(_reason(error, {"--dir": settings.directory, "--store": settings.store, "--socket": path}))


@cli.command(short_help="Show the status of a supervisor, a node's agent or host agent.")
@directory_option
@output_option("table", "json")
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
    """Show the status of the supervisor of a directory, of a node's agent (the directory above), or of a host agent.

    Exits with 5 if there is none, and with 8 if --wait ran out before everything was as desired (for a host agent:
    before everything was reported).
    """
    from hqcli.terminal import print_table
    from instancectl import status as own_status
    from instancectl.control_socket import ask, ask_until
    from instancectl.hostagent import status as agent_status
    from instancectl.layout import Layout
    from instancectl.node import status as node_status

    node_socket = node_socket_of(directory)
    is_node = not host_agent and node_socket.exists()
    shown = agent_status if host_agent else node_status if is_node else own_status
    is_good = shown.is_as_wanted
    place = node_socket if is_node else Layout.at(directory).socket
    asking = partial(agent_status.ask, host_agent) if host_agent else partial(ask, place, "status")
    found = asyncio.run(ask_until(asking, is_good, wait_s))
    if found is None:
        _fail(
            _absent("host agent", "--host-agent", host_agent)
            if host_agent
            else _absent("instancectl", "--dir", directory),
            Exit.UNAVAILABLE,
        )
    if output == "json":
        print_data(found, output)
    else:
        print_table(shown.COLUMNS, shown.rows(found))
        click.echo("\n" + "\n".join(shown.remarks(found)))
    if wait_s and not is_good(found):
        sys.exit(Exit.TIMEOUT)


@cli.command(short_help="Let instances end that HQ does not know any more.")
@node_directory_option
def confirm(directory: Path) -> None:
    """Let the instances of a node end that vanished from HQ, many at once; else they wait for ten minutes."""
    from instancectl.control_socket import ask

    try:
        answer = asyncio.run(ask(node_socket_of(directory), "confirm"))
    except OSError:
        _fail(_absent("agent of a node", "--dir", directory), Exit.UNAVAILABLE)
    click.echo(", ".join(answer["confirmed"]) or "nothing waits")


@cli.command(short_help="Validate a file with one instance.")
@click.argument("file", type=click.Path(path_type=Path))
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
@node_option
@host_agent_socket_option
@speaker_option
@verbose_option
def host_agent(
    *, servers: tuple[str, ...], credentials: CredentialFiles, node: str, path: Path, speakers: tuple[Speaker, ...],
    verbose: bool,
) -> None:  # fmt: skip
    """Run the host agent: relay between HQ and this node's supervisors, over one connection, until SIGTERM."""
    addresses = _servers(servers)
    log_to_stderr(logging.DEBUG if verbose else logging.INFO)
    from instancectl.files import Occupied
    from instancectl.hostagent.agent import run_host_agent

    try:
        run_host_agent(node or socket.gethostname(), addresses, credentials, path, speakers)
    except (BadCredentials, Occupied, OSError) as error:
        _fail(_reason(error, {"--socket": path}))


def _servers(servers: tuple[str, ...]) -> tuple[str, ...]:
    if not (addresses := _split(servers)):
        raise click.UsageError("give a replica of HQ: --server HOST:PORT")
    return addresses


def _split(servers: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return addresses_in(servers)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--server") from None


def _absent(program: str, flag: str, place: Path) -> str:
    return f"no {program} answers at {flag} {place}: start it, or give another one, or ask as its user"


def _reason(error: Exception, places: Mapping[str, Path | None]) -> str:
    """Why it does not begin, and what to do; `places`: by flag, where it writes."""
    if not isinstance(error, OSError) or not error.filename:
        return str(error)
    failed = Path(error.filename)
    near = ((flag, place) for flag, place in places.items() if place is not None)
    where = next((f"{flag} {place}" for flag, place in near if place.absolute().is_relative_to(failed)), str(failed))
    return f"{where}: cannot be used: {error.strerror}: choose another place, or make it usable for this user"


def _fail(text: str, code: int = Exit.REFUSED) -> NoReturn:
    with complaints_as_asked(sys.argv[1:]):
        for line in text.splitlines():
            complain(line)
    sys.exit(code)


cli.add_command(completion)

if __name__ == "__main__":
    cli()
