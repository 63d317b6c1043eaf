"""Which kinds there are. Each is imported when it is used: completion and mistakes need no messages."""

from __future__ import annotations

import importlib
from typing import Final

from hqkinds.kind import Kind

_PLACES: Final = {
    ("budget", "budgets"): ("cms", "BUDGET"),
    ("window", "windows"): ("cms", "WINDOWS"),
    ("task", "tasks", "disruptions"): ("cms", "TASK"),
    ("project", "projects"): ("walle", "PROJECT"),
}
WORDS: Final = tuple(word for words in _PLACES for word in words)


def kind_named(word: str) -> Kind | None:
    """The kind with this name, plural or alias (lower case); None: there is none."""
    for words, (module, name) in _PLACES.items():
        if word in words:
            kind: Kind = getattr(importlib.import_module(f"hqkinds.{module}"), name)
            return kind
    return None
