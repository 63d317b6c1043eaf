"""What a server shows on /metrics, looked at again and again: which of its own metrics ever moved."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Set
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from tests.support.sample_instances import eventually

ALWAYS_THE_SAME: Final = {"hq_build_info", "hq_store_max_bytes"}
_PATIENCE_S: Final = 60.0


def name_of(family: Metric) -> str:
    """The name as it is declared."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def declared(registry: CollectorRegistry) -> set[str]:
    """HQ's own metrics in a registry, with and without samples."""
    return {name for family in registry.collect() if (name := name_of(family)).startswith("hq_")}


class Scraped:
    """All values that each metric ever had, summed over its labels.

    Attributes:
        seen: by name; NaN counts as one value.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.seen: defaultdict[str, set[float]] = defaultdict(set)
        self.look()

    def look(self) -> dict[str, float]:
        """The current values."""
        sums: defaultdict[str, float] = defaultdict(float)
        for family in self._registry.collect():
            name = name_of(family)
            for sample in family.samples:
                if family.type != "histogram" or sample.name.endswith("_count"):
                    sums[name] += sample.value
            self.seen[name].add(math.nan if math.isnan(sums[name]) else sums[name])
        return sums

    async def until(self, name: str, least: float = 1) -> None:
        """Look until a metric has got so far."""
        await eventually(lambda: self.look()[name] >= least, _PATIENCE_S, f"{name} >= {least}")

    async def once(self, name: str, least: float = 1) -> None:
        """Look until a metric has got so far, if it never did: what passes by may have passed by already."""
        await eventually(lambda: self.look() and max(self.seen[name]) >= least, _PATIENCE_S, f"{name} >= {least}, once")

    def unmoved(self, leaving_out: Set[str] = frozenset()) -> set[str]:
        """Names of HQ's own metrics that had one value only; those of `leaving_out` are another test's."""
        ours = declared(self._registry) - leaving_out - ALWAYS_THE_SAME
        return {name for name in ours if len(self.seen[name]) < 2}
