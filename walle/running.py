"""Settings become real parts here: `walle serve` and `walle dev`."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import click

from control.process import DevStore, config_of, dev_store, until_stopped
from hqclient import BadCredentials, Client, CredentialFiles, Credentials
from serving.auth.security import Security, check_exposure, security_of
from serving.auth.watched_files import BadSecurity
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.flags import limits_of, tracing_to
from serving.process import run
from serving.storage.flags import etcd_config
from serving.telemetry.logs import set_up_logs
from serving.transports import Addresses
from store.embedded import DataDirInUse, EtcdFailed, EtcdNotFound
from store.epoch import FormatTooNew
from store.etcd import EtcdStore
from store.port import Store
from walle.process import flags
from walle.process.config import BadConfig, FileConfig, load
from walle.process.hq import Hq
from walle.server import Server

_INSTALLATION: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # no dot: it ends the name in ids of tasks
# Said in one line, not as a traceback: the operator can mend them.
_FATAL: Final = (OSError, BadSecurity, FormatTooNew, DataDirInUse, EtcdFailed, EtcdNotFound)
_WRONG: Final = (BadSecurity, BadCredentials, BadConfig, ValueError, OSError, UnicodeDecodeError)


@click.command()
@flags.etcd
@flags.listening
@flags.security
@flags.behaviour
@flags.FLAGS.limits()
@flags.FLAGS.logs()
def serve(**given: Any) -> None:
    """Run a process of Wall-E on an existing etcd.

    Run two or more: one acts, all answer reads and take orders. See docs/walle.md.
    """
    config, security = _checked(lambda: etcd_config(given)), _checked(lambda: _security(given))
    _run(given, lambda settings: _serve(EtcdStore(config), settings, given, security))


@click.command()
@flags.trying
@flags.listening
@flags.behaviour
@flags.FLAGS.limits()
@flags.FLAGS.logs()
def dev(**given: Any) -> None:
    """Run one process of Wall-E with its own etcd, to try it out.

    The etcd is a child of this process and stops with it; its data stay in --data.
    """
    _checked(lambda: check_exposure(given))
    _run(given, lambda settings: _dev(settings, given | {"compact_every": 300.0}))


class _Settings:
    """What is read before anything starts, so that what is wrong is said at once."""

    def __init__(self, given: dict[str, Any]) -> None:
        if not _INSTALLATION.fullmatch(given["installation"]):
            raise BadConfig(f"--installation {given['installation']!r}: write lower-case letters, digits and dashes")
        self.file = _file(given["config"])
        files = CredentialFiles(*(given[f"hq_{name}"] for name in ("ca", "cert", "key", "token_file")))
        self.credentials = Credentials(files)
        self.hq = [part.strip() for part in given["hq"].split(",") if part.strip()]

    def client(self) -> Client | None:
        return Client(self.hq, credentials=self.credentials) if self.hq else None


def _file(path: Path | None) -> FileConfig:
    try:
        return load(path) if path is not None else FileConfig()
    except (BadConfig, OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"--config {path}: {error}") from error


def _security(given: dict[str, Any]) -> Security | None:
    check_exposure(given)
    return security_of(given, SystemClock(), None)


def _checked(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except _WRONG as error:
        raise click.UsageError(str(error)) from error


def _run(given: dict[str, Any], main: Callable[[_Settings], Coroutine[Any, Any, None]]) -> None:
    settings = _checked(lambda: _Settings(given))
    set_up_logs(given["log_level"], given["log_format"])
    refused: list[str] = []
    try:
        run(lambda: main(settings))
    except* _FATAL as group:
        refused = [str(error) for error in group.exceptions]
    for text in refused:
        click.echo(f"walle: {text}", err=True)
    if refused:
        sys.exit(1)


async def _dev(settings: _Settings, given: dict[str, Any]) -> None:
    async with dev_store(given) as own:
        await _serve(own.store, settings, given, None, own)


async def _serve(
    store: Store, settings: _Settings, given: dict[str, Any], security: Security | None, own: DevStore | None = None
) -> None:
    config = config_of(given, "walle")
    tracing = tracing_to(given["otlp"], "walle", config.process)
    shared = ServerContext(limits_of(given), SystemClock(), RequestIds(config.process), security, tracing)
    client = settings.client()
    server = Server(
        config,
        given["installation"],
        settings.file,
        store,
        shared,
        random.SystemRandom(),
        _addresses(given),
        Hq(client) if client is not None else None,
        int(given["settle"] * 1000),
        given["grace"],
    )
    where = f", {own.where}" if own else ""
    try:
        await until_stopped(
            server,
            server.controller,
            lambda: click.echo(f"walle: serving on {given['grpc']} and {given['http']}{where}"),
            own.died if own else None,
        )
    finally:
        if client is not None:
            await client.close()


def _addresses(given: dict[str, Any]) -> Addresses:
    mtls = given.get("grpc_mtls", "")
    return Addresses(given["grpc"], given["http"], mtls, cors=given["cors_origin"], env="WALLE_")
