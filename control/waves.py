"""Work in waves: which parts begin next, whether one is back, and when the work has to stop. Pure: time comes in.

A wave begins once every part of the one before is back, so that a change that breaks machines breaks one wave of them.
Planned work on hosts uses it; what a part is, and how it is looked at, is the caller's. Work in steps begins a few
parts, waits for time, for a person or for a check, and goes on: roll-outs use that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from control.amounts import Amount

ONE: Final = Amount(1)
LATER_FAILURES_PERCENT: Final = 10  # of the parts that were begun, after the first wave; in that one none


class Progress(StrEnum):
    """How far a part is."""

    WAITING = "not begun"
    WORKING = "in work"
    RETURNING = "the work is done, it is not back yet"
    BACK = "back"
    FAILED = "not back in time, or the work failed"
    SKIPPED = "the work was not done"
    ACCEPTED = "failed, and a person went on"


_IN_WORK: Final = (Progress.WORKING, Progress.RETURNING)


@dataclass(frozen=True, slots=True)
class Part:
    """A unit of planned work. `domain`: what fails together with it, e.g. its rack; empty: nothing does."""

    name: str
    progress: Progress
    domain: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WaveLimits:
    """How much at a time, and how much may fail.

    Attributes:
        by_domain: a wave has parts of one domain only.
        max_failures: None: none in the first wave, later 10 % of the parts that were begun.
    """

    size: Amount = ONE
    by_domain: bool = False
    max_failures: Amount | None = None

    def size_in(self, total: int) -> int:
        """How many of `total` parts a wave has: at least one."""
        return max(1, self.size.of(total))


@dataclass(frozen=True, slots=True)
class Step:
    """The next step; if it is empty, wait.

    Attributes:
        begin: names of the parts of the next wave.
        stop: why a person has to look at it.
        is_done: nothing is left to begin, and nothing is in work.
    """

    begin: tuple[str, ...] = ()
    stop: str = ""
    is_done: bool = False


def next_step(parts: Sequence[Part], limits: WaveLimits, obstacle: str = "") -> Step:
    """Decide the next step of planned work. `obstacle`: why no further wave may begin, e.g. a fuse that has tripped.

    Too many failures stop it at once, also while other parts are in work: these are not interrupted.
    """
    wave, is_in_work = next_wave(parts, limits), any(part.progress in _IN_WORK for part in parts)
    if not wave and not is_in_work:
        return Step(is_done=True)
    if too_many := _too_many_failures(parts, limits):
        return Step(stop=too_many)
    if is_in_work:
        return Step()
    return Step(stop=obstacle) if obstacle else Step(begin=wave)


def next_wave(parts: Sequence[Part], limits: WaveLimits) -> tuple[str, ...]:
    """The parts that come next, in their order; `by_domain`: only those in the domain of the first."""
    waiting = [part for part in parts if part.progress is Progress.WAITING]
    if limits.by_domain and waiting:
        waiting = [part for part in waiting if part.domain == waiting[0].domain]
    return tuple(part.name for part in waiting[: limits.size_in(len(parts))])


def _too_many_failures(parts: Sequence[Part], limits: WaveLimits) -> str:
    failed = [part for part in parts if part.progress is Progress.FAILED]
    begun = sum(part.progress is not Progress.WAITING for part in parts)
    if len(failed) <= allowed_failures(begun, limits, len(parts)):
        return ""
    return f"{len(failed)} of {begun} failed: {list_problems(failed)}"


def allowed_failures(begun: int, limits: WaveLimits, total: int) -> int:
    """How many parts may fail once `begun` of `total` were begun."""
    if limits.max_failures is not None:
        return limits.max_failures.of(begun)
    return 0 if begun <= limits.size_in(total) else begun * LATER_FAILURES_PERCENT // 100


def list_problems(parts: Iterable[Part], most: int = 10) -> str:
    """`h1 (ssh fails), h2 (dead) and 3 more`."""
    texts = [f"{part.name} ({part.problem})" if part.problem else part.name for part in parts]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


@dataclass(frozen=True, slots=True)
class PartEvidence:
    """Observations of a part whose work is done; times in ms of the caller's clock.

    Attributes:
        ended_ms: when the work was done.
        problem: what is wrong with it now; empty: nothing.
        quiet_since_ms: since when nothing has been wrong with it.
        is_heard: somebody has said since that it is well. Silence shows nothing.
    """

    ended_ms: int
    problem: str = ""
    quiet_since_ms: int = 0
    is_heard: bool = True


def judge(evidence: PartEvidence, now_ms: int, settle_ms: int, deadline_ms: int) -> tuple[Progress, str]:
    """BACK, FAILED or RETURNING, and what is wrong.

    A part is back once nothing has been wrong for the settle time, and somebody said so after the work. After the
    deadline it is judged as it is.
    """
    problem = evidence.problem or ("" if evidence.is_heard else "nobody has said since that it is well")
    if now_ms - evidence.ended_ms >= deadline_ms:
        return (Progress.FAILED if problem else Progress.BACK), problem
    is_quiet = now_ms - max(evidence.ended_ms, evidence.quiet_since_ms) >= settle_ms
    return (Progress.BACK if is_quiet and not problem else Progress.RETURNING), problem


@dataclass(frozen=True, slots=True)
class WaveStep:
    """A step of work that goes in steps: `reach`, `weight` or both, or one of the others.

    Attributes:
        reach: so many parts are begun, those of earlier steps included; None: it begins none.
        weight: percentage of its usual weight that each part begun has, until a later step changes it; None: as before.
        hold_s: nothing begins for so long; of a check: its values have to be within their bound for so long.
        promote: a person says when it goes on.
        check: name of the check that has to pass.
    """

    reach: Amount | None = None
    weight: int | None = None
    hold_s: float = 0.0
    promote: bool = False
    check: str = ""

    @property
    def words(self) -> str:
        """The step in words: `instances: 10%, weight: 5%`."""
        parts = {
            "instances": self.reach,
            "weight": None if self.weight is None else f"{self.weight}%",
            "hold": f"{self.hold_s:g}s" if self.hold_s and not self.check else None,
            "promote": "manual" if self.promote else None,
            "check": f"{self.check} for {self.hold_s:g}s" if self.check else None,
        }
        return ", ".join(f"{name}: {value}" for name, value in parts.items() if value is not None)


FULL_WEIGHT: Final = 100


def reach_in(steps: Sequence[WaveStep], over: int, total: int) -> int:
    """How many of `total` parts may be begun, once `over` of the steps are over: all, after the last one.

    A share is at least one: a step that begins nothing would show nothing.
    """
    if over >= len(steps):
        return total
    named = [step.reach for step in steps[: over + 1] if step.reach is not None]
    return min(total, max([max(1, one.of(total)) for one in named], default=0))


def weight_in(steps: Sequence[WaveStep], over: int) -> int:
    """The percentage of its usual weight that each part begun has, once the first `over` steps have ended."""
    if over >= len(steps):
        return FULL_WEIGHT
    return next((one.weight for one in reversed(steps[: over + 1]) if one.weight is not None), FULL_WEIGHT)


def is_over(step: WaveStep, lasted_s: float, *, is_promoted: bool) -> bool:
    """Whether what the step waits for has come; whether its parts have begun is not looked at.

    Args:
        lasted_s: how long it has held; of a check, how long its values have been within their bound.
    """
    return is_promoted if step.promote else lasted_s >= step.hold_s


def find_step_faults(steps: Sequence[WaveStep], checks: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Find wrong steps: number, field and what to write instead. `checks`: names of those that there are."""
    reached: Amount | None = None
    for number, step in enumerate(steps):
        begins = step.reach is not None or step.weight is not None
        if begins + bool(step.hold_s) + step.promote + bool(step.check) != 1:
            yield number, "", "write instances, weight or both, or one of hold, promote and check"
        if step.check and step.check not in checks:
            known = ", ".join(sorted(checks)) or "none"
            yield number, "check", f"there is no check {step.check[:40]!r} in this policy; it has: {known}"
        if step.reach is None:
            continue
        if not step.reach.value:
            yield number, "instances", "is 0: nothing would be switched, and nothing be seen"
        if reached is not None and reached.is_percent == step.reach.is_percent and step.reach.value < reached.value:
            yield number, "instances", f"{step.reach} is less than {reached} before it: amounts include earlier steps"
        reached = step.reach
