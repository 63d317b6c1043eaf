"""One run: how long and how often to measure, where, and what was found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.results import Comparison, Fact, Results
from tests.bench.stats import Sample, short

Side = Callable[[float], Awaitable[Sample]]  # of load for so many seconds
_WARM_UP_S = 0.4


@dataclass
class Bench:
    """Cases measure with this. `say` is called with each line of progress; `kept` holds etcds filled before."""

    directory: Path
    quick: bool
    rounds: int
    seconds: float
    say: Callable[[str], None]
    results: Results = field(default_factory=Results)
    kept: Path | None = None

    async def compare(
        self,
        group: str,
        name: str,
        sides: Mapping[str, Side],
        *,
        size: float = 0.0,
        per_answer: int = 1,
        note: str = "",
        rounds: int = 0,
    ) -> Comparison:
        """Load the sides in turn, round after round, after a short warm-up of each."""
        for load in sides.values():
            await load(_WARM_UP_S)
        samples: dict[str, list[Sample]] = {side: [] for side in sides}
        for _ in range(rounds or self.rounds):
            for side, load in sides.items():
                samples[side].append(await load(self.seconds))
        comparison = Comparison(group, name, samples, size, per_answer, note)
        self.results.comparisons.append(comparison)
        self.say(f"{group:10} {name:44} {_told(comparison)}")
        return comparison

    def fact(
        self, group: str, name: str, values: Sequence[float], unit: str, *, size: float = 0.0, note: str = ""
    ) -> None:
        """Note a number."""
        fact = Fact(group, name, values, unit, size, note)
        self.results.facts.append(fact)
        self.say(f"{group:10} {name:44} {fact.spread()} {unit}")


def _told(comparison: Comparison) -> str:
    words = [f"{side} {short(comparison.rate(side).median)}/s" for side in comparison.sides]
    words += [f"of {other} {comparison.ratio(other).median:.0%}" for other in comparison.sides if other != "hq"]
    return ", ".join(words)
