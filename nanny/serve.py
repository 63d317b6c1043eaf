"""The commands `nanny serve` and `nanny dev`: where settings become real parts."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import click

from control.process import DevStore, config_of, dev_store, until_stopped
from nanny import options
from nanny.server import Server
from serving.auth.security import Security, check_exposure, security_of
from serving.auth.watched_files import BadSecurity
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.flags import limits_of, tracing_to
from serving.process import run
from serving.telemetry.logs import set_up_logs
from serving.transports import Addresses
from store.epoch import FormatTooNew
from store.port import Store

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.command(context_settings=_SETTINGS)
@options.etcd
@options.listening
@options.world
@options.security
@options.behaviour
@options.limits
@options.logs
def serve(**given: Any) -> None:
    """Run one process of Nanny on an existing etcd.

    Run two or more: one acts, all answer reads and take orders. See docs/nanny.md.
    """
    from serving.storage.flags import etcd_config
    from store.etcd import EtcdStore

    config = etcd_config(given)
    security = _security(given)
    _run(lambda: _serve(lambda: EtcdStore(config), given, security), given)


@click.command(context_settings=_SETTINGS)
@options.dev
@options.listening
@options.world
@options.behaviour
@options.limits
@options.logs
def dev(**given: Any) -> None:
    """Run one process of Nanny with its own etcd, to try it out beside `hq dev`.

    The etcd is a child of this process and stops with it; its data stay in --data.
    """
    _check_exposure(given)
    _run(lambda: _dev(given), given)


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


def _run(main: Callable[[], Coroutine[Any, Any, None]], given: dict[str, Any]) -> None:
    from store.embedded import DataDirInUse, EtcdFailed, EtcdNotFound

    set_up_logs(given["log_level"], given["log_format"])
    refused: list[str] = []
    try:
        run(main)
    except* (OSError, BadSecurity, FormatTooNew, DataDirInUse, EtcdFailed, EtcdNotFound, click.UsageError) as group:
        refused = [str(error) for error in group.exceptions]
    for words in refused:
        click.echo(f"nanny: {words}", err=True)
    if refused:
        sys.exit(1)


async def _dev(given: dict[str, Any]) -> None:
    async with dev_store(given) as own:
        await _serve(lambda: own.store, given, None, own)


async def _serve(
    make_store: Callable[[], Store], given: dict[str, Any], security: Security | None, own: DevStore | None = None
) -> None:
    config = config_of(given, "nanny")
    locations, leave = options.world_of(given)
    tracing = tracing_to(given["otlp"], "nanny", config.process)
    shared = ServerContext(limits_of(given), SystemClock(), RequestIds(config.process), security, tracing)
    addresses = Addresses(
        given["grpc"],
        given["http"],
        given.get("grpc_mtls", ""),
        cors=given["cors_origin"],
        env="NANNY_",
        transport=given["transport"],
    )
    rng = random.SystemRandom()
    store = make_store()  # here: its connections belong to the loop that runs
    server = Server(config, store, rng, shared, addresses, locations, leave, given["drift_every"], given["grace"])
    if own is None:
        await until_stopped(server, server.controller)
        return
    welcome = f"Nanny is ready, {own.where}. Ctrl-C stops it."
    await until_stopped(server, server.controller, lambda: click.echo(welcome), own.died)
