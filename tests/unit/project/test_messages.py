"""A wrong address or file on any command line ends the program with a message that says what to do."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hqcli.exits import Exit
from tests.support.secured import Secured
from tests.unit.project.test_command_line import LEAVES, PROGRAMS, cli, named

NOWHERE: Final = "127.0.0.1:1"
NO_FILE: Final = "/proc/no/such"  # which not even root can make
NEXT_STEP: Final = re.compile(r"[:;,(] ?(or )?(give|write|choose|name|check|create|read|remove|start|repair)\b")
INTERNALS: Final = re.compile(r"StatusCode|Traceback|\[Errno|grpc\.|protobuf|UNAVAILABLE|last error|object at 0x")
ASKS: Final = re.compile(r"start it|name (an)?other|Name other|names others|check --|next: ", re.IGNORECASE)
WRONG_ADDRESSES: Final = {"a:b": "'b' is not a valid port", "http://a:1": "without a scheme"}

# What one command needs besides the option in question, where its own table of options does not say so.
_EXAMPLES: Final = Path(__file__).resolve().parents[3] / "examples"
NEEDED: Final = {
    "(cms|nanny|walle) serve": {"--location": f"a={NOWHERE}"},
    "hq-federated": {"--config": str(_EXAMPLES / "federated.yaml")},
    "hq-recorder serve": {"--dir": "recorder"},
    "hq-gateway .*": {"--hq": NOWHERE, "--service": "web"},
    "hq init create": {"--location": "ams", "--node": "hq-1=10.0.0.1", "--etcd": "hq-1=10.0.0.1"},
    "instancectl run": {"--server": NOWHERE, "--instance": "i", "--dir": "i"},
    "instancectl node": {"--server": NOWHERE, "--dir": "n", "--socket": "s"},
    "instancectl host-agent": {"--server": NOWHERE, "--socket": "s"},
    "hqctl (delete|wait)": {"ids": "web-1"},
    "walle scenarios add (decommission|mass-reboot)": {"host": "h1"},
    "hqctl report": {"--every": "5s", "--ready": "--message=x"},
    "hqctl set": {"words": "web-1 weight=5"},
    "hqctl revision put": {"-f": str(_EXAMPLES / "hqctl/r2.yaml")},
    "hqctl budget apply": {"-f": str(_EXAMPLES / "cms/budgets.yaml")},
    "hqctl windows apply": {"-f": "windows.yaml"},
    "hqctl token sign": {"--key": "token.pem", "--out": "made"},
    "hqctl .*": {"-f": str(_EXAMPLES / "web.yaml")},
    "nanny service set": {"attributes": "description=x"},
    "nanny .*": {"-f": str(_EXAMPLES / "nanny/site.yaml")},
    "walle hosts import": {"file": "hosts.csv"},
    "walle hosts report": {"--failing": "--fine"},
    "walle hosts run": {"operation": "reboot"},
    "walle inventory import": {"file": "machines.yaml"},
    "walle projects automation limits set": {"--ssh": "1d:5"},
}
PLACES: Final = ("--data", "--dir", "--audit-log")  # made when the server begins
FILES: Final = {
    "windows.yaml": "name: web\nservice: web\n",
    "hosts.csv": "name,project\nprod-1,web\n",
    "machines.yaml": "machines: [{name: prod-1, project: [web]}]\n",
}
_CALLS_NOBODY: Final = re.compile(r".* (serve|dev|completion)|hqctl (config|token) .*|hq .*|instancectl .*")
SERVES: Final = re.compile(r".* (serve|dev)|hq-(federated|gateway .*)")
# A file that is not there yet is no mistake.
MAY_BE_MISSING: Final = {
    "hqctl delete -f": "not together with ids",
    "--stop-file": "while it exists, nothing begins",
    "--state-dir": "a cache: without it everything is read anew, and the log says so",
    "instancectl run --file": "it is waited for, and the log says so",
    "instancectl run --host-agent": "the host agent may start later",
}


def has_file(param: click.Parameter) -> bool:
    return isinstance(param.type, click.Path | click.File) or str(param.metavar) in ("FILE", "DIR", "-f")


def has_address(param: click.Parameter) -> bool:
    return "HOST:PORT" in str(param.metavar)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A valid file for each kind of option, by the last word of the option."""
    secured = Secured(tmp_path_factory.mktemp("secured"))
    folder = secured.directory
    (folder / "token").write_text(secured.issuer.token("reader/x"))
    (folder / "revoked").write_text("tokens: []\n")
    found = {
        "ca": secured.authority.cert,
        "cert": secured.server.cert,
        "key": secured.server.key,
        "token-file": folder / "token",
        "password-file": folder / "token",
        "jwks": secured.issuer.jwks,
        "policy": secured.policy,
        "revoked": folder / "revoked",
    }
    return {name: str(path) for name, path in found.items()}


@pytest.fixture(autouse=True)
def workplace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Work in the test's folder, with files that commands take; restore the logging afterwards."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    key = Ed25519PrivateKey.generate()
    (tmp_path / "token.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def calling(program: str) -> Iterator[tuple[tuple[str, ...], click.Command, list[click.Parameter]]]:
    """Commands that call a server of ours, with the options that name it: their own, or their program's."""
    shared = [one for one in cli(program).params if has_address(one) and not getattr(one, "hidden", False)]
    for path, command in LEAVES:
        own = [one for one in command.params if has_address(one)]
        if path[0] == program and (own or shared) and not _CALLS_NOBODY.fullmatch(named(path)):
            yield path, command, own or shared


def words_of(path: tuple[str, ...], command: click.Command, files: dict[str, str], wrong: str, value: str) -> list[str]:
    """The command line with everything required and all credentials; the option `wrong` gets `value`."""
    needed = next((more for name, more in NEEDED.items() if re.fullmatch(name, named(path))), {})
    words = list(path[1:])
    for param in command.params:
        flag = param.opts[0]
        if getattr(param, "hidden", False):
            continue
        given = value if flag == wrong else needed.get(flag) or good_value(param, files)
        if given and isinstance(param, click.Option):
            words += [flag, given]
        elif given or param.required:
            words += given.split()
    return words


def good_value(param: click.Parameter, files: dict[str, str]) -> str:
    """A valid value for a credential or a required option; empty: leave the option out."""
    flag = param.opts[0]
    if kind := next((one for one in files if flag == f"--{one}" or flag.endswith(f"-{one}")), ""):
        return files[kind]
    if flag in ("--issuer", "--trust-domain", "--etcd-user"):
        return "hq.test"
    if not param.required:
        return ""
    if isinstance(param.type, click.Choice):
        return str(param.type.choices[0])
    if isinstance(param.type, click.Path):
        return files.get("policy", "no-file") if param.type.file_okay else "made"
    return NOWHERE if has_address(param) else "1"


def begin_to_serve(_: object, main: Coroutine[Any, Any, None]) -> None:
    main.close()
    raise AssertionError("it begins to serve")


def fault_of(path: tuple[str, ...], words: list[str], param: click.Parameter, value: str, why: str) -> str:
    """What is wrong with how this command ends; empty: nothing."""
    flag = param.opts[0]
    with pytest.MonkeyPatch.context() as patch:
        if SERVES.fullmatch(named(path)) and flag not in PLACES:
            patch.setattr(asyncio.Runner, "run", begin_to_serve)
        answer = CliRunner().invoke(cli(path[0]), words, env={"HQ_CONFIG": ""})
    said = re.sub(r"^(Usage:|Try) .*\n", "", answer.output, flags=re.MULTILINE).strip()
    about = f"{named(path)} {flag} {value}: {answer.exit_code}: {said or answer.exception!r}"
    ends = answer.exit_code in (Exit.REFUSED, Exit.USAGE, Exit.NOT_ALLOWED, Exit.UNAVAILABLE)
    if not ends or isinstance(answer.exception, AssertionError):
        return f"{about}: does not end"
    lacks = [part for part in (flag if flag.startswith("--") else "", value, why) if part not in said]
    if lacks or INTERNALS.search(said) or not NEXT_STEP.search(said):
        return f"{about}: lacks {lacks or 'the next step'}"
    return ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_address_or_file_is_named_with_its_flag_the_reason_and_the_next_step(
    program: str, files: dict[str, str]
) -> None:
    faults = []
    for path, command in LEAVES:
        for param in command.params if path[0] == program else ():
            flag = param.opts[0]
            if getattr(param, "hidden", False) or {flag, f"{named(path)} {flag}"} & MAY_BE_MISSING.keys():
                continue
            wrong = {NO_FILE: ""} if has_file(param) else WRONG_ADDRESSES if has_address(param) else {}
            wrong = {value: why for value, why in wrong.items() if (flag, value) != ("--etcd", "http://a:1")}
            for value, why in wrong.items():
                given = f"x={value}" if "=" in str(param.metavar) else value
                faults.append(fault_of(path, words_of(path, command, files, flag, given), param, value, why))
    assert "\n".join(filter(None, faults)) == ""


# These do not end while nobody answers: they say so and go on, or change this machine's files only.
GOES_ON: Final = re.compile(r"hqctl (watch|events|wait|top|report)|nanny (target|activate|rollback|status)|hq restore")


@pytest.mark.long
@pytest.mark.parametrize("program", ["hqctl", "nanny", "walle", "cms"])
def test_a_server_that_is_away_is_named_with_the_next_step_by_every_command(program: str) -> None:
    faults = []
    for path, command, flags in calling(program):
        for param in flags:
            if GOES_ON.fullmatch(named(path)):
                continue
            where = f"x={NOWHERE}" if "=" in str(param.metavar) else NOWHERE
            words = [*words_of(path, command, {}, "", ""), param.opts[0], where, "--timeout", "1s"]
            answer = CliRunner().invoke(cli(program), words, env={"HQ_CONFIG": ""})
            away = answer.exit_code in (Exit.UNAVAILABLE, Exit.TIMEOUT, Exit.OUTCOME_UNKNOWN)
            said = answer.output.strip()
            if not away or NOWHERE not in said or INTERNALS.search(said) or not ASKS.search(said):
                faults.append(f"{named(path)} {param.opts[0]}: {answer.exit_code}: {said or answer.exception!r}")
    assert "\n".join(faults) == ""
