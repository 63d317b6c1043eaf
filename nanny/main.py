"""The command `nanny`: the server's commands beside the client's, which are nannyctl's. Imported when they are used."""

from __future__ import annotations

from typing import Final

import click

from hqcli.group import LazyGroup
from nannyctl.main import COMMANDS, EXIT_CODES, HEADINGS, WHERE, complain

# Name: module, attribute, help in one line.
SERVERS: Final[dict[str, tuple[str, str, str]]] = {
    "serve": ("nanny.serve", "serve", "Run one process of the Nanny server on etcd."),
    "dev": ("nanny.serve", "dev", "Run Nanny with its own etcd, to try it out."),
}


@click.command(
    cls=LazyGroup,
    package="nannyctl.commands",
    commands_by_name={**COMMANDS, **SERVERS},
    complain=complain,
    headings={**HEADINGS, "The server": list(SERVERS)},
    epilog=f"{WHERE}\n\n{EXIT_CODES}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="hq-registry", prog_name="nanny")
def cli() -> None:
    """Deploy services from descriptions: by the Nanny server, or directly in HQ.

    See `nanny COMMAND --help` for each command.
    """


if __name__ == "__main__":
    cli()
