"""walle.v1.WalleService as a table of methods."""

from __future__ import annotations

from typing import Any

from serving.calls.methods import Method, Service
from walle.api.orders import Orders
from walle.api.reads import Reads
from walle.api.telling import Telling
from walle.process.automaton import Automaton


def _subject(request: Any) -> str:
    """For the audit log."""
    for name in ("host", "scenario", "project"):
        value = getattr(request, name, "")
        if isinstance(value, str) and value:
            return value
    return "all"


SERVICE = Service("walle.v1.WalleService", _subject)


def methods(automaton: Automaton) -> list[Method]:
    """All calls."""
    return [
        *Reads(automaton).methods(SERVICE),
        *Orders(automaton).methods(SERVICE),
        *Telling(automaton).methods(SERVICE),
    ]
