"""`walle serve` and `walle dev`: their flags, and how settings become objects.

Each flag is also an environment variable: `--etcd` is WALLE_ETCD.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from control.locations import clients_of, credentials_of, location_flags, locations_of
from control.process import (
    DevStore,
    addresses_of,
    config_of,
    context_of,
    dev_flags,
    kit_flags,
    listening_flags,
    run_controller,
    until_stopped,
)
from serving.auth import security as settings
from serving.auth.security import Security
from serving.auth.watched_files import BadSecurity
from serving.flags import Duration, Flags, InputFile, ServerCommand, together, usage_errors
from serving.storage.flags import etcd_flags
from store.port import Store
from walle.process.config import FileConfig, load
from walle.process.fields import BadConfig
from walle.process.hq import Hq
from walle.server import WalleServer

_INSTALLATION: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # no dot: it ends the name in ids of tasks
_WRONG: Final = (BadSecurity, BadConfig, ValueError, OSError, UnicodeDecodeError)

FLAGS: Final = Flags("WALLE_")
_option: Final = FLAGS.under("Repairs").option

_LISTENING = listening_flags(FLAGS, "127.0.0.1:7471", "127.0.0.1:7480")
_SECURITY = settings.flags(FLAGS, "walle")

_BEHAVIOUR = together(
    location_flags(FLAGS, " Without one, silent agents are not noticed."),
    _option("--config", type=InputFile(Path), default=None, metavar="FILE", help="Limits, executors (YAML)."),
    _option(
        "--installation",
        default="default",
        help="Name of this Wall-E (not of an HQ installation), part of the ids of its CMS tasks. "
        "Unique among all that share a CMS.",
    ),
    _option("--settle", type=Duration(), default="5m", help="How long a check must fail before it counts."),
    kit_flags(FLAGS, "/walle/v1/"),
)

_ETCD = etcd_flags(FLAGS)
_TRYING = dev_flags(FLAGS, ".walle")


@click.command(cls=ServerCommand)
@_ETCD
@_LISTENING
@_BEHAVIOUR
@_SECURITY
@FLAGS.logs()
@FLAGS.limits()
def serve(**given: Any) -> None:
    """Run a process of Wall-E on an existing etcd.

    Run two or more: one is the leader, all answer reads and accept requests. See docs/walle.md.
    """
    _run(given)


@click.command(cls=ServerCommand)
@_TRYING
@_LISTENING
@_BEHAVIOUR
@FLAGS.logs()
@FLAGS.limits()
def dev(**given: Any) -> None:
    """Run one process of Wall-E with its own etcd, to try it out.

    The etcd is a child of this process and stops with it; its data stay in --data.
    """
    _run(given)


class _Settings:
    """Settings that are read before anything starts, so that mistakes are reported at once."""

    def __init__(self, given: dict[str, Any]) -> None:
        if not _INSTALLATION.fullmatch(given["installation"]):
            raise BadConfig(f"--installation {given['installation']!r}: write lower-case letters, digits and dashes")
        self.file = _file(given["config"])
        self.locations = locations_of(given)
        self.credentials = credentials_of(given, (one for each in self.locations.values() for one in each))


def _file(path: Path | None) -> FileConfig:
    try:
        return load(path) if path is not None else FileConfig()
    except (BadConfig, OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"--config {path}: {error}") from error


def _run(given: dict[str, Any]) -> None:
    with usage_errors(*_WRONG):
        settings = _Settings(given)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # every call of a CMS is an event already
    run_controller("walle", given, partial(_serve, settings, given))


async def _serve(
    settings: _Settings,
    given: dict[str, Any],
    make_store: Callable[[], Store],
    security: Security | None,
    own: DevStore | None,
) -> None:
    config = config_of(given, "walle", "walle open-epoch")
    shared = context_of(given, "walle", config, security)
    clients = clients_of(settings.locations, settings.credentials)
    server = WalleServer(
        config,
        given["installation"],
        settings.file,
        make_store(),
        shared,
        random.SystemRandom(),
        addresses_of(given, "WALLE_"),
        Hq(clients) if clients else None,
        int(given["settle"] * 1000),
        given["grace"],
    )
    try:
        await until_stopped("walle", server, server.controller, own)
    finally:
        for client in clients.values():
            await client.close()
