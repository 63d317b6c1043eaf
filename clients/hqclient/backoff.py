"""How long to wait after failures in a row: the one formula of everything that tries again."""

from __future__ import annotations


def backoff_limit_s(failures: int, first_s: float, max_s: float) -> float:
    """Upper limit of the wait after so many failures (1, 2, ...): it doubles with each. The caller adds the jitter."""
    return min(max_s, first_s * 2.0 ** min(failures - 1, 30))
