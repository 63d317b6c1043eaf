"""-w: lists that are asked for again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import click
import pytest
from click.testing import CliRunner

from hqcli.exits import Exit
from hqcli.terminal import print_table
from hqcli.watching import watch
from hqctl.commands.kinds import get_kind
from hqctl.main import cli
from hqkinds.names import WORDS, kind_named
from wallectl.main import group

WALLE = group({})

Round = list[tuple[str, str]] | Exit


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def watched(command: click.Command) -> bool:
    return any(option.name == "watching" for option in command.params)


def test_every_list_of_wall_e_and_of_the_cms_can_be_watched() -> None:
    found = dict(commands(WALLE, "walle")) | dict(commands(cli, "hqctl"))
    lists = {path for path in found if path.startswith("walle") and path.endswith(" list")}
    lists |= {"walle incidents", "hqctl budget list", "hqctl windows list", "hqctl disruptions", "hqctl top"}
    assert len(lists) == 10
    assert [path for path in lists if not watched(found[path])] == []
    assert all(watched(get_kind(kind)) for word in WORDS if (kind := kind_named(word)))


class Ended(Exception):
    """The table is not looked at any more."""


def shown(rounds: list[Round]) -> Callable[[], None]:
    def show() -> None:
        if not rounds:
            raise Ended
        match rounds.pop(0):
            case Exit() as code:
                sys.exit(code)
            case rows:
                print_table(("HOST", "STATUS"), rows)

    return show


def test_in_a_pipe_changed_lines_follow_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    rounds: list[Round] = [
        [("h1", "ready"), ("h2", "ready")],
        [("h1", "ready"), ("h2", "ready")],
        Exit.UNAVAILABLE,
        [("a-longer-name", "dead"), ("h2", "reboot")],
    ]
    pauses = list[float]()
    with pytest.raises(Ended):
        watch(shown(rounds), pauses.append)
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        *("HOST STATUS", "h1 ready", "h2 ready"),
        *("- h1 ready", "- h2 ready", "+ a-longer-name dead", "+ h2 reboot"),
    ]
    assert len(pauses) == 4
    assert min(pauses) == 2.0


@pytest.mark.parametrize("rounds", [[Exit.UNAVAILABLE], [[("h1", "ready")], Exit.NOT_ALLOWED]])
def test_a_watched_list_ends_if_nobody_answers_the_first_time_or_the_caller_is_denied(rounds: list[Round]) -> None:
    with pytest.raises(SystemExit) as ended:
        watch(shown(rounds), lambda _: None)
    assert ended.value.code in (Exit.UNAVAILABLE, Exit.NOT_ALLOWED)


def test_formats_for_programs_cannot_be_watched_and_a_subcommand_is_not_repeated() -> None:
    refused = CliRunner().invoke(WALLE, ["hosts", "list", "-w", "-o", "json"])
    assert refused.exit_code == Exit.USAGE
    assert "-w shows a table; not json" in refused.output
    away = CliRunner().invoke(cli, ["disruptions", "-w", "why", "t", "--cms", "127.0.0.1:1"])
    assert away.exit_code == Exit.UNAVAILABLE
