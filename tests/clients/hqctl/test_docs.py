"""docs/hqctl.md: its commands run as written, and it names every command, option and exit code there is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from hqctl.main import COMMANDS, MEANINGS, cli
from tests.clients.hqctl.conftest import ROOT, Hqctl

PAGE = (ROOT / "docs" / "hqctl.md").read_text()
ELSEWHERE = {
    "token": "security.md",
    "budget": "cms.md",
    "windows": "cms.md",
    "disruptions": "cms.md",
    "history": "history.md",
}  # commands with a page of their own
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_EXITS = re.compile(r"\s+# exits with (\d+)$")


def commands_of_the_page() -> list[str]:
    return [line[2:] for block in _BLOCK.findall(PAGE) for line in block.splitlines() if line.startswith("$ ")]


def test_the_commands_of_the_page_run_as_written(hqctl: Hqctl, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for setup in (("apply", "-f", "examples/web.yaml"), ("report", "web-1", "r1", "--ready")):
        assert hqctl(*setup).code == 0
    commands = commands_of_the_page()
    assert len(commands) > 25
    for command in commands:
        wanted = int(found[1]) if (found := _EXITS.search(command)) else 0
        words = shlex.split(_EXITS.sub("", command))
        environment = dict(word.split("=", 1) for word in words[: words.index("hqctl")])
        done = hqctl(*words[words.index("hqctl") + 1 :], **environment)
        assert done.code == wanted, f"{command}\n{done.out}{done.err}"


def all_commands(group: click.Group, *names: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield " ".join((*names, name)), command
            yield from all_commands(command, *names, name)
        else:
            yield " ".join((*names, name)), command


@pytest.mark.parametrize(("name", "command"), list(all_commands(cli)))
def test_every_command_and_option_stands_on_the_page(name: str, command: click.Command) -> None:
    elsewhere = ELSEWHERE.get(name.split()[0])
    page = (ROOT / "docs" / elsewhere).read_text() if elsewhere else PAGE
    shown = name if name in page else name.rpartition(" ")[2]  # `hqctl config view` among its siblings
    assert re.search(rf"\b{re.escape(shown)}\b", page)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            missing = [one for one in (*parameter.opts, *parameter.secondary_opts) if one not in page]
            assert not missing, f"hqctl {name}"


def test_every_exit_code_stands_on_the_page_and_in_the_help() -> None:
    help_text = cli.get_help(click.Context(cli, info_name="hqctl"))
    for code, meaning in MEANINGS.items():
        assert f"| {int(code)} | {meaning} |" in PAGE
        assert meaning in help_text


def test_every_command_is_in_the_help() -> None:
    help_text = cli.get_help(click.Context(cli, info_name="hqctl"))
    assert all(re.search(rf"^  {name} ", help_text, re.MULTILINE) for name in COMMANDS)
