"""The command `walle`: the client's commands (wallectl), plus `serve` and `dev`."""

from __future__ import annotations

import importlib
from typing import Final

import click

from hqcli.group import LazyGroup
from wallectl.main import group

SERVERS: Final = {
    "serve": ("serve", "serve", "Run a process of Wall-E on an existing etcd."),
    "dev": ("serve", "dev", "Run Wall-E with its own etcd, to try it out."),
}


class _WithServers(LazyGroup):
    """The server is imported only by the commands that run it."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SERVERS:
            return super().get_command(ctx, cmd_name)
        module, attribute, _ = SERVERS[cmd_name]
        command = getattr(importlib.import_module(f"walle.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command


cli = group(_WithServers, SERVERS)

if __name__ == "__main__":
    cli()
