"""The command line: what commands there are. Each is imported when it is used, so that help comes at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from hqcli.controllers import SHORTEST_CALL_S
from hqcli.group import LazyGroup
from hqcli.options import DurationParam, credential_flags
from hqclient.credential_files import CredentialFiles
from wallectl.asking import WALLE, WalleProcesses, complain

# Name: module, attribute, help in one line.
COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "projects": ("projects", "projects", "Show and change projects: CMSs, limits, automation."),
    "hosts": ("hosts", "hosts", "Show, add, prepare, repair, move and remove hosts."),
    "inventory": ("inventory", "inventory", "Show and import machines: addresses, places, projects."),
    "limits": ("limits", "limits", "Show which hosts used up a limit."),
    "scenarios": ("scenarios", "scenarios", "Plan work on a switch or on many hosts."),
    "incidents": ("incidents", "incidents", "Show racks and switches whose hosts fail together."),
    "notices": ("notices", "notices", "Show and acknowledge notices."),
    "settings": ("settings", "settings", "Show and change settings of all projects."),
    "kill": ("settings", "kill", "Stop everything: nothing more begins."),
    "unkill": ("settings", "unkill", "Undo `kill`."),
    "open-epoch": ("settings", "open_epoch", "Resume on a store that was restored or replaced."),
    "completion": ("hqcli.completion", "completion", "Print the completion script of bash, zsh or fish."),
}
DEFAULT_TIMEOUT_S: Final = 15.0
_EPILOG: Final = """\b
Servers: --server HOST:PORT (repeatable), else `walle` of --context NAME, else
WALLE_SERVER (separated by commas), else those of the current context (see
`hqctl config`), else 127.0.0.1:7471. Credentials: flags, else those of the
context, else WALLE_CA, WALLE_CERT, WALLE_KEY, WALLE_TOKEN_FILE.

\b
Exit codes:
    0  done
    1  refused or failed
    2  usage error
    3  not found
    4  conflict: it changed meanwhile, or already exists
    5  Wall-E is unreachable or asked to retry later; nothing was stored
    6  unknown whether the order was stored: check
    7  not authenticated or not authorized
    8  timed out before a response"""


def group(more: Mapping[str, tuple[str, str, str]]) -> click.Group:
    """The command with further commands."""

    @click.command(
        cls=LazyGroup,
        package="wallectl.commands",
        commands_by_name=COMMANDS | dict(more),
        complain=complain,
        epilog=_EPILOG,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    @click.option("--server", multiple=True, metavar="HOST:PORT", help="Process of Wall-E to ask; repeatable.")
    @click.option("--context", "name", default="", metavar="NAME", help="Context of the config file to use.")
    @click.option(
        "--timeout", type=DurationParam(SHORTEST_CALL_S), metavar="SPAN", help="Timeout of each call. Default: 15s."
    )
    @credential_flags
    @click.version_option(package_name="hq-registry", prog_name="walle")
    @click.pass_context
    def cli(
        context: click.Context, server: tuple[str, ...], name: str, timeout: float | None, credentials: CredentialFiles
    ) -> None:
        """Repair hosts automatically, within limits.

        See `walle COMMAND --help` for each command.
        """
        if context.invoked_subcommand not in (*more, "completion"):
            whom = WALLE.whom(",".join(server), name)
            timeout_s = timeout or whom.timeout_s or DEFAULT_TIMEOUT_S
            context.obj = WalleProcesses(whom.addresses, timeout_s, credentials.over(whom.credentials))

    assert isinstance(cli, click.Group)
    return cli
