"""--cluster: which location of a front is meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

CLUSTER_HEADER = "x-hq-cluster"
_KEY = "hqctl.cluster"

F = TypeVar("F", bound=Callable[..., Any])


def naming_cluster(function: F) -> F:
    """Give a command (or all of them) the option --cluster; `named_cluster` tells what it says."""
    text = "The cluster that is meant, where a front serves several; a replica of another one refuses."
    return click.option("--cluster", metavar="NAME", expose_value=False, callback=_remember, help=text)(function)


def named_cluster(context: click.Context) -> str:
    """What --cluster says, before or after the name of the command; empty: nothing."""
    found = context.meta.get(_KEY, "")
    assert isinstance(found, str)
    return found


def _remember(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_KEY] = value
