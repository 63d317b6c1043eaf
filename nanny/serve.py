"""The commands `nanny serve` and `nanny dev`: where settings become objects."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from control.process import DevStore, addresses_of, config_of, context_of, run_controller, until_stopped
from nanny import options
from nanny.server import NannyProcess
from serving.auth.security import Security
from serving.flags import ServerCommand
from store.port import Store

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.command(cls=ServerCommand, context_settings=_SETTINGS)
@options.etcd
@options.listening
@options.world
@options.behaviour
@options.security
@options.logs
@options.limits
def serve(**given: Any) -> None:
    """Run one process of Nanny on an existing etcd.

    Run two or more: one is the leader, all answer reads and accept requests. See docs/nanny-service.md.
    """
    run_controller("nanny", given, partial(_serve, given))


@click.command(cls=ServerCommand, context_settings=_SETTINGS)
@options.dev
@options.listening
@options.world
@options.behaviour
@options.logs
@options.limits
def dev(**given: Any) -> None:
    """Run one process of Nanny with its own etcd, to try it out beside `hq dev`.

    The etcd is a child of this process and stops with it; its data stay in --data.
    """
    run_controller("nanny", given, partial(_serve, given))


async def _serve(
    given: dict[str, Any], make_store: Callable[[], Store], security: Security | None, own: DevStore | None
) -> None:
    logging.getLogger("httpx").setLevel(logging.WARNING)  # what a check found is shown with the roll-out
    config = config_of(given, "nanny", "nanny control open")
    locations, leave = options.world_of(given)
    shared, addresses = context_of(given, "nanny", config, security), addresses_of(given, "NANNY_")
    rng = random.SystemRandom()
    store = make_store()  # made here, as its connections belong to the running loop
    prometheus = options.prometheus_of(given)
    drift_every_s, grace_s = given["drift_every"], given["grace"]
    server = NannyProcess(config, store, rng, shared, addresses, locations, leave, prometheus, drift_every_s, grace_s)
    await until_stopped("nanny", server, server.controller, own)
