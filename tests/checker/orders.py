"""SERVES and ONCE: what a roll-out leaves to callers, and what becomes of orders. Judged from outside of Nanny."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.checker.violation import Promise, Violation

SERVES = Promise(
    "SERVES",
    "whoever asks HQ never finds fewer ready instances than the roll-out's floor",
    "nanny/rollout/plan.py, nanny/actions/activation.py, and who acted at that time",
)
ONCE = Promise(
    "ONCE",
    "an order that was accepted took effect exactly once, one that was refused never",
    "nanny/records/handler.py, stored_snapshots.py and control/events.py: what one transaction stores and removes",
)
ARRIVES = Promise(
    "ARRIVES",
    "once the faults are over, the service comes to what was ordered last",
    "nanny/actions/worker.py: what it waits for is in the service's messages",
)

CAUGHT = Promise(
    "CAUGHT",
    "a roll-out of a snapshot that crashes ends, and not with success",
    "nanny/rollout/judge.py and plan.py, and what the message of the snapshot says",
)


@dataclass(frozen=True, slots=True)
class Look:
    """What a reader found ready. Seconds; it was asked before `at`. `excused`: those not ready whose node was dead."""

    at: float
    ready: tuple[str, ...]
    excused: int = 0


def check_served(looks: Sequence[Look], floor: int) -> Iterator[Violation]:
    """Every look."""
    for look in looks:
        if len(look.ready) + look.excused < floor:
            dead = f", {look.excused} on dead nodes" if look.excused else ""
            yield SERVES.broken(f"{len(look.ready)} ready{dead}, the floor is {floor}", look)


def check_bad(outcomes: Mapping[str, str]) -> Iterator[Violation]:
    """Every order for a snapshot that crashes: by its name, what became of it."""
    for order, outcome in outcomes.items():
        if outcome not in ("FAILED", "ROLLED_BACK"):
            yield CAUGHT.broken(f"{order} for a snapshot that crashes is {outcome}")


def check_orders(answers: Mapping[str, bool], history: Sequence[str]) -> Iterator[Violation]:
    """Every order.

    Args:
        answers: by the comment that only this order carries, whether it was accepted.
        history: the comments of what took effect, as the store has it.
    """
    found = Counter(history)
    for order, accepted in answers.items():
        if found[order] != accepted:
            was = "accepted" if accepted else "refused"
            yield ONCE.broken(f"{order} was {was}, and took effect {found[order]} times")
    for stranger in found.keys() - answers.keys():
        yield ONCE.broken(f"{stranger} took effect, and nobody ordered it")
