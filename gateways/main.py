"""The command `hq-gateway`: one gateway per process."""

from __future__ import annotations

import click

from gateways.consul.command import consul
from gateways.dns.command import dns
from gateways.xds.command import xds
from hqcli.completion import completion


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="hq-registry", prog_name="hq-gateway")
def cli() -> None:
    """Serve HQ in protocols that clients already speak. See docs/gateways.md."""


cli.add_command(dns)
cli.add_command(consul)
cli.add_command(xds)
cli.add_command(completion)

if __name__ == "__main__":
    cli()
