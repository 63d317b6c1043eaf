"""The time line of a roll-out, read off the record of its action as that changes. Bounded. Nothing is decided by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from nannypb.v1.records_pb2 import ActionRecord, InstanceKey, RolloutRecord
from nannypb.v1.service_pb2 import Authorship, RolloutStep

BATCHES: Final = 50
JUDGED: Final = 20
OUTPUTS: Final = 3
OUTPUT_BYTES: Final = 1_000
_NAMES: Final = 5
_MESSAGE: Final = 300

Testimony = Callable[[InstanceKey], tuple[str, str]]
"""What the agent of an instance says of the revision, and what one of its containers printed last."""


def timeline_after(
    before: RolloutRecord | None, action: ActionRecord, testimony: Testimony, now_ms: int
) -> RolloutRecord:
    """The time line once the action's record is `action`."""
    record = _timeline_of(before, action)
    _note_batch(record, action, now_ms)
    _note_steps(record, action, now_ms)
    _judge(record, action.fell, "fell", testimony, now_ms)
    _judge(record, action.failed, "failed", testimony, now_ms)
    _add_outputs(record, testimony)
    return record


def promoted_timeline(before: RolloutRecord | None, action: ActionRecord, number: int, by: Authorship) -> RolloutRecord:
    """The time line after people promoted a step, which may have begun only when they promoted the step before."""
    record = _timeline_of(before, action)
    _begin_steps(record, action.step, number - 1, by.time.ToMilliseconds())
    record.step[number - 1].promoted.CopyFrom(by)
    return record


def ended_timeline(
    before: RolloutRecord, failing: Iterable[InstanceKey], testimony: Testimony, now_ms: int
) -> RolloutRecord:
    """The time line of a roll-out that is over. `failing`: if it failed, instances that are not ready."""
    record = closed_timeline(before, now_ms)
    _judge(record, failing, "failed", testimony, now_ms)
    _add_outputs(record, testimony)
    return record


def closed_timeline(before: RolloutRecord, now_ms: int) -> RolloutRecord:
    """The time line, ended with its last batch; one that has ended stays as it is."""
    record = RolloutRecord()
    record.CopyFrom(before)
    if not record.end_unix_ms:
        record.end_unix_ms = now_ms
        if record.batch and not record.batch[-1].HasField("end_time"):
            record.batch[-1].end_time.FromMilliseconds(now_ms)
    return record


def _timeline_of(before: RolloutRecord | None, action: ActionRecord) -> RolloutRecord:
    record = RolloutRecord(number=action.number, since_unix_ms=action.since_unix_ms)
    if before is not None and before.number == action.number:
        record.CopyFrom(before)
    return record


def _note_batch(record: RolloutRecord, action: ActionRecord, now_ms: int) -> None:
    last = record.batch[-1] if record.batch and not record.batch[-1].HasField("end_time") else None
    if not action.batch:
        if last is not None:
            last.end_time.FromMilliseconds(now_ms)
        return
    if last is None:
        names = [f"{one.id} ({one.location})" for one in action.batch[:_NAMES]]
        last = record.batch.add(number=action.batches_done + 1, instances=len(action.batch), instance=names)
        last.ask_time.FromMilliseconds(now_ms)
        del record.batch[:-BATCHES]
        last = record.batch[-1]
    last.cms_task = action.cms_task
    if action.granted and not last.HasField("begin_time"):
        last.begin_time.FromMilliseconds(now_ms)


def _note_steps(record: RolloutRecord, action: ActionRecord, now_ms: int) -> None:
    """Note the steps that have begun. An order that skips steps keeps what is there."""
    _begin_steps(record, action.step, action.steps_over if action.step else len(record.step), now_ms)
    if action.check_result:
        record.step[-1].check_result = action.check_result[:_MESSAGE]


def _begin_steps(record: RolloutRecord, steps: Sequence[RolloutStep], over: int, now_ms: int) -> None:
    """A step begins as the one before is over."""
    for step in steps[len(record.step) : over + 1]:
        record.step.add(step=step).begin_time.FromMilliseconds(now_ms)
    for one in record.step[:over]:
        if not one.HasField("end_time"):
            one.end_time.FromMilliseconds(now_ms)


def _judge(record: RolloutRecord, keys: Iterable[InstanceKey], verdict: str, testimony: Testimony, now_ms: int) -> None:
    """Note instances with a new verdict, only the first ones: they tell most. A verdict "failed" is not replaced."""
    known = {(one.location, one.id): one for one in record.judged}
    for key in keys:
        one = known.get((key.location, key.id))
        if one is not None and one.verdict in (verdict, "failed"):
            continue
        if one is None:
            if len(record.judged) >= JUDGED:
                return
            one = record.judged.add(id=key.id, location=key.location)
        one.verdict, one.message = verdict, testimony(key)[0][:_MESSAGE]
        one.time.FromMilliseconds(now_ms)


def _add_outputs(record: RolloutRecord, testimony: Testimony) -> None:
    """Add the last lines of the first few instances: a container may have ended after the verdict."""
    room = OUTPUTS - sum(bool(one.output) for one in record.judged)
    for one in [one for one in record.judged if not one.output][: max(0, room)]:
        _, output = testimony(InstanceKey(location=one.location, id=one.id))
        one.output = output.encode()[-OUTPUT_BYTES:].decode(errors="ignore")
