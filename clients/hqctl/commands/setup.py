"""config: what an operator sets up once on a machine."""

from __future__ import annotations

import click

from hqcli.contexts import WRITE_ONE, ContextFile, with_current
from hqcli.exits import Exit
from hqcli.formats import output_option, print_data
from hqcli.terminal import print_table
from hqctl.asking.session import complain, loaded_config


@click.group()
def config() -> None:
    """Show and choose contexts: installations by name, with their servers and credentials.

    They are in a file that you write yourself: HQ_CONFIG, else hq/config.yaml in XDG_CONFIG_HOME (~/.config):

    \b
    current-context: east
    contexts:
      east: {servers: [hq-1.east:7071, hq-2.east:7071], ca: ca.pem}
    """


@config.command("get-contexts")
@click.option("--no-headers", is_flag=True, help="Omit the header line of the table.")
@output_option("table", "name")
def get_contexts(no_headers: bool, output: str) -> None:
    """List the contexts; the current one has a star."""
    found = loaded_config()
    if not found.exists:
        complain(f"{found.lacks_file()}.")
    elif not found.contexts:
        click.echo(f"There are no contexts in {found.path}. {WRITE_ONE}.", err=True)
    elif output == "name":
        click.echo("\n".join(found.contexts))
    else:
        names = ("CURRENT", "NAME", "TLS", "TOKEN", "SERVERS")
        print_table(names, _rows(found), headers=not no_headers)


@config.command("current-context")
def current_context() -> None:
    """Show the name of the current context."""
    found = _existing()
    if not found.current:
        complain(f"no current context; choose one with `hqctl config use-context NAME` ({found.path})")
        raise SystemExit(Exit.NOT_FOUND)
    click.echo(found.current)


@config.command("use-context")
@click.argument("name")
def use_context(name: str) -> None:
    """Make a context the current one."""
    found = _existing()
    if name not in found.contexts:
        there = f"there are: {', '.join(found.contexts)}" if found.contexts else f"it has no contexts. {WRITE_ONE}."
        complain(f"there is no context {name!r} in {found.path}; {there}")
        raise SystemExit(Exit.NOT_FOUND)
    text = found.path.read_text(encoding="utf-8")
    found.path.write_text(with_current(text, name), encoding="utf-8")
    click.echo(f"Switched to context {name}.")


@config.command()
@output_option("yaml", "json", "jsonpath=…")
def view(output: str) -> None:
    """Show the parsed config. Credentials are names of files, never their content."""
    found = loaded_config()
    print_data({"current-context": found.current, "contexts": _as_data(found)}, output)


def _existing() -> ContextFile:
    """The config; exits if there is no file."""
    found = loaded_config()
    if not found.exists:
        complain(f"{found.lacks_file()}.")
        raise SystemExit(Exit.NOT_FOUND)
    return found


def _rows(found: ContextFile) -> list[list[str]]:
    return [
        [
            "*" if name == found.current else "-",
            name,
            "yes" if context.credentials.ca or context.credentials.cert else "no",
            "yes" if context.credentials.token_file else "no",
            ",".join(context.servers),
        ]
        for name, context in found.contexts.items()
    ]


def _as_data(found: ContextFile) -> dict[str, dict[str, object]]:
    return {
        name: {
            "servers": list(context.servers),
            **{
                key: value
                for key, value in (
                    ("ca", context.credentials.ca),
                    ("cert", context.credentials.cert),
                    ("key", context.credentials.key),
                    ("token-file", context.credentials.token_file),
                    ("timeout", f"{context.timeout_s:g}s" if context.timeout_s else ""),
                )
                if value
            },
            **{name: list(addresses) for name, addresses in context.controllers.items()},
        }
        for name, context in found.contexts.items()
    }
