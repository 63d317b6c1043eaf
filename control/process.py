"""What the process of every controller needs to start: flags of the kit, the store to try things out, signals."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from control.controller import Controller
from control.following import Config
from serving import process
from serving.flags import Duration, F, Flags, together
from store.memory import MemoryStore
from store.port import Store


def kit_flags(flags: Flags, prefix: str) -> Callable[[F], F]:
    """How the kit runs; `config_of` reads them. The flags of etcd are `serving.storage.flags.etcd_flags`."""
    option = flags.option
    return together(
        option("--prefix", default=prefix, help="Prefix of all keys in the store."),
        option("--process", default="", help="Name of this process, never reused; default: generated."),
        option("--term", type=Duration(), default="10s", help="Replace a silent acting process after this time."),
        option(
            "--compact-every",
            type=Duration(),
            default="0s",
            help="Interval of compacting the store's history; 0s: something else does (HQ, on an etcd that it shares).",
        ),
        option(
            "--stop-file",
            default="",
            metavar="FILE",
            help="Emergency stop: while this file exists, nothing begins at this process. So does SIGUSR1, for good.",
        ),
    )


def dev_flags(flags: Flags, data: str) -> Callable[[F], F]:
    """Where a controller that is tried out keeps its records; `dev_store` reads them."""
    kinds = click.Choice(["etcd", "memory"])
    return together(
        flags.option("--store", type=kinds, default="etcd", help="memory: nothing is kept after exit."),
        flags.option("--data", default=data, metavar="DIR", help="Data directory of the embedded etcd."),
    )


def config_of(given: Mapping[str, Any], name: str) -> Config:
    """What `kit_flags` say; `name`: of the program, for the name of the process. Raises UsageError."""
    if given["term"] < 1.0:
        raise click.UsageError(f"--term {given['term']:g}s: must be at least 1s")
    generated = f"{socket.gethostname()}-{name}-{secrets.token_hex(4)}"
    stop_file = Path(given["stop_file"]) if given["stop_file"] else None
    return Config(given["prefix"], given["process"] or generated, given["term"], given["compact_every"], stop_file)


@dataclass(frozen=True, slots=True)
class DevStore:
    """A store of this process' own.

    Attributes:
        where: it is, for people.
        died: its end, unasked for; None: it cannot end.
    """

    store: Store
    where: str
    died: Callable[[], Coroutine[Any, Any, Exception]] | None = None


@asynccontextmanager
async def dev_store(given: Mapping[str, Any]) -> AsyncIterator[DevStore]:
    """The store that `dev_flags` say. Raises DataDirInUse, EtcdNotFound, EtcdFailed."""
    if given["store"] == "memory":
        yield DevStore(MemoryStore(), "memory")
        return
    from store.embedded import EmbeddedEtcd
    from store.etcd import EtcdConfig, EtcdStore

    etcd = EmbeddedEtcd(Path(given["data"]))
    await etcd.start()
    try:
        store = EtcdStore(EtcdConfig((etcd.endpoint,)))
        yield DevStore(store, f"etcd at {etcd.endpoint}, data in {given['data']}", etcd.process.died)
    finally:
        await etcd.stop()


async def until_stopped(
    server: process.Stoppable,
    controller: Controller,
    when_loaded: Callable[[], None] | None = None,
    died: Callable[[], Coroutine[Any, Any, Exception]] | None = None,
) -> None:
    """Serve until a signal comes; SIGUSR1 is the emergency stop. `died` is that of a DevStore."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: controller.stop.trip("SIGUSR1"))
    await process.until_stopped(server, controller.loaded, when_loaded, died() if died else None)
