"""The command `hq-recorder`: settings become objects."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import Any, Final

import click

from control.locations import clients_of, credentials_of, location_flags, locations_of
from control.process import addresses_of, listening_flags, run_program, security_from
from hqcli.completion import completion
from recorder.archive import Archive
from recorder.server import RecorderProcess
from recorder.servers import CmsSource, FusesSource, NannySource, ServerProcesses, WalleSource
from serving.auth import security as settings
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.flags import CALLED_ADDRESSES, Duration, Flags, ServerCommand, limits_of, together, tracing_to
from serving.process import when_told_to_stop

FLAGS: Final = Flags("HQ_RECORDER_")
_record, _processes, _servers = FLAGS.under("Record"), FLAGS.under("Processes"), FLAGS.under("HQ and CMS")
_SOURCES: Final = {"cms": (CmsSource,), "nanny": (NannySource,), "walle": (WalleSource, FusesSource)}
_MIB: Final = 1 << 20

_recording: Final = together(
    location_flags(FLAGS, "  [default: default=127.0.0.1:7071]"),
    *(
        _servers.option(
            f"--{server}",
            server,
            default="",
            type=CALLED_ADDRESSES,
            metavar="HOST:PORT,...",
            help=f"Processes of {name}, to record {what}.",
        )
        for server, name, what in (
            ("cms", "the CMS", "its ledger and decisions"),
            ("nanny", "Nanny", "what was ordered and done"),
            ("walle", "Wall-E", "repairs, and what switched them off"),
        )
    ),
    _record.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        required=True,
        metavar="DIR",
        help="Keeps the record: a SQLite file a day.",
    ),
    _record.option("--keep-days", type=click.IntRange(1), default=30, help="Delete the record of days before these."),
    _record.option(
        "--max-size",
        type=click.IntRange(1),
        default=10_240,
        metavar="MIB",
        help="Delete the oldest days beyond this size; the newest day stays.",
    ),
    _processes.option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="hq-registry", prog_name="hq-recorder")
def cli() -> None:
    """Record what HQ knew, and answer about the past. See docs/history.md."""


@cli.command(cls=ServerCommand)
@listening_flags(FLAGS, "127.0.0.1:7871", "127.0.0.1:7880")
@_recording
@settings.flags(FLAGS, "recorder")
@FLAGS.logs()
@FLAGS.limits()
def serve(**given: Any) -> None:
    """Follow HQ, write what changes, and serve history.v1.

    Nothing depends on it: it can be restarted, copied and lost. One process per directory.
    """
    security = security_from(given)
    run_program("hq-recorder", given, lambda: _serve(given, security))


async def _serve(given: dict[str, Any], security: Security | None) -> None:
    locations = locations_of(given, "default=127.0.0.1:7071")
    servers = {name: [one.strip() for one in given[name].split(",") if one.strip()] for name in _SOURCES}
    credentials = credentials_of(given, [one for each in (*locations.values(), *servers.values()) for one in each])
    name = f"{socket.gethostname()}-recorder-{secrets.token_hex(4)}"
    clock, tracing = SystemClock(), tracing_to(given["otlp"], "recorder", name)
    shared = ServerContext(limits_of(given), clock, RequestIds(name), security, tracing)
    try:
        archive = Archive(given["directory"], given["keep_days"], given["max_size"] * _MIB)
    except OSError as error:
        raise click.UsageError(
            f"--dir {given['directory']}: {error.strerror}: choose a folder that this user can write"
        ) from error
    clients = clients_of(locations, credentials)
    sources = [
        make(ServerProcesses(addresses, credentials))
        for name, addresses in servers.items()
        if addresses
        for make in _SOURCES[name]
    ]
    addresses = addresses_of(given, "HQ_RECORDER_")
    server = RecorderProcess(archive, clients, shared, addresses, given["grace"], sources)
    when_told_to_stop(server.stop)
    await server.serve()


cli.add_command(completion)

if __name__ == "__main__":
    cli()
