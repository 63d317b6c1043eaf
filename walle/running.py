"""`walle serve` and `walle dev`: their flags, and how settings become real parts.

Each flag is also an environment variable: `--etcd` is WALLE_ETCD.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Final

import click

from control.process import (
    DevStore,
    addresses_of,
    check_exposed,
    config_of,
    context_of,
    dev_flags,
    dev_store,
    kit_flags,
    run_program,
    security_from,
    until_stopped,
)
from hqclient import BadCredentials, Client, CredentialFiles, Credentials
from serving.auth import security as settings
from serving.auth.security import Security
from serving.auth.watched_files import BadSecurity
from serving.flags import Duration, Flags, together
from serving.storage.flags import etcd_config, etcd_flags
from store.etcd import EtcdStore
from store.port import Store
from walle.process.config import BadConfig, FileConfig, load
from walle.process.hq import Hq
from walle.server import Server

_INSTALLATION: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # no dot: it ends the name in ids of tasks
_WRONG: Final = (BadSecurity, BadCredentials, BadConfig, ValueError, OSError, UnicodeDecodeError)

FLAGS: Final = Flags("WALLE_")
_option = FLAGS.option

_LISTENING = together(
    _option("--grpc", default="127.0.0.1:7471", metavar="HOST:PORT", help="Address to serve on; port 0: a free one."),
    _option("--http", default="127.0.0.1:7480", metavar="HOST:PORT", help="Second address to serve on."),
    FLAGS.transport(),
    FLAGS.cors(),
    _option("--insecure", is_flag=True, help="Serve on non-loopback addresses without TLS or authentication."),
)

_SECURITY = settings.flags(FLAGS)

_BEHAVIOUR = together(
    kit_flags(FLAGS, "/walle/v1/"),
    _option(
        "--config", type=click.Path(path_type=Path), default=None, metavar="FILE", help="Limits, executors (YAML)."
    ),
    _option(
        "--installation",
        default="default",
        help="Name of this installation, part of the ids of its CMS tasks. Unique among all that share a CMS.",
    ),
    _option("--settle", type=Duration(), default="5m", help="How long a check must fail before it counts."),
    _option(
        "--location",
        multiple=True,
        metavar="NAME=HOST:PORT,...",
        help="An installation of HQ and its replicas; repeatable. Without one, silent agents are not noticed.",
    ),
    _option("--hq-ca", default="", metavar="FILE", help="Use TLS with HQ and trust this CA (PEM)."),
    _option("--hq-cert", default="", metavar="FILE", help="Client certificate for HQ (PEM)."),
    _option("--hq-key", default="", metavar="FILE", help="Its key (PEM)."),
    _option("--hq-token-file", default="", metavar="FILE", help="File with the token for HQ."),
    _option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown."),
)

_ETCD = etcd_flags(FLAGS)
_TRYING = dev_flags(FLAGS, ".walle")


@click.command()
@_ETCD
@_LISTENING
@_SECURITY
@_BEHAVIOUR
@FLAGS.limits()
@FLAGS.logs()
def serve(**given: Any) -> None:
    """Run a process of Wall-E on an existing etcd.

    Run two or more: one acts, all answer reads and take orders. See docs/walle.md.
    """
    config, security = _checked(lambda: etcd_config(given)), security_from(given)
    _run(given, lambda settings: _serve(lambda: EtcdStore(config), settings, given, security))


@click.command()
@_TRYING
@_LISTENING
@_BEHAVIOUR
@FLAGS.limits()
@FLAGS.logs()
def dev(**given: Any) -> None:
    """Run one process of Wall-E with its own etcd, to try it out.

    The etcd is a child of this process and stops with it; its data stay in --data.
    """
    check_exposed(given)
    _run(given, lambda settings: _dev(settings, given))


class _Settings:
    """What is read before anything starts, so that what is wrong is said at once."""

    def __init__(self, given: dict[str, Any]) -> None:
        if not _INSTALLATION.fullmatch(given["installation"]):
            raise BadConfig(f"--installation {given['installation']!r}: write lower-case letters, digits and dashes")
        self.file = _file(given["config"])
        files = CredentialFiles(*(given[f"hq_{name}"] for name in ("ca", "cert", "key", "token_file")))
        self.credentials = Credentials(files)
        self.locations = _locations(given["location"])

    def clients(self) -> dict[str, Client]:
        return {name: Client(each, credentials=self.credentials) for name, each in self.locations.items()}


def _locations(given: Iterable[str]) -> dict[str, list[str]]:
    """Replicas of each location, by name."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, _, addresses = text.partition("=")
        replicas = [one.strip() for one in addresses.split(",") if one.strip()]
        if not name or not replicas or name in found:
            raise BadConfig(f"--location {text}: write NAME=HOST:PORT[,HOST:PORT...], each name once")
        found[name] = replicas
    return found


def _file(path: Path | None) -> FileConfig:
    try:
        return load(path) if path is not None else FileConfig()
    except (BadConfig, OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"--config {path}: {error}") from error


def _checked(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except _WRONG as error:
        raise click.UsageError(str(error)) from error


def _run(given: dict[str, Any], main: Callable[[_Settings], Coroutine[Any, Any, None]]) -> None:
    settings = _checked(lambda: _Settings(given))
    logging.getLogger("httpx").setLevel(logging.WARNING)  # every call of a CMS is an event already
    run_program("walle", given, lambda: main(settings))


async def _dev(settings: _Settings, given: dict[str, Any]) -> None:
    async with dev_store(given) as own:
        await _serve(lambda: own.store, settings, given, None, own)


async def _serve(
    make_store: Callable[[], Store],
    settings: _Settings,
    given: dict[str, Any],
    security: Security | None,
    own: DevStore | None = None,
) -> None:
    """`make_store`: a store of etcd belongs to the loop that it was made in."""
    config = config_of(given, "walle")
    shared = context_of(given, "walle", config, security)
    clients = settings.clients()
    server = Server(
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
