"""-w: a list that is asked for again until Ctrl-C; redrawn on a terminal, in a pipe the lines that change."""

from __future__ import annotations

import functools
import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any, Final, TypeVar

import click

from hqcli.exits import Exit
from hqcli.formats import is_data

F = TypeVar("F", bound=Callable[..., Any])
_REDRAW_S: Final = 2.0
_PAUSES: Final = 9  # for each second of reading: a long list costs its server a tenth of the time at most
_COMES_BACK: Final = (Exit.UNAVAILABLE, Exit.TIMEOUT)


class _Page(io.StringIO):
    """Collects what is printed; a terminal or not, as the stream that it takes the place of."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def watched(function: F) -> F:
    """Add `-w` to a command that prints a list. Write it above the decorators that pass a session."""

    @click.option("-w", "--watch", "watching", is_flag=True, help="Keep showing what changes until Ctrl-C.")
    @functools.wraps(function)
    def command(*args: Any, watching: bool, **kwargs: Any) -> Any:
        show = functools.partial(function, *args, **kwargs)
        if not watching or click.get_current_context().invoked_subcommand is not None:
            return show()
        if is_data(kwargs["output"]) or kwargs["output"] == "name":
            raise click.UsageError(f"-w shows a table; not {kwargs['output']}")
        return watch(show)

    return command  # type: ignore[return-value]


def watch(show: Callable[[], Any], sleep: Callable[[float], None] = time.sleep) -> None:
    """Print what `show` prints, and print it anew whenever it changes.

    Exits with the code of `show` if that fails, unless somebody answered before and now nobody does: then it goes on.
    """
    is_terminal, before = sys.stdout.isatty(), None
    while True:
        began, page = time.monotonic(), _Page(is_terminal=is_terminal)
        with redirect_stdout(page):
            code = _exit_code(show)
        if code and (before is None or code not in _COMES_BACK):
            sys.exit(code)
        if not code:
            text = page.getvalue()
            if is_terminal and text != before:
                click.clear()
                click.echo(text, nl=False)
            elif before is None:
                click.echo(text, nl=False)
            else:
                for line in changed_lines(before, text):
                    click.echo(line)
            before = text
        try:
            sleep(max(_REDRAW_S, _PAUSES * (time.monotonic() - began)))
        except KeyboardInterrupt:
            sys.exit(Exit.INTERRUPTED)


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Lines that are gone, as `- …`, then new ones, as `+ …`; other widths of columns are no change."""
    old, new = ({" ".join(line.split()): line for line in text.splitlines()} for text in (before, after))
    yield from (f"- {line}" for words, line in old.items() if words not in new)
    yield from (f"+ {line}" for words, line in new.items() if words not in old)


def _exit_code(show: Callable[[], Any]) -> int:
    try:
        show()
    except SystemExit as end:
        return int(end.code or 0)
    return 0
