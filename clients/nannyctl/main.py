"""The command line: what commands there are. Each is imported when it is used, so that help comes at once."""

from __future__ import annotations

import click

from hqcli.complaints import complainer
from hqcli.group import LazyGroup
from nannyctl.exits import MEANINGS

# Name: module, attribute, help in one line.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "plan": ("uploader", "plan", "Show what upload would do."),
    "upload": ("uploader", "upload", "Upload descriptions to HQ."),
    "service": ("services", "service", "Create, list, show services."),
    "snapshot": ("services", "snapshot", "Add and look at snapshots."),
    "target": ("orders", "target", "Set the target of a snapshot; ACTIVE rolls it out."),
    "activate": ("orders", "activate", "Roll a snapshot out, and wait for what becomes of it."),
    "rollback": ("orders", "rollback", "Roll back to the snapshot that was ACTIVE before, and wait."),
    "restart": ("orders", "restart", "Restart what runs, in batches, and wait."),
    "status": ("services", "status", "Show a service; the exit code says whether it is as ordered."),
    "rollout": ("rollout", "rollout", "Show a roll-out, whom it judged and why; promote or abort one in steps."),
    "pause": ("orders", "pause", "Pause the actions of a service."),
    "resume": ("orders", "resume", "Resume the actions of a service."),
    "stop": ("orders", "stop", "Switch a service off."),
    "instances": ("services", "instances", "List instances, or set the target of one."),
    "history": ("services", "history", "Show who did what."),
    "watch": ("services", "watch", "Follow a service."),
    "completion": ("hqcli.completion", "completion", "Print the completion script of bash, zsh or fish."),
    "control": ("orders", "control", "Show the leader; freeze, unfreeze, or resume after a restore."),
}

DIRECT = ("plan", "upload")
LOCAL = ("completion",)
HEADINGS = {
    "Directly in HQ (no Nanny server)": DIRECT,
    "With a Nanny server": [name for name in COMMANDS if name not in (*DIRECT, *LOCAL)],
    "On this machine": LOCAL,
}

EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:3d}  {text}" for code, text in MEANINGS.items())
WHERE = """\b
Installations: --installation NAME=HOST:PORT,HOST:PORT (may be repeated), else
`installations` in the description, else in --config FILE (NANNY_CONFIG, or
~/.config/nanny.yaml), else HQ_SERVER, else 127.0.0.1:7071. Each is reported
separately. NO_COLOR switches colours off. The Nanny server is at --nanny or
NANNY_SERVER, else 127.0.0.1:7371."""


complain = complainer("nanny")


@click.command(
    cls=LazyGroup,
    package="nannyctl.commands",
    commands_by_name=COMMANDS,
    complain=complain,
    headings=HEADINGS,
    epilog=f"{WHERE}\n\n{EXIT_CODES}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="hq-registry", prog_name="nanny")
def cli() -> None:
    """Upload services to HQ, the registry of instances, from their descriptions.

    See `nanny COMMAND --help` for each command.
    """


if __name__ == "__main__":
    cli()
