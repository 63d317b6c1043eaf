"""The examples in `hqctl COMMAND --help` are command lines that hqctl takes."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from hqctl.examples import EXAMPLES
from hqctl.main import COMMANDS, cli

PARTS = [
    (name, part)
    for name, lines in EXAMPLES.items()
    for line in lines
    for part in re.split(r" \| | && | > ", line)
    if "hqctl " in part
]


@pytest.mark.parametrize(("name", "line"), PARTS)
def test_every_example_is_understood(name: str, line: str) -> None:
    _, *words = shlex.split(line.partition("hqctl ")[1] + line.partition("hqctl ")[2])
    context = cli.make_context("hqctl", words)
    group: click.Group = cli
    while isinstance(group, click.Group):
        command_name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(command_name, rest, parent=context)
        group = command  # type: ignore[assignment]


def test_every_example_belongs_to_a_command_and_is_in_its_help() -> None:
    assert EXAMPLES.keys() <= COMMANDS.keys()
    for name, lines in EXAMPLES.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        shown = command.get_help(click.Context(command, info_name=name))
        assert all(f"\n    {line}" in shown for line in lines), name
