"""Verdicts on many instances, recomputed only for those that changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from typing import Generic, TypeVar

from nanny.rollout.views import Key

V = TypeVar("V", bound=Hashable)


class VerdictTally(Generic[V]):
    """Instances by verdict.

    Args:
        judge: the verdict on an instance; None: it does not count.
        keys: the instances to begin with.

    Attributes:
        stale: instances to judge again; callers add those that changed.
    """

    def __init__(self, judge: Callable[[Key], V | None], keys: Iterable[Key]) -> None:
        self._judge = judge
        self._verdicts: dict[Key, V] = {}
        self._groups: dict[V, set[Key]] = {}
        self.stale = set(keys)

    def groups(self, *unsure: V) -> Mapping[V, Set[Key]]:
        """Current instances by verdict; do not modify. `unsure` verdicts change with time: these are judged again."""
        for verdict in unsure:
            self.stale |= self._groups.get(verdict, set())
        for key in self.stale:
            self._take(key, self._judge(key))
        self.stale.clear()
        return self._groups

    def _take(self, key: Key, verdict: V | None) -> None:
        before = self._verdicts.pop(key, None)
        if before is not None:
            self._groups[before].discard(key)
        if verdict is not None:
            self._verdicts[key] = verdict
            self._groups.setdefault(verdict, set()).add(key)
