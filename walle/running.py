"""Settings become real parts here: `walle serve` and `walle dev`."""

from __future__ import annotations

import random
import re
import secrets
import signal
import socket
import sys
from asyncio import get_running_loop
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from control import Config
from hqclient import BadCredentials, Client, CredentialFiles, Credentials
from serving import garbage
from serving.auth.errors import BadSecurity
from serving.auth.security import Security
from serving.auth.settings import check_exposure, security_of
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.flags import limits_of
from serving.running import run, when_told_to_stop
from serving.surroundings import Surroundings
from serving.telemetry.logs import set_up_logs
from serving.telemetry.otlp import tracing_to
from serving.transports import Addresses
from store.etcd import EtcdStore
from store.memory import MemoryStore
from store.port import Store
from walle.process import flags
from walle.process.config import BadConfig, FileConfig, load
from walle.process.hq import Hq
from walle.server import Server

_INSTALLATION: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # no dot: it ends the name in ids of tasks


@click.command()
@flags.etcd
@flags.listening
@flags.security
@flags.behaviour
@flags.FLAGS.limits()
@flags.FLAGS.logs()
def serve(**given: Any) -> None:
    """Run a process of Wall-E on an existing etcd; of several, one acts and all answer reads."""
    config = flags.etcd_config(given)
    security = _checked(lambda: _security(given))
    _run(given, lambda: EtcdStore(config), security)


@click.command()
@flags.listening
@flags.behaviour
@flags.FLAGS.limits()
@flags.FLAGS.logs()
def dev(**given: Any) -> None:
    """Run Wall-E alone, to try it out; nothing is kept after exit."""
    _checked(lambda: check_exposure(given | {"grpc_mtls": ""}))
    _run(given | {"compact_every": 0.0, "grpc_mtls": ""}, MemoryStore, None)


def _security(given: dict[str, Any]) -> Security | None:
    check_exposure(given)
    return security_of(given, SystemClock(), None)


def _checked(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (BadSecurity, BadCredentials, BadConfig) as error:
        raise click.UsageError(str(error)) from error


def _run(given: dict[str, Any], make_store: Callable[[], Store], security: Security | None) -> None:
    if not _INSTALLATION.fullmatch(given["installation"]):
        raise click.UsageError(f"--installation {given['installation']!r}: write lower-case letters, digits and dashes")
    file = _checked(lambda: _file(given["config"]))
    hq = _checked(lambda: _client(given))
    set_up_logs(given["log_level"], given["log_format"])
    try:
        run(lambda: _serve(given, make_store(), security, file, hq))
    except OSError as error:
        click.echo(f"walle: {error}", err=True)
        sys.exit(1)


def _file(path: Path | None) -> FileConfig:
    if path is None:
        return FileConfig()
    try:
        return load(path)
    except (BadConfig, OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"--config {path}: {error}") from error


def _client(given: dict[str, Any]) -> Callable[[], Client] | None:
    if not given["hq"]:
        return None
    files = CredentialFiles(*(given[f"hq_{name}"] for name in ("ca", "cert", "key", "token_file")))
    credentials = Credentials(files)
    addresses = [part.strip() for part in given["hq"].split(",")]
    return lambda: Client(addresses, credentials=credentials)


async def _serve(
    given: dict[str, Any],
    store: Store,
    security: Security | None,
    file: FileConfig,
    make_client: Callable[[], Client] | None,
) -> None:
    rng, name = random.SystemRandom(), f"{socket.gethostname()}-walle-{secrets.token_hex(4)}"
    tracing = tracing_to(given["otlp"], "walle", name)
    shared = Surroundings(limits_of(given), SystemClock(), RequestIds(name), security, tracing)
    config = Config(given["prefix"], name, compact_every_s=given["compact_every"], stop_file=given["stop_file"])
    client = make_client() if make_client is not None else None
    addresses = Addresses(
        given["grpc"],
        given["http"],
        given["grpc_mtls"],
        cors=given["cors_origin"],
        env="WALLE_",
        transport=given["transport"],
    )
    server = Server(
        config,
        given["installation"],
        file,
        store,
        shared,
        rng,
        addresses,
        Hq(client) if client is not None else None,
        int(given["settle"] * 1000),
        given["grace"],
    )
    when_told_to_stop(server.stop)
    # The last resort: nothing more begins at this process, whatever the store says.
    get_running_loop().add_signal_handler(signal.SIGUSR2, server.controller.stop.trip, "SIGUSR2 came")
    garbage.freeze()
    try:
        await server.serve()
    finally:
        if client is not None:
            await client.close()
