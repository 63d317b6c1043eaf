"""The commands `cms serve` and `cms dev`: where settings become real parts."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from cms import options
from cms.replay_command import replay
from cms.server import CmsServer
from control.locations import clients_of, credentials_of, locations_of
from control.process import DevStore, addresses_of, config_of, context_of, run_controller, until_stopped
from hqcli.completion import completion
from serving.auth.security import Security
from serving.flags import ServerCommand
from store.port import Store


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="hq-registry", prog_name="cms")
def cli() -> None:
    """Run the CMS, which decides what may be taken down now; replay what it decided."""


@cli.command(cls=ServerCommand)
@options.etcd
@options.listening
@options.world
@options.behaviour
@options.security
@options.logs
@options.limits
def serve(**given: Any) -> None:
    """Run one process of the CMS on an existing etcd.

    Run two or more: one is the leader, all answer reads and accept requests. See docs/cms.md.
    """
    run_controller("cms", given, partial(_serve, given))


@cli.command(cls=ServerCommand)
@options.dev
@options.listening
@options.world
@options.behaviour
@options.logs
@options.limits
def dev(**given: Any) -> None:
    """Run one process of the CMS with its own etcd, to try it out beside `hq dev`.

    The etcd is a child of this process and stops with it; its data stay in --data.
    """
    run_controller("cms", given, partial(_serve, given))


async def _serve(
    given: dict[str, Any], make_store: Callable[[], Store], security: Security | None, own: DevStore | None
) -> None:
    config = config_of(given, "cms", "hqctl disruptions open")
    # Made here because the channels to HQ belong to the loop in which they are made, as the store's do.
    sites, locations = options.sites_of(given), locations_of(given, options.DEFAULT_LOCATION)
    credentials = credentials_of(given, (one for each in locations.values() for one in each))
    server = CmsServer(
        config,
        make_store(),
        random.SystemRandom(),
        context_of(given, "cms", config, security),
        addresses_of(given, "CMS_"),
        clients_of(locations, credentials),
        options.book_of(given, sites),
        options.settings_of(given),
        given["grace"],
        sites,
    )
    await until_stopped("cms", server, server.controller, own)


cli.add_command(replay)
cli.add_command(completion)

if __name__ == "__main__":
    cli()
