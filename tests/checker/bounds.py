"""EFFORT, ITSELF, WAVE, HELD: what the third stage bounds, judged from the records alone, by counts of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from control.amounts import Amount
from tests.checker.violation import Promise, Violation
from walle.healing.lanes import swap_lanes
from wallepb.v1.host_pb2 import (
    OPERATION_KIND_REBOOT,
    OUTCOME_FAILED,
    OUTCOME_UNSPECIFIED,
    STAGE_APPROVAL,
    STAGE_CONFIRMING,
    STAGE_ENDING,
    STAGE_RUNNING,
    STAGE_VERIFYING,
    VERDICT_OK,
    Host,
    Operation,
    Stage,
)
from wallepb.v1.project_pb2 import Scenario, ScenarioHost

EFFORT = Promise(
    "EFFORT",
    "what fails for long is tried with growing pauses, stored only when it changes, and said once",
    "walle/healing/backoff.py, walle/process/leave.py, walle/work/notice_records.py",
)
ITSELF = Promise(
    "ITSELF",
    "what comes back by itself within the settle time is not repaired",
    "walle/healing/decision.py (_blocked_reason), walle/healing/check_sources.py (since_ms)",
)
WAVE = Promise(
    "WAVE",
    "no wave of planned work begins before the one before is back, and none after a bad one until a person goes on",
    "control/waves.py, walle/work/waves.py",
)
HELD = Promise(
    "HELD",
    "no approval is held beyond the bound of what it is held for",
    "walle/healing/operation.py (event_now, effects), walle/approval/tasks.py",
)

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
LATER_FAILURES_PERCENT: Final = 10
REVISIONS_OF_AN_OPERATION: Final = 60
REVISIONS_A_MINUTE: Final = 10
# For how long an ok may be held in a stage. Confirming: three tries with pauses, and the pause in which that is noted.
_HELD_MS: Final[dict[Stage, int]] = {
    STAGE_APPROVAL: 5 * MINUTE_MS,
    STAGE_CONFIRMING: 30 * MINUTE_MS,
    STAGE_RUNNING: DAY_MS,
    STAGE_VERIFYING: 30 * MINUTE_MS,
    STAGE_ENDING: 10 * MINUTE_MS,
}
_SLACK_MS: Final = 2 * MINUTE_MS


class Bounds:
    """What has to hold from one revision of a record to the next.

    Attributes:
        settle_ms: how long a check fails before it counts.
    """

    def __init__(self, settle_ms: int) -> None:
        self.settle_ms = settle_ms
        self._revisions: Counter[str] = Counter()
        self._began_ms: dict[str, int] = {}

    def host(self, before: Host, after: Host, now_ms: int) -> Iterator[Violation]:
        """ITSELF and EFFORT, for both lanes of a host that was stored."""
        lanes = [(before, after)]
        if after.HasField("dns_operation"):
            lanes.append((swap_lanes(before), swap_lanes(after)))
        for old, new in lanes:
            if new.operation.check and new.operation.id != old.operation.id and not old.HasField("operation"):
                yield from self._began(new)
            if new.HasField("operation") and new.operation != old.operation:
                yield from self._stored(new, now_ms)

    def _began(self, host: Host) -> Iterator[Violation]:
        operation = host.operation
        since_ms = max([host.released_ms, *(one.since_ms for one in host.check if one.name == operation.check)])
        if operation.since_ms - since_ms < self.settle_ms:
            failing_s = (operation.since_ms - since_ms) / 1000
            yield ITSELF.broken(f"{host.name}: {operation.check} failed for {failing_s:g} s, and a repair begins", host)

    def _stored(self, host: Host, now_ms: int) -> Iterator[Violation]:
        operation = host.operation
        self._revisions[operation.id] += 1
        lasted_ms = max(0, now_ms - self._began_ms.setdefault(operation.id, now_ms))
        most = REVISIONS_OF_AN_OPERATION + REVISIONS_A_MINUTE * lasted_ms // MINUTE_MS
        if self._revisions[operation.id] == most + 1:
            yield EFFORT.broken(f"{host.name}: {operation.id} was stored {most + 1} times", operation)

    def scenario(self, before: Scenario, after: Scenario) -> Iterator[Violation]:
        """WAVE, for work in waves that was stored."""
        were = {one.operation_id for one in before.host if one.operation_id}
        fresh = [one for one in after.host if one.operation_id and one.operation_id not in were]
        if not fresh:
            return
        earlier = [one for one in after.host if one.operation_id in were]
        size = max(1, Amount.parse(after.wave_size or str(after.at_once or 1)).of(len(after.host)))
        names = ", ".join(one.name for one in fresh[:3])
        if len(fresh) > size:
            yield WAVE.broken(f"{after.id}: {len(fresh)} hosts begin at once, a wave has {size}")
        if away := [one.name for one in earlier if one.outcome == OUTCOME_UNSPECIFIED]:
            yield WAVE.broken(f"{after.id}: {names} begin while {', '.join(away[:3])} are not back")
        bad = [one for one in earlier if _is_bad(one)]
        if len(bad) > _allowed(after, len(earlier), size):
            yield WAVE.broken(f"{after.id}: {names} begin after {len(bad)} of {len(earlier)} failed", *bad)


def _is_bad(host: ScenarioHost) -> bool:
    return host.outcome == OUTCOME_FAILED and not host.accepted


def _allowed(scenario: Scenario, begun: int, size: int) -> int:
    if scenario.max_failures:
        return Amount.parse(scenario.max_failures).of(begun)
    return 0 if begun <= size else begun * LATER_FAILURES_PERCENT // 100


def held_too_long(host: Host, now_ms: int, well_since_ms: int = 0) -> Iterator[Violation]:
    """HELD, for a host as it is now.

    `well_since_ms`: since when its CMS has answered as it should; an outage is waited for without bound.
    """
    operation = host.operation
    oks = [task for task in (*operation.task, *operation.old_task) if task.created and task.verdict == VERDICT_OK]
    if not oks or operation.stage not in _HELD_MS:
        return
    since_ms = operation.since_ms
    if operation.stage in (STAGE_APPROVAL, STAGE_CONFIRMING):
        since_ms = max(since_ms, well_since_ms, *(task.ok_since_ms for task in oks))
    bound_ms = _bound_ms(operation)
    if now_ms - since_ms > bound_ms + _SLACK_MS:
        held = ", ".join(task.id for task in oks)
        yield HELD.broken(f"{host.name}: {held} held for {(now_ms - since_ms) // MINUTE_MS} min", operation)


def _bound_ms(operation: Operation) -> int:
    is_short = operation.stage == STAGE_RUNNING and operation.kind == OPERATION_KIND_REBOOT
    return 30 * MINUTE_MS if is_short else _HELD_MS[operation.stage]
