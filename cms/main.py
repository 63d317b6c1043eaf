"""The commands `cms serve` and `cms dev`: where settings become real parts."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from cms import options
from cms.server import Server
from serving.auth.security import Security, check_exposure, security_of
from serving.auth.watched_files import BadSecurity
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.flags import limits_of, tracing_to
from serving.process import relax_gc, run, when_told_to_stop
from serving.telemetry.logs import set_up_logs
from serving.transports import Addresses
from store.embedded import DataDirInUse, EtcdFailed, EtcdNotFound
from store.epoch import FormatTooNew
from store.port import Store

# Said in one line, not as a traceback: the operator can mend them.
_FATAL = (OSError, BadSecurity, FormatTooNew, DataDirInUse, EtcdFailed, EtcdNotFound, click.UsageError)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="hq", prog_name="cms")
def cli() -> None:
    """CMS: who may be taken down now."""


@cli.command()
@options.etcd
@options.listening
@options.world
@options.security
@options.behaviour
@options.limits
@options.logs
def serve(**given: Any) -> None:
    """Run one process of the CMS on an existing etcd.

    Run two or more: one decides, all answer. See docs/cms.md.
    """
    from serving.storage.flags import etcd_config
    from store.etcd import EtcdStore

    try:
        config = etcd_config(given)
    except (BadSecurity, OSError) as error:
        raise click.UsageError(str(error)) from error
    security = _security(given)
    _run(lambda: _serve(lambda: EtcdStore(config), given, security), given)


@cli.command()
@click.option(
    "--store",
    type=click.Choice(["etcd", "memory"]),
    default="etcd",
    show_default=True,
    help="memory: nothing is kept after exit.",
)
@options.FLAGS.option("--data", default=".cms", metavar="DIR", help="Data directory of the embedded etcd.")
@options.listening
@options.world
@options.behaviour
@options.limits
@options.logs
def dev(store: str, data: str, **given: Any) -> None:
    """Run one process of the CMS with its own etcd, to try it out beside `hq dev`.

    The etcd is a child of this process and stops with it; its data stay in --data.
    """
    _check_exposure(given)
    _run(lambda: _dev(store, Path(data), given), given)


def _security(given: dict[str, Any]) -> Security | None:
    _check_exposure(given)
    try:
        return security_of(given, SystemClock(), None)
    except BadSecurity as error:
        raise click.UsageError(str(error)) from error


def _check_exposure(given: dict[str, Any]) -> None:
    try:
        check_exposure(given)
    except BadSecurity as error:
        raise click.UsageError(str(error)) from error
    if given["transport"] != "own":
        raise click.UsageError("--transport: the CMS has the transport `own` only")


def _run(main: Callable[[], Coroutine[Any, Any, None]], given: dict[str, Any]) -> None:
    set_up_logs(given["log_level"], given["log_format"])
    refused: list[str] = []
    try:
        run(main)
    except* _FATAL as group:
        refused = [str(error) for error in group.exceptions]
    for words in refused:
        click.echo(f"cms: {words}", err=True)
    if refused:
        sys.exit(1)


async def _dev(kind: str, data: Path, given: dict[str, Any]) -> None:
    from store.embedded import EmbeddedEtcd
    from store.etcd import EtcdConfig, EtcdStore
    from store.memory import MemoryStore

    if kind == "memory":
        await _serve(MemoryStore, given, None)
        return
    etcd = EmbeddedEtcd(data)
    await etcd.start()
    try:
        await _serve(lambda: EtcdStore(EtcdConfig((etcd.endpoint,))), given, None)
    finally:
        await etcd.stop()


async def _serve(make_store: Callable[[], Store], given: dict[str, Any], security: Security | None) -> None:
    # A channel of gRPC belongs to the loop that runs when it is made.
    config = options.config_of(given)
    book, clients = options.book_of(given), options.clients_of(given)
    tracing = tracing_to(given["otlp"], "cms", config.process)
    shared = ServerContext(limits_of(given), SystemClock(), RequestIds(config.process), security, tracing)
    mtls = given.get("grpc_mtls", "")
    addresses = Addresses(given["grpc"], given["http"], mtls, cors=given["cors_origin"], env="CMS_")
    settings = options.settings_of(given)
    server = Server(
        config, make_store(), random.SystemRandom(), shared, addresses, clients, book, settings, given["grace"]
    )
    when_told_to_stop(server.stop)
    stop = server.controller.stop
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: stop.trip("SIGUSR1"))
    relax_gc()
    await server.serve()


if __name__ == "__main__":
    cli()
