"""What a run found: comparisons of sides under load, and single facts. Kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.stats import Sample, Spread, ratio, spread


@dataclass(frozen=True, slots=True)
class Comparison:
    """Sides (hq, empty, etcd, ...) under the same load, a sample for each round.

    Attributes:
        size: what the case grows with, if it is one of several sizes; 0: it is not.
        per_answer: how many of the things counted one answer stands for, e.g. 50 heartbeats.
    """

    group: str
    name: str
    sides: Mapping[str, Sequence[Sample]]
    size: float = 0.0
    per_answer: int = 1
    note: str = ""

    def rate(self, side: str = "hq") -> Spread:
        """Things per second."""
        return spread([sample.rate * self.per_answer for sample in self.sides[side]])

    def of(self, measure: str, side: str = "hq") -> Spread:
        """Any attribute of a sample."""
        return spread([getattr(sample, measure) for sample in self.sides[side]])

    def ratio(self, other: str, side: str = "hq") -> Spread:
        """The rate of a side over that of another one, round by round."""
        return ratio([s.rate for s in self.sides[side]], [s.rate for s in self.sides[other]])

    def as_dict(self) -> dict[str, Any]:
        sides = {name: [sample.as_dict() for sample in samples] for name, samples in self.sides.items()}
        told: dict[str, Any] = {"group": self.group, "name": self.name, "sides": sides}
        return told | {"size": self.size, "per_answer": self.per_answer, "note": self.note}


@dataclass(frozen=True, slots=True)
class Fact:
    """A number that is no comparison, measured once or more often."""

    group: str
    name: str
    values: Sequence[float]
    unit: str
    size: float = 0.0
    note: str = ""

    def spread(self) -> Spread:
        return spread(self.values)

    def as_dict(self) -> dict[str, Any]:
        values = [round(value, 6) for value in self.values]
        told = {"group": self.group, "name": self.name, "values": values, "unit": self.unit}
        return told | {"size": self.size, "note": self.note}


@dataclass
class Results:
    """Everything of one run. `curves`: points for plots by name; `dates`: when each group was measured, on what."""

    header: dict[str, str] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    curves: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)

    def comparison(self, name: str, group: str = "") -> Comparison | None:
        """`group`: where several groups have a case of this name."""
        return next((c for c in self.comparisons if c.name == name and group in ("", c.group)), None)

    def fact(self, name: str) -> Fact | None:
        return next((f for f in self.facts if f.name == name), None)

    def sized(self, prefix: str) -> list[Comparison]:
        """The comparisons of one case at several sizes, smallest first."""
        return sorted((c for c in self.comparisons if c.size and c.name.startswith(prefix)), key=lambda c: c.size)

    def groups(self) -> list[str]:
        named = [c.group for c in self.comparisons] + [f.group for f in self.facts]
        return list(dict.fromkeys(named))

    def replace(self, other: Results) -> None:
        """Take over the groups that another run measured, and leave the others as they are."""
        new = set(other.groups())
        self.comparisons = [c for c in self.comparisons if c.group not in new] + other.comparisons
        self.facts = [f for f in self.facts if f.group not in new] + other.facts
        self.curves |= other.curves
        self.failures = {g: e for g, e in self.failures.items() if g not in new} | other.failures
        self.dates |= other.dates
        self.header = other.header

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {
            "header": self.header,
            "comparisons": [c.as_dict() for c in self.comparisons],
            "facts": [f.as_dict() for f in self.facts],
            "curves": self.curves,
            "failures": self.failures,
            "dates": self.dates,
        }
        path.write_text(json.dumps(told, indent=1) + "\n")


def loaded(path: Path) -> Results:
    """What `save` wrote. Raises OSError."""
    told = json.loads(path.read_text())
    comparisons = [
        Comparison(**{**c, "sides": {n: [Sample(**s) for s in side] for n, side in c["sides"].items()}})
        for c in told["comparisons"]
    ]
    curves = {name: [(x, y) for x, y in points] for name, points in told["curves"].items()}
    return Results(
        told["header"], comparisons, [Fact(**f) for f in told["facts"]], curves, told["failures"], told["dates"]
    )
