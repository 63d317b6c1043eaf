"""The command `completion`, which each program with commands has."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash: PROGRAM completion bash > ~/.local/share/bash-completion/completions/PROGRAM
    zsh:  PROGRAM completion zsh > "${fpath[1]}/_PROGRAM"
    fish: PROGRAM completion fish > ~/.config/fish/completions/PROGRAM.fish
    """
    root = ctx.find_root()
    program = root.info_name or root.command.name or ""
    make = get_completion_class(shell)
    assert make is not None
    click.echo(make(root.command, {}, program, f"_{program.upper().replace('-', '_')}_COMPLETE").source())
