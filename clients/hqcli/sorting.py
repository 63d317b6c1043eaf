"""--sort-by: the order of what a command lists, by a column of its table or a path into its JSON form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from hqcli.formats import as_dict

Key = tuple[int, float, str]
Value = Callable[[Any], Any]
sort_option = click.option(
    "--sort-by", default="", metavar="COLUMN|PATH", help="Sort by a column, or a path such as .meta.labels.tier."
)


def sort_key(by: str, columns: Mapping[str, Value]) -> Callable[[Any], Key]:
    """What to sort messages by; `columns` by their names in lower case. What has no value comes last.

    Raises:
        BadParameter: there is no such column, and it is not a path.
    """
    value = columns.get(by.lower()) or _by_path(by, columns)
    return lambda item: _key(value(item))


def columns_of(heads: Sequence[str], row: Callable[[Any], Sequence[Any]]) -> dict[str, Value]:
    """The columns of a table by their heads in lower case; `row` makes the cells of an item."""
    return {head.lower(): _cell(row, index) for index, head in enumerate(heads) if head}


def _cell(row: Callable[[Any], Sequence[Any]], index: int) -> Value:
    return lambda item: row(item)[index]


def _by_path(path: str, columns: Mapping[str, Value]) -> Value:
    from hqcli.jsonpath import BadTemplate, values

    if "." not in path and "[" not in path:
        raise _bad(f"unknown column {path}; paths start with a dot, e.g. .meta.labels.tier", columns)
    try:
        values(path.strip("{}"), {})
    except BadTemplate as fault:
        raise _bad(str(fault), columns) from None
    return lambda item: next(iter(values(path.strip("{}"), as_dict(item))), None)


def _bad(fault: str, columns: Mapping[str, Value]) -> click.BadParameter:
    return click.BadParameter(f"{fault}; columns are {', '.join(columns)}", param_hint="--sort-by")


def _key(value: Any) -> Key:
    """A sort key: numbers (64-bit ones are text in JSON) before text, missing values last."""
    if value is None or value in ("", "-"):
        return 2, 0.0, ""
    try:
        return 0, float(value), ""
    except (TypeError, ValueError):
        return 1, 0.0, str(value)
