"""What a judge found: how many cases passed, which failed and why, and what it could not look at."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final

_SHORT: Final = 1_500  # characters of a reason
_CASE_S: Final = 40.0


class Missing(Exception):
    """The judge is not on this machine; str() says how to get it."""


@dataclass
class Verdict:
    """Verdict of one judge.

    Attributes:
        version: of the judge, as it says itself; empty: it did not run.
        failed: a case and its reason on each line.
        left_out: cases that this judge has but cannot put to this server, each with its reason.
        skipped: why it did not run at all; empty: it ran.
    """

    version: str = ""
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    skipped: str = ""

    @property
    def ran(self) -> bool:
        return not self.skipped

    @property
    def good(self) -> bool:
        """It ran and had nothing to say, or it did not run. A judge without cases is none."""
        return not self.failed and (self.passed > 0 or not self.ran)

    def count(self, case: str, fault: str = "") -> None:
        """One more case; `fault` empty: it passed."""
        if fault:
            self.failed.append(f"{case}: {fault.strip()[:_SHORT]}")
        else:
            self.passed += 1

    async def case(self, name: str, going: Awaitable[object], at_most_s: float = _CASE_S) -> None:
        """One more case: it passes if it ends in time and raises nothing."""
        try:
            async with asyncio.timeout(at_most_s):
                await going
        except Exception as error:  # whatever it is, it is this case's reason
            where = traceback.extract_tb(error.__traceback__)[-1].line
            self.count(name, f"{type(error).__name__}: {error}" + (f" (at `{where}`)" if not str(error) else ""))
        else:
            self.count(name)

    def line(self) -> str:
        """The verdict as one line."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        more = f", {len(self.left_out)} left out" if self.left_out else ""
        return f"{self.passed} passed, {len(self.failed)} failed{more} ({self.version})"
