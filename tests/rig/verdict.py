"""What the checker says of a history."""

from __future__ import annotations

from pathlib import Path

from tests.checker.check import violations
from tests.checker.history_file import read_history
from tests.checker.story import Limits


def violations_of(history: Path, limits: Limits) -> list[str]:
    """Broken promises, in words."""
    return [str(found) for found in violations(read_history(history), limits)]


def unforeseen(directory: Path) -> list[str]:
    """Every traceback that replicas and gateways logged: HQ did not foresee it, whatever the clients were told."""
    found: list[str] = []
    for log in sorted([*directory.glob("replica-*.log"), *directory.glob("*gateway-*.log")]):
        lines = log.read_text(errors="replace").splitlines()
        places = [number for number, line in enumerate(lines) if line.startswith("Traceback")]
        if places:
            shown = "\n  ".join(lines[max(0, places[0] - 1) : places[0] + 25])
            found.append(f"FORESEEN is broken: {len(places)} tracebacks in {log.name}, the first one:\n  {shown}")
    return found
