"""What the checker says of a history."""

from __future__ import annotations

from pathlib import Path

from tests.checker.check import violations
from tests.checker.history_file import read_history
from tests.checker.story import Limits

TRANSIT_S = 6.0  # the rig holds ways and slows them; on a machine with other work everything is late


def violations_of(history: Path, liveness_timeout_s: float) -> list[str]:
    """Broken promises, in words."""
    limits = Limits(liveness_timeout_s=liveness_timeout_s, transit_s=TRANSIT_S)
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
