"""The command-line contract: what is the same in all programs."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from hqcli.exits import Exit
from hqcli.formats import Format
from hqcli.options import addresses_in
from hqcli.placing import place_options

PROGRAMS: Final = {
    "cms": "cms.main",
    "hq": "hq.main",
    "hq-console": "console.main",
    "hq-federated": "federated.main",
    "hq-gateway": "gateways.main",
    "hq-recorder": "recorder.main",
    "hqctl": "hqctl.main",
    "instancectl": "instancectl.main",
    "nanny": "nanny.main",
    "walle": "walle.main",
}
ASK: Final = {"hqctl": ("get", "x"), "nanny": ("service", "list"), "walle": ("hosts", "list")}  # one reading command
CREDENTIALS: Final = {"--ca", "--cert", "--key", "--token-file"}
_READS: Final = re.compile(r"(get|list|find|show|status|why|history|count|describe|explain|events|incidents)$")
# What is text for people or files by its nature: a script that a shell reads, a YAML file of another program.
_OTHER_OUTPUT: Final = {
    *("hqctl auth explain", "hqctl disruptions open"),
    "instancectl status",
}


def cli(program: str) -> click.Command:
    found = import_module(PROGRAMS[program]).cli
    assert isinstance(found, click.Command)
    return found


def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, **command.context_settings)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(below, (*path, name))


COMMANDS: Final = [(path, command) for program in PROGRAMS for path, command in walk(cli(program), (program,))]
LEAVES: Final = [(path, command) for path, command in COMMANDS if not isinstance(command, click.Group)]


def flags(command: click.Command) -> set[str]:
    """The flags of a command, without those that only say what to write instead."""
    shown = (one for one in command.params if not getattr(one, "hidden", False))
    return {name for one in shown for name in (*one.opts, *one.secondary_opts)}


def option(command: click.Command, flag: str) -> click.Parameter | None:
    return next((one for one in command.params if flag in one.opts), None)


def named(path: tuple[str, ...]) -> str:
    return " ".join(path)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_says_its_version_and_explains_itself(program: str) -> None:
    for flag in ("--version", "--help", "-h"):
        answer = CliRunner().invoke(cli(program), [flag])
        assert answer.exit_code == Exit.OK, answer.output
        assert answer.output.strip()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("program", [one for one in PROGRAMS if one != "hq-federated"])  # it has no commands
def test_each_program_with_commands_completes_them(program: str, shell: str) -> None:
    answer = CliRunner().invoke(cli(program), ["completion", shell], prog_name=program)
    assert answer.exit_code == Exit.OK, answer.output
    assert f"_{program.upper().replace('-', '_')}_COMPLETE" in answer.output


def test_each_command_and_each_option_says_in_a_line_what_it_is() -> None:
    assert [named(path) for path, command in COMMANDS if not command.get_short_help_str().strip()] == []
    silent = [
        f"{named(path)} {one.opts[0]}"
        for path, command in COMMANDS
        for one in command.params
        if isinstance(one, click.Option) and not one.hidden and not (one.help or "").strip() and one.name != "failing"
    ]
    assert silent == []


def test_commands_that_read_have_output_for_scripts() -> None:
    lacking = [
        named(path)
        for path, command in LEAVES
        if _READS.search(path[-1]) and "--output" not in flags(command) and named(path) not in _OTHER_OUTPUT
    ]
    assert lacking == []


def test_output_has_one_name_and_one_set_of_formats() -> None:
    for path, command in COMMANDS:
        found = option(command, "--output")
        if found is None:
            continue
        assert "-o" in found.opts, path
        formats = found.type.formats if isinstance(found.type, Format) else getattr(found.type, "choices", ())
        assert set(formats) <= {"table", "text", "wide", "lines", "json", "yaml", "name", "jsonpath=…"}, path
    assert [named(path) for path, command in COMMANDS if "--json" in flags(command)] == []


def test_a_command_with_json_output_has_yaml_and_jsonpath_too() -> None:
    lacking = [
        named(path)
        for path, command in COMMANDS
        if (found := option(command, "--output")) is not None and isinstance(found.type, Format)
        if "json" in found.type.formats and not {"yaml", "jsonpath=…"} <= {*found.type.formats}
    ]
    assert lacking == ["hqctl watch", "instancectl status"]  # an endless stream of lines; a node without our YAML


def test_lists_are_sorted_as_asked_for() -> None:
    lists = [(path, command) for path, command in LEAVES if path[-1] == "list" or path[1:] in (("get",), ("find",))]
    assert [named(path) for path, command in lists if "--sort-by" not in flags(command)] == []
    assert len(lists) > 10
    for path, command in lists:
        if path[1:] not in (("get",), ("find",)):
            needed = ["web"] if any(one.required for one in command.params) else []
            answer = CliRunner().invoke(
                cli(path[0]), [*path[1:], *needed, "--sort-by", "colour"], env={"HQ_CONFIG": ""}
            )
            assert (answer.exit_code, "columns are" in answer.output) == (Exit.USAGE, True), answer.output


def test_the_reason_for_an_order_is_given_in_one_way() -> None:
    wrong = [
        named(path)
        for path, command in COMMANDS
        if (found := option(command, "--reason")) is not None and "-m" not in found.opts
        if path != ("hqctl", "report")  # the reason of a condition, a word of the API
    ]
    assert wrong == []
    other = [named(path) for path, command in COMMANDS if "-m" in flags(command) and "--reason" not in flags(command)]
    assert other == []


def test_a_command_takes_all_flags_of_credentials_or_none() -> None:
    for path, command in LEAVES:
        if path[:2] == ("hqctl", "token"):  # its --key signs tokens
            continue
        given = flags(command) & CREDENTIALS
        assert given in (set(), CREDENTIALS), (path, given)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_unknown_flag_is_a_usage_error_that_names_it(program: str) -> None:
    answer = CliRunner().invoke(cli(program), ["--no-such-flag"])
    assert answer.exit_code == Exit.USAGE
    assert "--no-such-flag" in answer.output


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("program", ASK)
def test_an_unreachable_server_is_named_with_the_next_step(program: str, is_before: bool) -> None:
    """Whether the program's options stand before or after the command."""
    where = {"hqctl": "--server", "nanny": "--nanny", "walle": "--server"}[program]
    options = [where, "127.0.0.1:1", "--timeout", "5s", "-o", "json"]
    words = [*options, *ASK[program]] if is_before else [*ASK[program], *options]
    answer = CliRunner().invoke(cli(program), words, env={"HQ_CONFIG": ""})
    assert answer.exit_code == Exit.UNAVAILABLE
    said = json.loads(answer.stderr)["error"]
    assert said["program"] == program
    assert "127.0.0.1:1" in said["message"]
    assert not re.search(r"grpc|protobuf|StatusCode|Traceback", said["message"])
    assert answer.stdout == ""


# Program, a reading command, the flag that says where its server is.
_ASKED: Final = (
    ("hqctl", ("get", "x"), "--server"),
    ("hqctl", ("budget", "list"), "--cms"),
    ("hqctl", ("history", "events"), "--recorder"),
    ("nanny", ("service", "list"), "--nanny"),
    ("walle", ("hosts", "list"), "--server"),
)


@pytest.mark.parametrize(
    ("address", "why"), [("http://a:1", "without a scheme"), ("a:b", "not a valid port"), ("a:0", "not a valid port")]
)
@pytest.mark.parametrize(("program", "command", "flag"), _ASKED)
def test_a_wrong_address_is_a_usage_error_that_says_what_to_write(
    program: str, command: tuple[str, ...], flag: str, address: str, why: str
) -> None:
    answer = CliRunner().invoke(cli(program), [*command, flag, address], env={"HQ_CONFIG": ""})
    assert answer.exit_code == Exit.USAGE, answer.output
    assert all(part in answer.output for part in (address, why, "HOST:PORT")), answer.output


def test_an_address_may_be_a_unix_socket() -> None:
    """The programs of Wall-E in `make cloud` are called that way."""
    assert addresses_in(["unix:/run/walle.sock, a"]) == ("unix:/run/walle.sock", "a:7071")


@pytest.mark.parametrize("flag", ["--ca", "--token-file"])
@pytest.mark.parametrize(("program", "command"), [(program, command) for program, command, _ in _ASKED])
def test_a_missing_file_is_named_with_its_flag(program: str, command: tuple[str, ...], flag: str) -> None:
    answer = CliRunner().invoke(cli(program), [*command, flag, "/no/such"], env={"HQ_CONFIG": ""})
    assert answer.exit_code == Exit.NOT_ALLOWED, answer.output
    assert f"{flag} /no/such: cannot be read: No such file or directory: give one that" in answer.output


@pytest.mark.parametrize(
    ("flags_", "code", "said"),
    [
        (("--server", "http://a:1"), Exit.USAGE, "--server: http://a:1: give HOST:PORT, without a scheme"),
        (("--server", "a:1", "--ca", "/no/such"), Exit.REFUSED, "--ca /no/such: cannot be read"),
        (("--server", "a:1", "--token-file", "/no/such"), Exit.REFUSED, "--token-file /no/such: cannot be read"),
    ],
)
@pytest.mark.parametrize("command", [("node",), ("run", "--instance", "i"), ("host-agent",)])
def test_agents_report_wrong_flags_before_they_begin(
    tmp_path: Path, command: tuple[str, ...], flags_: tuple[str, ...], code: Exit, said: str
) -> None:
    socket = "--host-agent" if command[0] == "run" else "--socket"
    place = () if command[0] == "host-agent" else ("--dir", str(tmp_path / "i"))
    words = [*command, "--node", "n", *place, socket, str(tmp_path / "s"), *flags_]
    answer = CliRunner().invoke(cli("instancectl"), words)
    assert (answer.exit_code, said in answer.output) == (code, True), answer.output


_LITERAL_EXIT: Final = re.compile(r"(?:sys\.exit|SystemExit|ctx\.exit)\((?:int\()?(\d+)\)")
_CODE_ON_A_PAGE: Final = re.compile(r"^\| (\d+) \|", re.MULTILINE)
_TABLE_OF_CODES: Final = re.compile(r"^\| exit code[^\n]*\n\|[ -|]+\n((?:\|.*\n)+)", re.MULTILINE)


def test_only_exit_codes_of_the_contract_are_used_and_described() -> None:
    """Codes given by name are members of `Exit`; test_refusals.py checks that each command uses the right one."""
    root = Path(__file__).resolve().parents[3]
    folders = {PROGRAMS[one].partition(".")[0] for one in PROGRAMS} - {"hqctl", "instancectl"}
    sources = [path for one in ("clients", *folders) for path in (root / one).rglob("*.py")]
    used = {int(code) for path in sources for code in _LITERAL_EXIT.findall(path.read_text())}
    assert used <= {Exit.REFUSED, Exit.INTERRUPTED, Exit.OK}
    pages = {path.name: _TABLE_OF_CODES.findall(path.read_text()) for path in (root / "docs").glob("*.md")}
    tables = {name: "".join(found) for name, found in pages.items() if found}
    assert {"hqctl.md", "nanny.md", "nanny-service.md"} <= tables.keys()
    for name, text in tables.items():
        assert {int(code) for code in _CODE_ON_A_PAGE.findall(text)} <= set(Exit), name


_HOSTS: Final = ("hosts", "list")


@pytest.mark.parametrize(
    ("program", "words", "placed"),
    [
        ("walle", ["-o", "json", *_HOSTS], [*_HOSTS, "--output", "json"]),
        ("walle", ["-ojson", "hosts", "--server=a:1", "list"], ["--server=a:1", *_HOSTS, "--output", "json"]),
        ("walle", [*_HOSTS, "--server", "a:1", "--rack", "r"], ["--server", "a:1", *_HOSTS, "--rack", "r"]),
        ("nanny", ["--nanny", "a:1", "service", "list"], ["service", "list", "--nanny", "a:1"]),
        ("hqctl", ["-o", "json", "find", "--server", "a:1"], ["find", "--output", "json", "--server", "a:1"]),
        ("hqctl", ["find", "--", "-o", "json"], ["find", "--", "-o", "json"]),  # what is no option stays
        ("hqctl", ["-o", "json", "fnd"], ["-o", "json", "fnd"]),  # and what click complains of
        ("walle", ["-o"], ["-o"]),
    ],
)  # fmt: skip
def test_options_of_a_program_may_stand_before_or_after_its_command(
    program: str, words: list[str], placed: list[str]
) -> None:
    found = cli(program)
    assert isinstance(found, click.Group)
    assert place_options(found, words) == placed


def test_an_output_that_a_command_does_not_have_is_refused_by_its_name() -> None:
    answer = CliRunner().invoke(cli("walle"), ["-o", "json", "kill"])
    assert answer.exit_code == Exit.USAGE
    assert "--output" in json.loads(answer.stderr)["error"]["message"]


@pytest.mark.parametrize("program", ASK)
def test_a_mistake_on_the_command_line_is_json_where_json_was_asked_for(program: str) -> None:
    answer = CliRunner().invoke(cli(program), [*ASK[program], "-o", "json", "--no-such-flag"])
    assert answer.exit_code == Exit.USAGE
    assert "--no-such-flag" in json.loads(answer.stderr)["error"]["message"]


@pytest.mark.long
@pytest.mark.parametrize("folder", sorted({one.partition(".")[0] for one in PROGRAMS.values()}))
def test_no_program_shows_the_log_of_grpc(folder: str) -> None:
    """gRPC reads at its import how much to log (decision 217)."""
    code = f"""
import os, sys
class Look:
    def find_spec(name, *_):
        if name == "grpc._cython.cygrpc":
            print(os.environ["GRPC_VERBOSITY"])
sys.meta_path.insert(0, Look)
import {folder}.main, hqclient, grpc
"""
    here = Path(__file__).resolve().parents[3]
    env = {"PATH": os.defpath, "PYTHONPATH": f"{here}:{here}/proto:{here}/clients"}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=here, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("ERROR\n", "")


# Each command that serves, and what it needs to begin though no other server is there. {} is a folder of its own.
_SERVERS: Final = {
    ("cms", "dev"): ("--store", "memory"),
    ("cms", "serve"): ("--etcd", "127.0.0.1:1"),
    ("hq", "dev"): ("--store", "memory"),
    ("hq", "serve"): ("--etcd", "127.0.0.1:1"),
    ("hq-console", "serve"): (),
    ("hq-federated",): ("--config", "{}/federated.yaml"),
    ("hq-gateway", "consul"): ("--hq", "127.0.0.1:1", "--all-services", "--state-dir", "{}"),
    ("hq-gateway", "dns"): ("--hq", "127.0.0.1:1", "--all-services", "--state-dir", "{}", "--dns", "127.0.0.1:0"),
    ("hq-gateway", "xds"): ("--hq", "127.0.0.1:1", "--all-services", "--state-dir", "{}"),
    ("hq-recorder", "serve"): ("--dir", "{}", "--location", "east=127.0.0.1:1"),
    ("nanny", "dev"): ("--store", "memory"),
    ("nanny", "serve"): ("--etcd", "127.0.0.1:1"),
    ("walle", "dev"): ("--store", "memory"),
    ("walle", "serve"): ("--etcd", "127.0.0.1:1"),
}  # fmt: skip
_FEDERATED: Final = "locations:\n  east: {replicas: ['127.0.0.1:1']}\n"


def served(path: tuple[str, ...], folder: Path, *more: str) -> subprocess.Popen[str]:
    """The process of a server, with free ports."""
    (folder / "federated.yaml").write_text(_FEDERATED)
    here = Path(__file__).resolve().parents[3]
    words = [sys.executable, "-m", PROGRAMS[path[0]], *path[1:], *(one.format(folder) for one in _SERVERS[path])]
    grpc = ("--grpc", "127.0.0.1:0") if "--grpc" in flags(dict(LEAVES)[path]) else ()
    env = {"PATH": os.defpath, "PYTHONPATH": f"{here}:{here}/proto:{here}/clients"}
    told = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([*words, *grpc, "--http", "127.0.0.1:0", *more], env=env, cwd=folder, **told)  # type: ignore[call-overload,no-any-return]


def test_every_server_is_held_to_its_exit_codes() -> None:
    serving = {path for path, command in LEAVES if "--http" in flags(command)}
    assert serving == set(_SERVERS)


@pytest.mark.parametrize("path", _SERVERS, ids=named)
def test_a_server_with_a_wrong_flag_or_file_is_a_usage_error(path: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "federated.yaml").write_text(_FEDERATED)
    right = [*path[1:], *(one.format(tmp_path) for one in _SERVERS[path])]
    for wrong, said in (
        ("--http", "nonsense"),
        ("--log-level", "loud"),
        ("--tls-cert", "/no/such"),
        ("--config", "/no/such"),
    ):
        if wrong in flags(dict(LEAVES)[path]):
            answer = CliRunner().invoke(cli(path[0]), [*right, wrong, said])
            assert (answer.exit_code, wrong in answer.output) == (Exit.USAGE, True), answer.output


@pytest.mark.long
@pytest.mark.parametrize("path", _SERVERS, ids=named)
def test_a_server_ends_with_the_exit_codes_of_the_contract(path: tuple[str, ...], tmp_path: Path) -> None:
    """1: its address is taken. 0: it was told to stop, even while its store is away."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = served(path, tmp_path, "--http", address)
        said = ended.communicate(timeout=60)[0]
    assert ended.returncode == Exit.REFUSED, said
    why = f"cannot listen on {address}: Address already in use (choose another address with --http or "
    assert said.splitlines()[-1].startswith(f"{path[0]}: {why}"), said
    for number in (signal.SIGTERM, signal.SIGINT):
        running = served(path, tmp_path)
        assert running.stdout is not None
        said = ""
        while "127.0.0.1:" not in (line := running.stdout.readline()):
            said += line
        running.send_signal(number)
        more = running.communicate(timeout=60)[0]
        assert (running.returncode, "Traceback" in more) == (Exit.OK, False), said + line + more
