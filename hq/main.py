"""The commands `hq serve` and `hq dev`: the one place where settings become real parts."""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from hq.audit import audit
from hq.backup.commands import backup, restore
from hq.config import ReplicaConfig
from hq.installation.commands import init
from hq.process import options
from hq.process.server import ReplicaServer
from hq.process.welcome import welcome
from hq.process.workers import Ports, Workers, end_with_parent, port_above
from hq.sizing.commands import plan
from hqapi.rules import DENIED_BY_STATE
from hqcli.completion import completion
from serving.auth.security import Security, check_exposure, security_of
from serving.auth.watched_files import BadSecurity
from serving.clock import SystemClock
from serving.flags import ServerCommand, limits_of, listening_by, tracing_to, usage_errors
from serving.listeners import Addresses
from serving.process import run, until_stopped
from serving.storage.flags import etcd_config
from serving.telemetry.logs import set_up_logs
from store.embedded import DataDirInUse, EtcdFailed, EtcdNotFound
from store.epoch import FormatTooNew
from store.port import Store

# Reported in one line, not as a traceback: the operator can fix them.
_FATAL = (OSError, BadSecurity, FormatTooNew, DataDirInUse, EtcdFailed, EtcdNotFound)

_SAVING_S = 60.0  # for a worker to write its checkpoint


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="hq-registry", prog_name="hq")
def cli() -> None:
    """HQ: the registry of instances of a private cloud."""


@cli.command(cls=ServerCommand)
@options.etcd
@options.listening
@options.behaviour
@options.state
@options.workers
@options.security
@options.logs
@options.limits
def serve(**given: Any) -> None:
    """Run one replica on an existing etcd.

    Several replicas on one etcd form an installation; each answers all requests. Each reads the whole registry
    into memory at start and follows every change. /readyz, on the address of --grpc or --http, says when it
    serves.
    """
    from store.etcd import EtcdStore

    _check_liveness(given)
    config = etcd_config(given)
    security = _security(given)
    if given["workers"] > 1:
        sys.exit(_mind_workers(given))
    _run(lambda: _serve(given, lambda: EtcdStore(config), security), given)


@cli.command(cls=ServerCommand)
@options.store
@options.data
@options.listening
@options.behaviour
@options.logs
@options.limits
def dev(store: str, data: str, **given: Any) -> None:
    """Run one replica with its own etcd, to try HQ out.

    The etcd is a child of this process and stops with it; its data stay in --data. Of the etcd on
    PATH, the one of `make etcd` and the one that came with the package it takes the best: one without known
    faults, then the newest.
    """
    _check_liveness(given)
    with usage_errors(BadSecurity):
        check_exposure(given)
    _run(lambda: _dev(store, Path(data), given), given)


async def _serve(given: dict[str, Any], make_store: Callable[[], Store], security: Security | None) -> None:
    if given["worker"] is not None:
        end_with_parent()
    server = _server(given, make_store(), security)
    await until_stopped(server, server.replica.loading.loaded)


async def _dev(kind: str, data: Path, given: dict[str, Any]) -> None:
    from store.embedded import EmbeddedEtcd
    from store.etcd import EtcdConfig, EtcdStore
    from store.memory import MemoryStore

    if kind == "memory":
        server = _server(given, MemoryStore())
        await until_stopped(server, server.replica.loading.loaded, lambda: welcome(server, "memory"))
        return
    etcd = EmbeddedEtcd(data)
    await etcd.start()
    try:
        server = _server(given, EtcdStore(EtcdConfig((etcd.endpoint,))))
        where, note = f"etcd at {etcd.endpoint}, data in {data}", etcd.process.binary.note
        await until_stopped(
            server, server.replica.loading.loaded, lambda: welcome(server, where, note), etcd.process.wait_for_exit()
        )
    finally:
        await etcd.stop()


def _server(given: dict[str, Any], store: Store, security: Security | None = None) -> ReplicaServer:
    rng = random.SystemRandom()
    timeout_s = given["liveness_timeout"]
    config = ReplicaConfig(
        cluster=given["cluster"],
        replica=_name(given),
        prefix=given["prefix"],
        liveness_timeout_s=timeout_s,
        report_interval_s=given["report_interval"] or min(180.0, 0.3 * timeout_s),
        heartbeat_batches_per_s=given["heartbeat_batches"],
        guard_share=given["guard_share"],
        history_bytes=given["history_bytes"],
        watch_buffer_bytes=given["watch_buffer"],
        page_bytes=given["page_bytes"],
        json_bytes=given["json_bytes"],
        max_store_bytes=given["max_store_bytes"],
        compact_every_s=given["compact_every"],
        checkpoint=_checkpoint(given),
    )
    return ReplicaServer(
        config,
        store,
        SystemClock(),
        rng,
        _addresses(given),
        limits_of(given),
        given["grace"],
        security,
        tracing_to(given["otlp"], "hq", config.replica),
    )


def _checkpoint(given: dict[str, Any]) -> str:
    """The file of this process: each worker has its own."""
    if not given.get("state_dir"):
        return ""
    worker = given["worker"]
    return str(Path(given["state_dir"]) / ("checkpoint" if worker is None else f"checkpoint.worker-{worker}"))


def _name(given: dict[str, Any]) -> str:
    """The name of this process, never used before: a worker that is started again gets another one."""
    name: str = given["replica"] or socket.gethostname()
    is_own = given["replica"] and given.get("worker") is None
    return name if is_own else f"{name}-{secrets.token_hex(4)}"


def _addresses(given: dict[str, Any]) -> Addresses:
    is_worker = given.get("worker") is not None
    pages = given["worker_pages"] if is_worker else ""
    return Addresses(
        given["grpc"],
        given["http"],
        given.get("grpc_mtls", ""),
        agents=_agents_address(given),
        shared=is_worker,
        pages=pages,
        cors=given["cors_origin"],
        allowed_hosts=given["allowed_host"],
    )


def _agents_address(given: dict[str, Any]) -> str:
    """The agents' address; by default port 7072, if --grpc has port 7071: beside another port it might be anybody's."""
    said: str | None = given["agents"]
    host, _, port = given["grpc"].rpartition(":")
    if said is not None:
        return said
    return f"{host}:7072" if port == "7071" else ""


def _mind_workers(given: dict[str, Any]) -> int:
    """Run this very command several times, on ports that they share; return the exit code."""
    set_up_logs(given["log_level"], given["log_format"])
    ports = Ports()
    try:
        held = {}
        for flag, address in (
            ("--grpc", given["grpc"]),
            ("--http", given["http"]),
            ("--grpc-mtls", given.get("grpc_mtls")),
            ("--agents", _agents_address(given)),
        ):
            if address:
                with listening_by(flag, "HQ_"):
                    held[flag] = ports.hold(address)
        held.setdefault("--agents", "")
    except OSError as error:
        click.echo(f"hq: {error}", err=True)
        return 1
    words = [sys.executable, "-m", "hq.main", *sys.argv[1:], "--workers", "1"]
    words += [word for pair in held.items() for word in pair]
    commands = [
        [*words, "--worker", str(index), "--worker-pages", port_above(given["worker_pages"], index)]
        for index in range(given["workers"])
    ]
    try:
        patience_s = given["grace"] + (_SAVING_S if given["state_dir"] else 0.0)
        return asyncio.run(Workers(commands, patience_s).run())
    finally:
        ports.close()


def _run(main: Callable[[], Coroutine[Any, Any, None]], given: dict[str, Any]) -> None:
    set_up_logs(given["log_level"], given["log_format"])
    refused: list[str] = []
    try:
        run(main)
    except* _FATAL as group:
        refused = [str(error) for error in group.exceptions]
    for words in refused:
        click.echo(f"hq: {words}", err=True)
    if refused:
        sys.exit(1)


@usage_errors(BadSecurity)
def _security(given: dict[str, Any]) -> Security | None:
    check_exposure(given)
    if given["worker"] is not None and given["audit_log"]:
        given = {**given, "audit_log": f"{given['audit_log']}.worker-{given['worker']}"}  # each renames its own file
    return security_of(given, SystemClock(), given["cluster"], DENIED_BY_STATE)


def _check_liveness(given: dict[str, Any]) -> None:
    """Refuse settings under which well-behaved agents would expire, or would not get in."""
    timeout_s, interval_s = given["liveness_timeout"], given["report_interval"]
    if timeout_s <= 0:
        raise click.UsageError("--liveness-timeout must be positive: write 10m, or 10s to try things out")
    if interval_s is not None and interval_s >= timeout_s:
        raise click.UsageError(
            f"--report-interval {interval_s:g}s: agents reporting at this interval would "
            f"expire at --liveness-timeout {timeout_s:g}s; use a third of it"
        )
    if math.isnan(given["guard_share"]):
        raise click.UsageError("--guard-share: write a number from 0 to 1")


cli.add_command(audit)
cli.add_command(backup)
cli.add_command(init)
cli.add_command(plan)
cli.add_command(restore)
cli.add_command(completion)

if __name__ == "__main__":
    cli()
