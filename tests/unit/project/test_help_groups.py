"""The help of a server's command lists its flags by group, the most used first."""

from __future__ import annotations

import re
from typing import Final

import click
import pytest
from click.testing import CliRunner

import cms.main
import console.main
import federated.main
import gateways.main
import hq.main
import nanny.main
import walle.main

_REST: Final = "Security, Logs and traces, Limits, Connections and compression, Other"
_CONTROLLER: Final = "Storage, Listening, HQ and CMS, {}, Processes, " + _REST
GROUPS: Final = {
    ("hq", "serve"): "Storage, Listening, Liveness, Processes, Security, Logs and traces, Memory, Limits, "
    "Connections and compression, Other",
    ("hq", "dev"): "Storage, Listening, Liveness, Processes, Logs and traces, Memory, Limits, "
    "Connections and compression, Other",
    ("hq-federated",): "Locations, Listening, Processes, Memory, " + _REST,
    ("hq-console", "serve"): "Servers, Listening, " + _REST,
    ("cms", "serve"): _CONTROLLER.format("Decisions"),
    ("cms", "dev"): _CONTROLLER.format("Decisions").replace("Security, ", ""),
    ("nanny", "serve"): _CONTROLLER.format("Roll-outs"),
    ("nanny", "dev"): _CONTROLLER.format("Roll-outs").replace("Security, ", ""),
    ("walle", "serve"): _CONTROLLER.format("Repairs"),
    ("walle", "dev"): _CONTROLLER.format("Repairs").replace("Security, ", ""),
    ("hq-gateway", "dns"): "HQ, Publishing, Listening, Processes, " + _REST.replace("Security, ", ""),
    ("hq-gateway", "consul"): "HQ, Publishing, Listening, Processes, " + _REST,
    ("hq-gateway", "xds"): "HQ, Publishing, Listening, Processes, " + _REST,
}
PROGRAMS: Final[dict[str, click.Command]] = {
    "hq": hq.main.cli,
    "hq-federated": federated.main.cli,
    "hq-console": console.main.cli,
    "cms": cms.main.cli,
    "nanny": nanny.main.cli,
    "walle": walle.main.cli,
    "hq-gateway": gateways.main.cli,
}
_HEADING: Final = re.compile(r"(\w[\w -]*):")
_FLAG: Final = re.compile(r"  (?:-\w, )?(--[\w-]+)")


def _flags_by_group(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if heading := _HEADING.fullmatch(line):
            found[heading[1]] = []
        elif found and (flag := _FLAG.match(line)):
            found[list(found)[-1]].append(flag[1])
    return found


def _command(words: tuple[str, ...]) -> click.Command:
    command = PROGRAMS[words[0]]
    if isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[1])
        assert found is not None
        return found
    return command


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_every_flag_is_listed_once_in_a_named_group(words: tuple[str, ...]) -> None:
    answer = CliRunner().invoke(PROGRAMS[words[0]], [*words[1:], "--help"])
    assert answer.exit_code == 0, answer.output
    groups = _flags_by_group(answer.output)
    assert list(groups) == GROUPS[words].split(", ")
    options = [p for p in _command(words).params if isinstance(p, click.Option) and not p.hidden]
    listed = [flag for flags in groups.values() for flag in flags if flag != "--help"]
    assert sorted(listed) == sorted(option.opts[0] for option in options)
    assert set(groups["Other"]) <= {"--help", "--version"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_command_of_many_flags_lists_them_by_group(program: str) -> None:
    """This holds for a new server, too."""
    command = PROGRAMS[program]
    context = click.Context(command)
    commands: dict[tuple[str, ...], click.Command] = {(program,): command}
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            commands[(program, name)] = command.get_command(context, name) or command
    assert {words for words, each in commands.items() if len(each.params) > 25} <= set(GROUPS)


@pytest.mark.parametrize("words", [words for words in GROUPS if words[0] != "hq-console"], ids=" ".join)
def test_every_server_says_by_which_names_browsers_may_call_it(words: tuple[str, ...]) -> None:
    found = CliRunner().invoke(PROGRAMS[words[0]], [*words[1:], "--help"])
    assert "--allowed-host" in _flags_by_group(found.output)["Listening"]
