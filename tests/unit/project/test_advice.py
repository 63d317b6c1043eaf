"""Every command that a page, a message or a help text names exists, with the options that it is named with."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGES: Final = (
    *("clients", "cms", "console", "control", "federated", "gateways", "hq", "hqapi", "nanny", "serving"),
    *("store", "walle"),
)
COMMANDS: Final = {
    "cms": "cms.main",
    "hq": "hq.main",
    "hq-console": "console.main",
    "hq-federated": "federated.main",
    "hq-gateway": "gateways.main",
    "hqctl": "hqctl.main",
    "instancectl": "instancectl.main",
    "nanny": "nanny.main",
    "walle": "walle.main",
}
_NAMES: Final = "|".join(sorted(COMMANDS, key=len, reverse=True))
_QUOTED: Final = re.compile(rf"`(({_NAMES}) [^`]+)`")
_PLAIN: Final = re.compile(rf"(?<![\w`./@-])(({_NAMES}) [a-z][^`\n\"'|&>;,()<]*)")
# On pages: a line of a block, perhaps with a folder before it; what follows `#` or `|` is another command or none.
PAGES: Final = (
    *(page for page in sorted(ROOT.glob("*.md")) if page.name != "CHANGELOG.md"),  # it names commands that went
    *(page for folder in ("deploy", "distributions") for page in sorted((ROOT / folder).rglob("*.md"))),
    *sorted((ROOT / "docs").glob("*.md")),
)
_BLOCK: Final = re.compile(r"^ *```(?:sh)?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_LINE: Final = re.compile(rf"^ *(?:\$ )?(?:[\w./]*/)?(({_NAMES}) .+)$", re.MULTILINE)
_IN_TEXT: Final = re.compile(rf"`(?:\.venv/bin/)?(({_NAMES}) [^`]+)`")
_END: Final = re.compile(r" +#|;| [|&<>]")
_HOLE: Final = "X"  # what is filled in
_DOTS: Final = ("...", "\N{HORIZONTAL ELLIPSIS}")
_SHORT: Final = ("backup", "init")  # groups that make a command of words that name none: `hq backup FILE`
_PLACEHOLDERS: Final = ("COMMAND",)


def cli(name: str) -> click.Command:
    found = import_module(COMMANDS[name]).cli
    assert isinstance(found, click.Command)
    return found


def texts() -> Iterator[tuple[str, str]]:
    """Each text of a source file or template, with its place."""
    for path in sorted(one for top in PACKAGES for one in (ROOT / top).rglob("*") if one.is_file()):
        place = path.relative_to(ROOT)
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    parts = (str(one.value) if isinstance(one, ast.Constant) else _HOLE for one in node.values)
                    yield f"{place}:{node.lineno}", "".join(parts)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{place}:{node.lineno}", node.value
        elif path.suffix in (".html", ".js"):
            # What a template fills in between two texts is a word like any other.
            text = re.sub(r'" ~ [^"~]+ ~ "|\{\{ [^"{}]+ \}\}', _HOLE, path.read_text())
            for number, line in enumerate(text.splitlines(), 1):
                yield f"{place}:{number}", line


def fault(text: str, *, is_quoted: bool) -> str:
    """What is wrong with an advised command; empty: nothing, or the text is prose."""
    words = [_HOLE if one in _DOTS else one for one in shlex.split(text.replace("'", "\\'"))]
    command: click.Command = cli(words[0])
    context = click.Context(command, **command.context_settings)
    known = set(_options(command))
    rest = words[1:]
    is_command = is_quoted
    while rest and isinstance(command, click.Group):
        if rest[0].startswith("-") and command.name not in _SHORT:
            if rest[0].partition("=")[0] not in _options(command):
                break
            rest = _behind_option(command, rest)
            continue
        inner = command.get_command(context, rest[0].rstrip(".:"))
        if inner is None and command.name in _SHORT:
            return ""
        if inner is None:
            is_placeholder = rest[0] in _PLACEHOLDERS or rest[0].startswith(_HOLE)
            return f"{command.name} has no {rest[0]!r}" if is_command and not is_placeholder else ""
        command, context = inner, click.Context(inner, parent=context)
        known |= set(_options(command))
        is_command, rest = True, rest[1:]
    unknown = [one for one in rest if re.match(r"--?[a-z]", one) and one.partition("=")[0].rstrip(".:") not in known]
    if unknown:
        return f"{command.name} has no option {unknown[0]}"
    return _parsed(command, context, rest) if is_quoted and not isinstance(command, click.Group) else ""


def _behind_option(command: click.Command, words: list[str]) -> list[str]:
    """The words behind a group's option and its value."""
    takes_value = any(
        words[0] in one.opts and not one.is_flag for one in command.params if isinstance(one, click.Option)
    )
    return words[1 + takes_value :]


def _parsed(command: click.Command, context: click.Context, words: list[str]) -> str:
    """Parse with the command's own parser; options of the commands above may follow it."""
    if not all(one.partition("=")[0] in _options(command) for one in words if one.startswith("--")):
        return ""
    named = [one for one in command.params if isinstance(one, click.Option) and not one.is_flag]
    if words and any(words[-1] in one.opts for one in named):
        words = [*words, _HOLE]  # the value of the last option may be left to the reader
    try:
        given, more, _ = command.make_parser(context).parse_args([*words])
    except click.UsageError as error:
        return error.format_message()
    if more:
        return f"{command.name} takes no {more[0]!r}"
    chosen = [(one.type, given.get(one.name or "")) for one in command.params if isinstance(one.type, click.Choice)]
    return next((f"{command.name} takes no {value!r}" for kind, value in chosen if not _is_choice(kind, value)), "")


def _is_choice(kind: click.Choice[Any], value: object) -> bool:
    is_word = isinstance(value, str) and value.islower()  # capitals stand for what the reader chooses
    return not is_word or value in [str(one).lower() for one in kind.choices]


def _options(command: click.Command) -> list[str]:
    return ["--help", "-h", *(opt for one in command.params for opt in (*one.opts, *one.secondary_opts))]


def test_each_command_that_a_text_advises_exists_with_its_options() -> None:
    faults, looked_at = [], 0
    for place, text in texts():
        for pattern, is_quoted in ((_QUOTED, True), (_PLAIN, False)):
            for found in pattern.finditer(text):
                looked_at += 1
                if wrong := fault(found[1], is_quoted=is_quoted):
                    faults.append(f"{place}: {found[1]}: {wrong}")
    assert looked_at > 150
    assert faults == [], "\n".join(faults)


def commands(page: Path) -> Iterator[str]:
    """Our own commands in the page's blocks of shell commands and between backticks."""
    text = page.read_text()
    for block in _BLOCK.findall(text):
        for line in _LINE.findall(block.replace("\\\n", " ")):
            yield _END.split(line[0])[0]
    for found in _IN_TEXT.finditer(_BLOCK.sub("", text)):
        yield _END.split(" ".join(found[1].split()))[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_on_a_page_exists_with_its_options(page: Path) -> None:
    faults = [f"{text}: {wrong}" for text in commands(page) if (wrong := fault(text, is_quoted=True))]
    assert faults == [], "\n".join(faults)


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("nanny snapshot create web -f service.yaml", True),
        ("nanny snapshot add web -f service.yaml", False),
        ("nanny snapshot add web --content FILE", True),
        ("nanny control opened", True),
        ("nanny target web broken", True),
        ("hqctl --server 127.0.0.1:7071 find web --ready", False),
        ("hqctl --server 127.0.0.1:7071 found web", True),
        ("hqctl epoch confirm --why TEXT", True),
        ("hqctl epoch confirm --reason \N{HORIZONTAL ELLIPSIS}", False),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(text: str, *, is_wrong: bool) -> None:
    assert bool(fault(text, is_quoted=True)) == is_wrong
