"""Deadlines of those who report at intervals of their own: a queue for each pair of interval and timeout. Pure.

The queue of the installation's own times is this object itself, so that reporters without their own cost nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, zip_longest

from hq.liveness.deadlines import Deadlines, K, LivenessTimes, Silence
from hq.memory.record import LivenessPair


class Queues(Deadlines[K]):
    """Deadlines in several queues. For questions about one key ask its queue, `of(key)`.

    Attributes:
        others: the queues of other pairs.
    """

    def __init__(self, times: LivenessTimes) -> None:
        super().__init__(times)
        self.others: dict[LivenessPair, Deadlines[K]] = {}
        self._where: dict[K, Deadlines[K]] = {}  # of those in other queues

    def __len__(self) -> int:
        return len(self._heard) + len(self._where)

    def __contains__(self, key: object) -> bool:
        return key in self._heard or key in self._where

    def of(self, key: K) -> Deadlines[K]:
        """The queue of a key."""
        return self._where.get(key, self) if self._where else self

    def hear(self, key: K, now: float, pair: LivenessPair | None) -> None:
        """Record a heartbeat of an agent that was told these times; None: the installation's."""
        queue = self if pair is None else self._queue(pair)
        if self.of(key) is not queue:
            self.forget(key)
            if queue is not self:
                self._where[key] = queue
        queue.record_contact(key, now)

    def times_of(self, pair: LivenessPair | None) -> LivenessTimes:
        """The times that apply to a reporter who was given this pair."""
        return self.times if pair is None else times_of(pair, self.times)

    def forget(self, key: K) -> None:
        queue = self._where.pop(key, None) if self._where else None
        if queue is None:
            super().forget(key)
        else:
            queue.forget(key)

    def clear(self) -> None:
        super().clear()
        self.others.clear()
        self._where.clear()

    def start_all(
        self,
        keys: Iterable[K],
        now: float,
        because: str,
        carried: Mapping[K, Silence],
        pairs: Mapping[K, LivenessPair],
    ) -> None:
        """Start all deadlines. `pairs`: report interval and timeout of revisions that have their own."""
        ours = {key: silence for key, silence in carried.items() if key not in pairs}
        keys = [*keys] if pairs else keys
        self.start((key for key in keys if key not in pairs) if pairs else keys, now, because, ours)
        for pair in {*pairs.values()}:
            these = [key for key in keys if pairs.get(key) == pair]
            queue = self.others[pair] = Deadlines(times_of(pair, self.times))
            queue.start(these, now, because, {key: carried[key] for key in these if key in carried})
            self._where.update(dict.fromkeys(these, queue))

    def restart(self, now: float, because: str) -> None:
        super().restart(now, because)
        for queue in self.others.values():
            queue.restart(now, because)

    def away(self, since: float) -> None:
        super().away(since)
        for queue in self.others.values():
            queue.away(since)

    def gap(self, began: float, now: float, because: str) -> None:
        super().gap(began, now, because)
        for queue in self.others.values():
            queue.gap(began, now, because)

    def assume(self, now: float) -> None:
        super().assume(now)
        for queue in self.others.values():
            queue.assume(now)

    def expired_keys(self, now: float, held_s: float = 0.0) -> Iterator[K]:
        """Expired keys, taken from the queues in turns, so that none has to wait until another is empty."""
        if not self.others:
            return super().expired_keys(now, held_s)
        each = [super().expired_keys(now, held_s), *(queue.expired_keys(now, held_s) for queue in self.others.values())]
        return (key for row in zip_longest(*each) for key in row if key is not None)

    def held_too_long(self, now: float, hold_s: float) -> Iterator[K]:
        """Keys with a timeout below `hold_s` that expired another such timeout ago: no hold may delay them longer."""
        short = [queue for queue in self.others.values() if queue.times.timeout_s < hold_s]
        return chain.from_iterable(queue.expired_keys(now, queue.times.timeout_s) for queue in short)

    def expired_count(self, now: float) -> int:
        return super().expired_count(now) + sum(queue.expired_count(now) for queue in self.others.values())

    def silent(self, now: float) -> int:
        return super().silent(now) + sum(queue.silent(now) for queue in self.others.values())

    def known_counts(self, now: float) -> tuple[int, int]:
        each = [super().known_counts(now), *(queue.known_counts(now) for queue in self.others.values())]
        return sum(known for known, _ in each), sum(silent for _, silent in each)

    def silent_keys(self, now: float) -> list[K]:
        return super().silent_keys(now) + [key for queue in self.others.values() for key in queue.silent_keys(now)]

    def _queue(self, pair: LivenessPair) -> Deadlines[K]:
        queue = self.others.get(pair)
        if queue is None:
            for unused in [other for other, queue in self.others.items() if not len(queue)]:
                del self.others[unused]
            queue = self.others[pair] = self.sibling(times_of(pair, self.times))
        return queue


def times_of(pair: LivenessPair, ours: LivenessTimes) -> LivenessTimes:
    """The times that follow from what a reporter was given."""
    interval_ms, timeout_ms = pair
    timeout_s = timeout_ms / 1000
    return LivenessTimes(timeout_s, interval_ms / 1000, min(10.0, timeout_s / 10), ours.flush_s)
