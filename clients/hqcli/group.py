"""A command line of many commands that starts fast: each is imported when it is used."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from hqcli.complaints import complaints_as_asked
from hqcli.placing import place_options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
OK, REFUSED, USAGE, INTERRUPTED = 0, 1, 2, 130


def _as_it_is(command: click.Command) -> click.Command:
    return command


class LazyGroup(click.Group):
    """A group that knows its commands by name, imports one when it is called, and reports usage errors in one line.

    Args:
        package: where the modules of `commands` are.
        commands_by_name: module (in `package`, or by its full name), attribute, help in one line.
        complain: prints an error on stderr.
        aliases: other names.
        finish: called with each imported command, to complete it.
        headings: the help's headings, with the commands under each. Default: all under one.
    """

    def __init__(
        self,
        *args: Any,
        package: str,
        commands_by_name: Mapping[str, tuple[str, str, str]],
        complain: Callable[[str], None],
        aliases: Mapping[str, str] | None = None,
        finish: Callable[[click.Command], click.Command] = _as_it_is,
        headings: Mapping[str, Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self._table = commands_by_name
        self._complain = complain
        self._aliases = aliases or {}
        self._finish = finish
        self._headings = headings or {"Commands": list(commands_by_name)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = self._aliases.get(cmd_name, cmd_name)
        if name not in self._table:
            return None
        module, attribute, _ = self._table[name]
        place = module if "." in module else f"{self._package}.{module}"
        command = getattr(importlib.import_module(place), attribute)
        assert isinstance(command, click.Command)
        return self._finish(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in self._headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self._table[name][2]) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        # click's own would import every command for its help text, each time the user presses Tab.
        return [CompletionItem(n, help=text) for n, (_, _, text) in self._table.items() if n.startswith(incomplete)]

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        words = place_options(self, sys.argv[1:] if args is None else args)
        if not extra.pop("standalone_mode", True):
            return super().main(words, standalone_mode=False, **extra)
        with complaints_as_asked(words):
            return self._main_alone(words, **extra)

    def _main_alone(self, args: Sequence[str] | None, **extra: Any) -> NoReturn:
        try:
            code = super().main(args, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(USAGE)
        except click.ClickException as error:
            self._complain(self._mistake(error))
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except OSError as error:
            if error.errno not in (errno.EPIPE, *_FULL):
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discard what is left in the buffer
            if error.errno in _FULL:  # EPIPE is normal: `hqctl find | head -1`
                self._complain(f"the output cannot be written: {error.strerror}.")
            sys.exit(REFUSED)
        sys.exit(code if isinstance(code, int) else OK)

    def _mistake(self, error: click.ClickException) -> str:
        text = " ".join(error.format_message().replace("valid integer range", "whole number").split())
        context = error.ctx if isinstance(error, click.UsageError) else None
        if context is None:
            return text
        if context.parent is None and text.startswith("No such command"):
            import difflib

            close = difflib.get_close_matches(text.split("'")[1], [*self._table, *self._aliases], n=1)
            text += f" Did you mean {close[0]}?" if close else ""
        end = "" if text.endswith((".", "?")) else "."
        return f"{text}{end} See `{context.command_path} --help`."
