"""How long actions have made no progress, and have been calm. Time counts only while this process acts on them.

What was counted is kept in the action's record, so that deadlines come even if processes restart again and again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from nanny.rollout.judge import Evidence
from nannypb.v1.records_pb2 import ActionRecord
from serving.clock import Clock

_LONGEST_STEP_S: Final = 10.0
"""Actions are looked at at least this often: in the rest of a longer time this process slept or did other work."""
_SAVED_EVERY_S: Final = 30.0
_UNMARKED: Final = object()


@dataclass(slots=True)
class Meter:
    """The clocks of one action.

    Attributes:
        now_s: for how long this process has acted on it.
        stalled_s: for how long the mark has been unchanged.
        calm_s: for how long it was calm since the last disturbance.
        step_s: for how long the step under way has held, which is the one after `steps_over`.
        evidence: what a roll-out has seen until now.
    """

    stalled_s: float
    calm_s: float
    step_s: float = 0.0
    steps_over: int = 0
    now_s: float = 0.0
    evidence: Evidence = field(default_factory=Evidence)
    _elapsed_s: float = 0.0
    _read_at: float | None = None
    _mark: Hashable = _UNMARKED

    def advance(self, clock_s: float) -> None:
        """Count the time since the last look."""
        passed_s = clock_s - self._read_at if self._read_at is not None else 0.0
        self._elapsed_s = min(passed_s, _LONGEST_STEP_S)
        self._read_at = clock_s
        self.now_s += self._elapsed_s

    def stand_still(self) -> None:
        """Do not count the time until the next look."""
        self._read_at = None

    def note_mark(self, mark: Hashable) -> None:
        """Count the time as stalled, from 0 if the mark has changed; a new process's first mark counts as unchanged."""
        is_same = self._mark is _UNMARKED or self._mark == mark
        self.stalled_s = self.stalled_s + self._elapsed_s if is_same else 0.0
        self._mark = mark

    def note_calm(self, *, is_calm: bool, is_disturbed: bool) -> None:
        if is_disturbed:
            self.calm_s = 0.0
        elif is_calm:
            self.calm_s += self._elapsed_s

    def note_held(self) -> None:
        """Count the time since the last look for the step under way."""
        self.step_s += self._elapsed_s

    def begin_step(self) -> None:
        self.step_s = 0.0

    def save(self, record: ActionRecord) -> bool:
        """Bring the record up to date, but not at every look. Return whether it changed."""
        saved = record.stalled_ms, record.calm_ms, record.step_ms
        times_s = self.stalled_s, self.calm_s, self.step_s
        if all(abs(time_s - ms / 1000) < _SAVED_EVERY_S for time_s, ms in zip(times_s, saved, strict=True)):
            return False
        record.step_ms = int(self.step_s * 1000)
        record.stalled_ms, record.calm_ms = int(self.stalled_s * 1000), int(self.calm_s * 1000)
        return True


class ProgressClock:
    """The meters of all actions of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._meters: dict[tuple[str, int], Meter] = {}

    def meter(self, service: str, record: ActionRecord) -> Meter:
        """The meter of an action, with the time until now."""
        meter = self.meter_of(service, record)
        meter.advance(self._clock.now())
        return meter

    def meter_of(self, service: str, record: ActionRecord) -> Meter:
        """The meter of an action, as it was at the last look."""
        key = service, record.number
        if key not in self._meters:
            self._meters[key] = Meter(record.stalled_ms / 1000, record.calm_ms / 1000)
        meter, step_s = self._meters[key], record.step_ms / 1000
        # Another process may have acted meanwhile.
        meter.step_s = max(meter.step_s, step_s) if meter.steps_over == record.steps_over else step_s
        meter.steps_over = record.steps_over
        return meter

    def pause(self, service: str) -> None:
        """Let the times of a service's actions stand still while it is paused."""
        for key, meter in self._meters.items():
            if key[0] == service:
                meter.stand_still()

    def forget(self, service: str) -> None:
        """Forget the actions of a service: they are over."""
        for key in [key for key in self._meters if key[0] == service]:
            del self._meters[key]
