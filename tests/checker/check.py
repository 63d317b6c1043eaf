"""A whole history against every promise. etcd's own account comes first: HQ is not blamed for what etcd did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tests.checker import (
    converged,
    durable,
    etcd,
    exact,
    fresh,
    genuine,
    ghost,
    gone,
    heard,
    kept,
    refused,
    settled,
    watched,
)
from tests.checker.history import Event
from tests.checker.story import Limits, Story
from tests.checker.violation import Violation

CHECKS: tuple[Callable[[Story], Iterator[Violation]], ...] = (
    *(durable.check, settled.check, exact.check, fresh.check, genuine.check),
    *(kept.check, heard.check, refused.check, watched.check, converged.check, ghost.check, gone.check),
)


def violations(events: Iterable[Event], limits: Limits | None = None) -> list[Violation]:
    """Every promise that a history breaks; only etcd's own where etcd broke one.

    Takes time in proportion to the history, times the logarithm of it for sorting; answers cost as much as they show.
    """
    story = Story(events, limits)
    return list(etcd.check(story)) or [violation for check in CHECKS for violation in check(story)]
