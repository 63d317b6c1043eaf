"""What the checker says of a history."""

from __future__ import annotations

from pathlib import Path

from tests.checker.check import violations
from tests.checker.history_file import read_history
from tests.checker.story import Limits

_GONE = "ExecuteBatchError raised in core"  # gRPC's own words for a connection that ended under an answer


def violations_of(history: Path, liveness_timeout_s: float) -> list[str]:
    """Broken promises, in words."""
    return [str(found) for found in violations(read_history(history), Limits(liveness_timeout_s=liveness_timeout_s))]


def unforeseen(directory: Path) -> list[str]:
    """What replicas and fronts logged as errors: HQ did not foresee it, whatever the clients were told."""
    found: list[str] = []
    for log in sorted([*directory.glob("replica-*.log"), *directory.glob("front-*.log")]):
        lines = log.read_text(errors="replace").splitlines()
        errors = [number for number, line in enumerate(lines) if " ERROR " in line and _GONE not in line]
        if errors:
            end = "\n  ".join(lines[errors[0] : errors[0] + 25])
            found.append(f"FORESEEN is broken: {len(errors)} errors in {log.name}, the first one:\n  {end}")
    return found
