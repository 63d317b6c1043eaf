"""Which fault comes when, of what, and for how long: from a seed and nothing else."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault.

    Attributes:
        weight: how often, relative to the others.
        shortest_s, longest_s: how long it lasts; short ones are more frequent.
        alone: no other fault is going on meanwhile.
        at_least_once: in every run that is long enough for it.
        records_itself: it writes its parts into the history; of others the whole is written there.
    """

    name: str
    weight: float
    shortest_s: float = 0.3
    longest_s: float = 8.0
    alone: bool = False
    at_least_once: bool = False
    records_itself: bool = False


class Order(NamedTuple):
    """One fault to come: `target` and `other` are numbers of replicas or members, `amount` is from 0 to 1."""

    at_s: float
    kind: Kind
    target: int
    other: int
    lasts_s: float
    amount: float

    def __str__(self) -> str:
        return f"{self.at_s:7.1f} s  {self.kind.name} {self.target}>{self.other} for {self.lasts_s:.1f} s"


def schedule(seed: int, duration_s: float, gap_s: float, kinds: Sequence[Kind], warm_up_s: float = 3.0) -> list[Order]:
    """The faults of a run, in order of time; the last tenth of it (at most 20 s) is left to heal."""
    rng = random.Random(seed)
    end_s = duration_s - min(20.0, duration_s / 10)
    often = [kind for kind in kinds if kind.weight]
    orders: list[Order] = []
    at_s = warm_up_s
    while at_s < end_s:
        [kind] = rng.choices(often, [kind.weight for kind in often])
        orders.append(_order(rng, kind, at_s, duration_s))
        at_s += rng.expovariate(1 / gap_s)
    for kind in kinds:
        if kind.at_least_once and all(order.kind is not kind for order in orders):
            orders.append(_order(rng, kind, rng.uniform(0.3, 0.7) * duration_s, duration_s))
    return sorted(orders, key=lambda order: order.at_s)


def _order(rng: random.Random, kind: Kind, at_s: float, duration_s: float) -> Order:
    longest_s = max(kind.shortest_s, min(kind.longest_s, duration_s / 6))
    lasts_s = math.exp(rng.uniform(math.log(kind.shortest_s), math.log(longest_s)))
    target = rng.randrange(3)
    return Order(at_s, kind, target, (target + rng.choice((1, 2))) % 3, lasts_s, rng.random())
