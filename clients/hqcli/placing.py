"""Options that all commands share stand before or after a command: here each goes to the level that has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

# All take one value.
SHARED: Final = frozenset(
    (
        *("--server", "--nanny", "--context", "--timeout", "--request-timeout"),
        *("--ca", "--cert", "--key", "--token-file", "--output", "-o"),
    )
)


def place_options(program: click.Group, words: Sequence[str]) -> list[str]:
    """The words of a command line, with each shared option behind the innermost command that has it.

    Of walle's words `-o json hosts list --server a:1` becomes `--server a:1 hosts list --output json`. A faulty command
    line stays faulty, for click to say so.
    """
    command: click.Command = program
    levels: list[tuple[click.Command, list[str]]] = [(program, [])]
    ahead: list[str] = []  # options given before any level that has them
    rest = list(words)
    while rest:
        word = rest.pop(0)
        size = _size(word, rest)
        if word == "--":
            levels[-1][1].extend([word, *rest])
            break
        if size:
            option = [word, *rest[: size - 1]]
            del rest[: size - 1]
            has_it = [own for level, own in levels if _has(level, word)]
            if has_it:
                has_it[-1].extend(option)
            elif isinstance(command, click.Group):
                ahead += _with_long_name(option)
            else:
                levels[-1][1].extend(option)
        elif word.startswith("-") or not isinstance(command, click.Group):
            levels[-1][1].append(word)
        else:
            found = command.get_command(click.Context(command), word)
            if found is None:
                return list(words)
            command = found
            levels.append((found, [word]))
    last = levels[-1][1]
    last[1:1] = ahead
    return [word for _, own in levels for word in own] if len(levels) > 1 else list(words)


def _name(word: str) -> str:
    return word.partition("=")[0] if word.startswith("--") else word[:2]


def _size(word: str, rest: Sequence[str]) -> int:
    """How many words a shared option takes with its value; 0: `word` is no shared option."""
    if _name(word) not in SHARED:
        return 0
    has_value = word != _name(word)
    return 1 if has_value or not rest else 2


def _has(command: click.Command, word: str) -> bool:
    return any(_name(word) in one.opts for one in command.params)


def _with_long_name(option: list[str]) -> list[str]:
    """`-o json` as `--output json`: some commands have another -o."""
    word, *value = option
    if word.startswith("--"):
        return option
    return ["--output", *([word[2:]] if word[2:] else value)]
