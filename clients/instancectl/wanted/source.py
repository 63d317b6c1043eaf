"""Where the wanted state comes from: what a source tells."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from instancectl.wanted.desired import Desired


@dataclass(frozen=True, slots=True)
class Asked:
    """This is wanted. `afresh`: it is another life of the instance, so nothing of the earlier one may stay."""

    desired: Desired
    afresh: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The instance was deleted, or (`moved`) lives on another node now: then its data stay where they are."""

    moved: bool
    message: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """The source cannot be read, or not be believed. What was asked last still holds."""

    message: str


Update = Asked | Gone | Trouble


class Source(Protocol):
    """A source of the wanted state."""

    def updates(self) -> AsyncGenerator[Update, None]:
        """What is wanted now, then every change. Never ends by itself."""
        ...

    def look_again(self) -> None:
        """Somebody has reason to think that it changed."""
        ...
