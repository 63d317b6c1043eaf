"""What the checker says of a history."""

from __future__ import annotations

from pathlib import Path

from tests.checker.check import violations
from tests.checker.history_file import read_history
from tests.checker.story import Limits


def violations_of(history: Path, liveness_timeout_s: float) -> list[str]:
    """Broken promises, in words."""
    return [str(found) for found in violations(read_history(history), Limits(liveness_timeout_s=liveness_timeout_s))]
