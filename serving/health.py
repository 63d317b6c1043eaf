"""Whether this process lives and can serve, and the pages that say so."""

from __future__ import annotations

import re
from typing import Final, Protocol

from serving.errors import invalid

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|s|m|h))+")
_PART: Final = re.compile(r"([\d.]+)(ms|s|m|h)")


class Health(Protocol):
    """What the process knows of its own condition."""

    def live(self) -> bool:
        """False: it will not recover by itself and should be restarted."""
        ...

    def loaded(self) -> bool:
        """True: reads can be served."""
        ...

    def staleness_s(self) -> float | None:
        """For how long at most changes may have been missed; None: unknown."""
        ...

    def doubt(self) -> str:
        """Why what can be read may lack almost everything; empty: it may be believed."""
        ...

    def why(self) -> str:
        """What is wrong, in a sentence; empty: nothing."""
        ...


def livez(health: Health) -> tuple[int, str]:
    """HTTP status and text: does the process live?"""
    return (200, "ok\n") if health.live() else (503, f"not live: {_why(health)}\n")


def readyz(health: Health, fresh: str = "", *, trusted: bool = False) -> tuple[int, str]:
    """HTTP status and text: can reads be served, and (with `fresh`) from data no older than that?

    With `trusted`: and has the store not become another one that holds far less, and that nobody has confirmed?

    Raises:
        InvalidRequest: `fresh` is not a duration.
    """
    bound_s = duration_s(fresh) if fresh else None
    if not health.loaded():
        return 503, f"not ready: {_why(health)}\n"
    doubt = health.doubt()
    if trusted and doubt:
        return 503, f"doubted: {doubt}\n"
    staleness_s = health.staleness_s()
    age = "of unknown age" if staleness_s is None else f"up to {staleness_s:.3f} s old"
    if bound_s is None or (staleness_s is not None and staleness_s <= bound_s):
        return 200, f"ok: answers are {age}\n" + (f"doubted: {doubt}\n" if doubt else "")
    return 503, f"stale: answers are {age}, {fresh} is asked for: {_why(health)}\n"


def duration_s(text: str) -> float:
    """Seconds of a duration like 10s, 1.5m, 500ms or 1m30s.

    Raises:
        InvalidRequest: it is not one.
    """
    if not _DURATION.fullmatch(text):
        raise invalid("fresh", f"{text[:40]!r} is not a duration like 10s, 1.5m or 500ms")
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


def _why(health: Health) -> str:
    return health.why() or "no reason given"
