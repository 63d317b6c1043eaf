"""The config file: contexts, and which of them is asked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.hqctl.conftest import Done, clean_environment

Run = Callable[..., Done]


@pytest.fixture
def config(tmp_path: Path, server: str) -> str:
    """A config file with a context that works and one that does not."""
    path = tmp_path / "config.yaml"
    path.write_text(
        f"# kept by hand\ncurrent-context: nowhere\ncontexts:\n  east: {{servers: ['{server}'], timeout: 20s}}\n"
        "  nowhere: {servers: ['127.0.0.1:1'], ca: ca.pem, token-file: /etc/token}\n"
    )
    return str(path)


def test_the_current_context_is_asked(run: Run, config: str) -> None:
    assert run("config", "use-context", "east", HQ_CONFIG=config).out == "Switched to context east.\n"
    assert run("config", "current-context", HQ_CONFIG=config).out == "east\n"
    assert run("count", HQ_CONFIG=config).code == 0
    assert Path(config).read_text().startswith("# kept by hand\ncurrent-context: east\n")


def test_a_context_can_be_named_for_one_call(run: Run, config: str) -> None:
    assert run("--context", "east", "count", HQ_CONFIG=config).code == 0
    assert run("count", "--context", "east", HQ_CONFIG=config, HQ_SERVER="127.0.0.1:1").code == 0


def test_a_server_named_by_flag_or_variable_beats_the_current_context(run: Run, config: str, server: str) -> None:
    assert run("count", HQ_CONFIG=config, HQ_SERVER=server).code == 0
    assert run("count", "--server", server, HQ_CONFIG=config).code == 0


def test_contexts_are_listed_and_shown_with_names_of_files_only(run: Run, config: str) -> None:
    rows = run("config", "get-contexts", HQ_CONFIG=config).lines
    assert rows[1][:2] == ["-", "east"]
    assert rows[2] == ["*", "nowhere", "yes", "yes", "127.0.0.1:1"]
    shown = run("config", "view", "-o", "jsonpath=.contexts.nowhere.ca", HQ_CONFIG=config)
    assert shown.out == f"{Path(config).parent / 'ca.pem'}\n"


def test_an_unknown_context_is_refused_with_a_list_of_the_known_ones(run: Run, config: str) -> None:
    done = run("config", "use-context", "west", HQ_CONFIG=config)
    assert done.code == 3
    assert "east, nowhere" in done.err
    assert run("count", "--context", "west", HQ_CONFIG=config).code == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("contexts: [east]", "must hold `contexts:`"),
        ("contexts: {east: {server: a}}", "contexts.east.server: unknown field"),
        ("contexts: {east: {ca: a}}", "contexts.east.servers: is missing"),
        ("contexts: {east: {servers: a, timeout: soon}}", "contexts.east.timeout: 'soon'"),
        ("contexts: {east: {servers: a, timeout: 0}}", "contexts.east.timeout: must be more than 0"),
        ("contexts: {", "is not valid YAML: line"),
        ("contexts: {}\ncontexts: {}", "line 2, column 1: duplicate key 'contexts'"),
    ],
)
def test_a_faulty_config_is_told_in_one_line_with_the_field(run: Run, tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    done = run("count", HQ_CONFIG=str(path))
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1


def test_without_a_config_there_are_no_contexts(run: Run, tmp_path: Path) -> None:
    nowhere = {"HQ_CONFIG": "", "XDG_CONFIG_HOME": str(tmp_path)}
    done = run("config", "get-contexts", **nowhere)
    assert (done.code, done.out) == (0, "")
    path = tmp_path / "hq" / "config.yaml"
    told = f"hqctl: there is no config file {path}: write one, e.g. `contexts: {{east: {{servers: ["
    assert done.err.startswith(told)
    named = run("--context", "east", "count", **nowhere)
    assert (named.code, named.err.startswith(told)) == (2, True)


def test_a_config_that_is_named_and_does_not_exist_is_a_mistake(run: Run, tmp_path: Path) -> None:
    done = run("count", HQ_CONFIG=str(tmp_path / "none.yaml"))
    assert (done.code, "none.yaml: there is no such file" in done.err) == (2, True)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_each_shell_has_a_completion(run: Run, shell: str) -> None:
    assert "_HQCTL_COMPLETE" in run("completion", shell).out


def test_completion_knows_commands_and_options(run: Run) -> None:
    asked = {"_HQCTL_COMPLETE": "zsh_complete", "COMP_CWORD": "1"}
    assert "status" in run(**asked, COMP_WORDS="hqctl sta").out
    assert "--sort-by" in run(**{**asked, "COMP_CWORD": "2"}, COMP_WORDS="hqctl find --so").out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("gett",), "Did you mean get?"),
        (("apply",), "Missing option '-f' / '--filename'"),
        (("suspend", "n1", "--for", "soon", "--reason", "x"), "'soon' is not a valid duration"),
        (("find", "-o", "tabel"), "not one of table, wide"),
        (("guard", "force", "--for", "0s", "--reason", "x"), "'--for': '0s' is too short: at least 1s"),
        (("guard", "release", "--for", "0.0001s", "--reason", "x"), "'--for': '0.0001s' is too short: at least 1s"),
        (("report", "a", "r1", "--ready", "--every", "0s"), "--every: '0s' is too short: at least 1s"),
        (("token", "sign", "--for", "0s"), "'--for': '0s' is too short: at least 1s"),
        (("count", "--timeout", "0"), "'0' is too short: at least 0.001s"),
    ],
)
def test_a_mistake_is_one_line_with_the_way_to_help(run: Run, arguments: tuple[str, ...], told: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert done.err.endswith("--help`.\n")
    assert done.err.count("\n") == 1


def test_a_full_disk_is_told_in_one_line() -> None:
    command = (sys.executable, "-m", "hqctl.main", "completion", "bash")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=clean_environment(), check=False)
    assert done.returncode == 1
    assert done.stderr.decode() == "hqctl: the output cannot be written: No space left on device.\n"
