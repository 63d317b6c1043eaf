"""Parts with which every controller's process starts: flags, security, the store for `dev`, signals."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from control.controller import Controller
from control.following import ControlConfig
from serving import process
from serving.auth.security import Security, check_exposure, security_of
from serving.auth.watched_files import BadSecurity
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.flags import OWN_ADDRESS, Duration, F, Flags, limits_of, together, tracing_to, usage_errors
from serving.listeners import Addresses
from serving.telemetry.logs import set_up_logs
from store.embedded import DataDirInUse, EmbeddedEtcd, EtcdFailed, EtcdNotFound
from store.epoch import FormatTooNew
from store.memory import MemoryStore
from store.port import Store

log = logging.getLogger(__name__)

_LEAVE_S: Final = 2.0
_DEV_COMPACT_S: Final = 300.0  # nobody else compacts the process's own store
# Reported in one line, not as a traceback: the operator can fix them.
_MENDABLE: Final = (OSError, BadSecurity, FormatTooNew, DataDirInUse, EtcdFailed, EtcdNotFound)


def listening_flags(flags: Flags, grpc: str, http: str) -> Callable[[F], F]:
    """Where a controller listens, by default at these addresses, and which browser origins may call it."""
    option, address = flags.under("Listening").option, "HOST:PORT"
    return together(
        option(
            "--grpc", default=grpc, type=OWN_ADDRESS, metavar=address, help="Address to serve on; port 0: a free one."
        ),
        option("--http", default=http, type=OWN_ADDRESS, metavar=address, help="Second address to serve on."),
        flags.cors(),
        flags.allowed_hosts(),
        option("--insecure", is_flag=True, help="Use non-loopback addresses without TLS or authentication."),
    )


def kit_flags(flags: Flags, prefix: str) -> Callable[[F], F]:
    """How the kit runs; `config_of` reads them. The flags of etcd are `serving.storage.flags.etcd_flags`."""
    storage, option = flags.under("Storage").option, flags.under("Processes").option
    return together(
        storage("--prefix", default=prefix, help="Prefix of all keys in the store."),
        option("--process", default="", help="Name of this process, never reused; default: generated."),
        option(
            "--term",
            type=Duration(),
            default="10s",
            help="Take over as leader when the leader has been silent this long.",
        ),
        storage(
            "--compact-every",
            type=Duration(),
            default="0s",
            help="How often to compact etcd's history. 0s: never; right if HQ uses the same etcd.",
        ),
        option(
            "--stop-file",
            default="",
            metavar="FILE",
            help="Emergency stop: while this file exists, nothing begins here. SIGUSR1: the same until a restart.",
        ),
        option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
    )


def dev_flags(flags: Flags, data: str) -> Callable[[F], F]:
    """Where `dev` keeps its records; `dev_store` reads these flags."""
    option, kinds = flags.under("Storage").option, click.Choice(["etcd", "memory"])
    return together(
        option("--store", type=kinds, default="etcd", help="memory: nothing is kept after exit."),
        option("--data", default=data, metavar="DIR", help="Data directory of the embedded etcd."),
    )


def config_of(given: Mapping[str, Any], name: str, open_command: str = "") -> ControlConfig:
    """The settings in `kit_flags`; `name`: the program's, part of the process name. Raises UsageError."""
    if given["term"] < 1.0:
        raise click.UsageError(f"--term {given['term']:g}s: must be at least 1s")
    generated = f"{socket.gethostname()}-{name}-{secrets.token_hex(4)}"
    stop_file = Path(given["stop_file"]) if given["stop_file"] else None
    compact_s = given["compact_every"] or (_DEV_COMPACT_S if "store" in given else 0.0)
    process = given["process"] or generated
    return ControlConfig(given["prefix"], process, given["term"], compact_s, stop_file, open_command)


@usage_errors(BadSecurity)
def security_from(given: Mapping[str, Any]) -> Security | None:
    """Security from the flags of `serve`; None: none was requested. Raises UsageError."""
    check_exposed(given)
    return security_of(given, SystemClock(), None)


@usage_errors(BadSecurity, OSError)
def etcd_store_from(given: Mapping[str, Any]) -> Callable[[], Store]:
    """A factory of the store in the flags of `serve`; call it inside the running event loop. Raises UsageError."""
    from serving.storage.flags import etcd_config
    from store.etcd import EtcdStore

    config = etcd_config(given)
    return lambda: EtcdStore(config)


@usage_errors(BadSecurity)
def check_exposed(given: Mapping[str, Any]) -> None:
    """Raises UsageError: it would be reachable from other machines without TLS or authentication."""
    check_exposure(given)


def context_of(given: Mapping[str, Any], name: str, config: ControlConfig, security: Security | None) -> ServerContext:
    """Make the context that the listeners share. Call it inside the running event loop."""
    tracing = tracing_to(given["otlp"], name, config.process)
    return ServerContext(limits_of(given), SystemClock(), RequestIds(config.process), security, tracing)


def addresses_of(given: Mapping[str, Any], env: str) -> Addresses:
    """Where to listen; `env`: how its environment variables begin."""
    mtls = given.get("grpc_mtls", "")
    return Addresses(
        given["grpc"], given["http"], mtls, cors=given["cors_origin"], allowed_hosts=given["allowed_host"], env=env
    )


def run_program(name: str, given: Mapping[str, Any], main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end; failures that an operator can fix are printed in one line, with exit code 1.

    Raises UsageError: a flag that is only read inside the event loop is wrong.
    """
    set_up_logs(given["log_level"], given["log_format"])
    refused: list[str] = []
    misused: list[click.UsageError] = []
    try:
        process.run(main)
    except* click.UsageError as group:
        misused = [error for error in group.exceptions if isinstance(error, click.UsageError)]
    except* _MENDABLE as group:
        refused = [str(error) for error in group.exceptions]
    if misused:
        raise misused[0]
    for text in refused:
        click.echo(f"{name}: {text}", err=True)
    if refused:
        sys.exit(1)


def run_controller(name: str, given: Mapping[str, Any], serve: Serve) -> None:
    """Run a controller on the etcd of the flags of `serve`, or with those of `dev` on a store of its own.

    `serve` makes its store inside the running event loop, to which the store's connections belong.

    Raises UsageError.
    """
    if "store" in given:
        check_exposed(given)
        run_program(name, given, lambda: _on_own_store(given, serve))
    else:
        make_store, security = etcd_store_from(given), security_from(given)
        run_program(name, given, lambda: serve(make_store, security, None))


async def _on_own_store(given: Mapping[str, Any], serve: Serve) -> None:
    async with dev_store(given) as own:
        await serve(lambda: own.store, None, own)


@dataclass(slots=True)
class ControllerHealth:
    """The health of a controller as /livez, /readyz and grpc.health.v1 report it.

    Attributes:
        why_closed: why it answers but begins nothing; "": nothing prevents it.
        what_lacks: a remark on a process that has read its store; "": none.
    """

    controller: Controller
    why_closed: Callable[[], str]
    what_lacks: Callable[[], str] = lambda: ""
    leaving: bool = False

    def live(self) -> bool:
        return True

    def has_loaded(self) -> bool:
        return self.controller.loaded.is_set() and not self.leaving

    def staleness_s(self) -> float | None:
        return self.controller.staleness_s()

    def doubt(self) -> str:
        return self.why_closed()

    def why(self) -> str:
        if self.leaving:
            return "this process is shutting down"
        return self.controller.why_not_loaded() or self.what_lacks()

    def leave(self) -> None:
        """Report not ready from now on."""
        self.leaving = True


async def release(controller: Controller) -> None:
    """Let another process act at once; if the store does not answer, it takes over after one term."""
    try:
        async with asyncio.timeout(_LEAVE_S):
            await controller.leave()
    except TimeoutError:
        log.warning("could not release the lease as leader: another process takes over after one term")


@dataclass(frozen=True, slots=True)
class DevStore:
    """The process's own store.

    Attributes:
        where: where it is, for people. note: what to say of its etcd.
        died: done if it ended unexpectedly; None: it cannot end.
    """

    store: Store
    where: str
    note: str = ""
    died: Callable[[], Coroutine[Any, Any, Exception]] | None = None


@asynccontextmanager
async def dev_store(given: Mapping[str, Any]) -> AsyncIterator[DevStore]:
    """The store that `dev_flags` say. Raises DataDirInUse, EtcdNotFound, EtcdFailed."""
    if given["store"] == "memory":
        yield DevStore(MemoryStore(), "memory")
        return
    from store.etcd import EtcdConfig, EtcdStore

    etcd = EmbeddedEtcd(Path(given["data"]))
    await etcd.start()
    try:
        store = EtcdStore(EtcdConfig((etcd.endpoint,)))
        where, note = f"etcd at {etcd.endpoint}, data in {given['data']}", etcd.process.binary.note
        yield DevStore(store, where, note, etcd.process.wait_for_exit)
    finally:
        await etcd.stop()


Serve = Callable[[Callable[[], Store], Security | None, DevStore | None], Coroutine[Any, Any, None]]
"""Serves until stopped; takes a factory of the store, the security, and the process's own store."""


async def until_stopped(
    name: str, server: process.Stoppable, controller: Controller, own: DevStore | None = None
) -> None:
    """Serve until a signal comes, or until the `own` store dies; SIGUSR1 is the emergency stop.

    With a store of its own the process tells people on stdout where it serves.
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: controller.stop.trip("SIGUSR1"))
    welcome = partial(_welcome, name, server, own) if own else None
    await process.until_stopped(server, controller.loaded, welcome, own.died() if own and own.died else None)


def _welcome(name: str, server: process.Stoppable, own: DevStore) -> None:
    at: Addresses = server.listening.result()
    click.echo(f"{name} serves on {at.grpc} and {at.http}, its records are in {own.where}. Ctrl-C stops it.")
    if own.note:
        click.echo(own.note)
