"""What the checker says of a history."""

from __future__ import annotations

from pathlib import Path


def violations_of(history: Path) -> list[str]:
    """Broken promises, in words."""
    return []
