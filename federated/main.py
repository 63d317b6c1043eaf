"""The command `hq-federated`: the one place where settings become real parts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

import click
import uvloop

from federated.channel import insecure_channel
from federated.clock import SystemClock
from federated.config import BadConfig, ConfigFile
from federated.front import Front
from federated.locations import Locations
from federated.server import Server
from serving.calls import RequestIds
from serving.flags import Bytes, Duration, Flags, is_loopback, limits_of
from serving.surroundings import Surroundings
from serving.transports import Addresses

_FLAGS: Final = Flags("HQ_FRONT_")
_option = _FLAGS.option


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@_option(
    "--config",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Which locations there are; YAML, read again when it changes.",
)
@_option("--grpc", default="127.0.0.1:7171", metavar="HOST:PORT", help="Where to serve gRPC; port 0: a free one.")
@_option("--http", default="127.0.0.1:7180", metavar="HOST:PORT", help="Where to serve HTTP; port 0: a free one.")
@_option(
    "--insecure",
    is_flag=True,
    help="Serve on other than loopback addresses although nothing is encrypted and nobody is asked who they are.",
)
@_option("--page-bytes", type=Bytes(), default="3MiB", help="Most that one answer of FindInstances holds.")
@_option(
    "--last-good-bytes",
    type=Bytes(),
    default="16MiB",
    help="Answers kept of each location, for callers who allow old ones.",
)
@_option("--grace", type=Duration(), default="5s", help="How long calls may go on when it is told to stop.")
@_FLAGS.limits()
@_option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", help="What is logged."
)
def cli(**given: Any) -> None:
    """Run a front: several installations of HQ as one.

    It holds no state: run several, and let clients name them all. Each reads --config, asks every location that it
    names, and serves hq.v1.InstanceService for all of them together. docs/federated.md tells what that means.
    """
    for flag in ("grpc", "http"):
        if not is_loopback(given[flag]) and not given["insecure"]:
            raise click.UsageError(
                f"--{flag} {given[flag]} is reachable from other machines, and nothing is encrypted yet: "
                f"serve on 127.0.0.1, or say --insecure if the network itself is guarded"
            )
    try:
        file = ConfigFile(given["config"])
    except (BadConfig, OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--config {given['config']}: {error}") from error
    logging.basicConfig(
        level=given["log_level"].upper(), format="%(asctime)s %(levelname)-7s %(message)s", stream=sys.stderr
    )
    _run(file, given)


def _run(file: ConfigFile, given: dict[str, Any]) -> None:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, contextlib.suppress(KeyboardInterrupt):
            runner.run(_serve(file, given))
    except OSError as error:
        click.echo(f"hq-federated: {error}", err=True)
        sys.exit(1)


async def _serve(file: ConfigFile, given: dict[str, Any]) -> None:
    clock, rng = SystemClock(), random.SystemRandom()
    locations = Locations(file, clock, rng, insecure_channel, given["last_good_bytes"])
    front = Front(locations, clock, rng, given["page_bytes"])
    ids = RequestIds(f"{socket.gethostname()}-front-{secrets.token_hex(4)}")
    shared = Surroundings(limits_of(given), clock, ids)
    server = Server(front, shared, Addresses(given["grpc"], given["http"]), given["grace"])
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stop)
    await server.serve()


if __name__ == "__main__":
    cli()
