"""completion: what makes a shell complete hqctl's commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hqctl.asking.exits import Exit
from hqctl.asking.session import complain


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash: hqctl completion bash > ~/.local/share/bash-completion/completions/hqctl
    zsh:  hqctl completion zsh > "${fpath[1]}/_hqctl"
    fish: hqctl completion fish > ~/.config/fish/completions/hqctl.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        complain(f"{shell}: no completion for this shell")
        raise SystemExit(Exit.REFUSED)
    click.echo(kind(ctx.find_root().command, {}, "hqctl", "_HQCTL_COMPLETE").source())
