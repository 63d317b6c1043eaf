"""The time line of a roll-out, and whom it judged, as text."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.timestamp_pb2 import Timestamp

from nannyctl.output.services import current_name, judged_lines, outcome_words, short, table
from nannypb.v1 import service_pb2 as pb


def show_rollout(service: str, rollout: pb.Rollout) -> str:
    """Its head, its time line, and whom it judged."""
    head = f"{service}: {short(rollout.snapshot_id)} is {current_name(rollout.current)}"
    if rollout.order.outcome:
        head += f", ordered {outcome_words(rollout.order)}"
    lines = [head, table(("TIME", "WHAT"), _timeline(rollout))]
    return "\n".join([*lines, *judged_lines(rollout.judged, most=len(rollout.judged), with_output=True)])


def _timeline(rollout: pb.Rollout) -> Iterator[tuple[str, str]]:
    ordered = rollout.ordered
    yield _time(ordered.time), _by_people("ordered", ordered)
    events = [event for batch in rollout.batch for event in _batch_events(batch)]
    events += [event for number, step in enumerate(rollout.step, 1) for event in _step_events(number, step)]
    if rollout.HasField("aborted"):
        events.append((rollout.aborted.time, _by_people("aborted", rollout.aborted)))
    events += [(one.time, f"{one.id} ({one.location}) {one.verdict}") for one in rollout.judged]
    if rollout.HasField("end_time"):
        events.append((rollout.end_time, "the roll-out ended"))
    if rollout.order.HasField("end_time"):
        events.append((rollout.order.end_time, f"the order ended: {outcome_words(rollout.order)}"))
    for at, what in sorted(events, key=lambda event: event[0].ToNanoseconds()):
        yield _time(at), what
    if rollout.order.outcome == pb.ORDER_OUTCOME_OPEN and rollout.message:
        yield "now", rollout.message


def _batch_events(batch: pb.RolloutBatch) -> Iterator[tuple[Timestamp, str]]:
    more = batch.instances - len(batch.instance)
    who = ", ".join(batch.instance) + (f" and {more} more" if more > 0 else "")
    if batch.cms_task:
        yield batch.ask_time, f"batch {batch.number} asks the CMS: task {batch.cms_task}"
    if batch.HasField("begin_time"):
        yield batch.begin_time, f"batch {batch.number} begins: {who}"
    if batch.HasField("end_time"):
        yield batch.end_time, f"batch {batch.number} " + ("is over" if batch.HasField("begin_time") else "is given up")


def _step_events(number: int, one: pb.RolloutStepRecord) -> Iterator[tuple[Timestamp, str]]:
    yield one.begin_time, f"step {number} begins: {_step_words(one.step)}"
    if one.HasField("promoted"):
        yield one.promoted.time, _by_people(f"step {number} promoted", one.promoted)
    if one.HasField("end_time"):
        yield one.end_time, f"step {number} is over" + (f": {one.check_result}" if one.check_result else "")


def _step_words(step: pb.RolloutStep) -> str:
    """A step as people write it, e.g. 25%."""
    words = {
        "instances": step.instances,
        "weight": step.weight,
        "hold": f"{step.hold_s}s" if step.hold_s else "",
        "promote": "manual" if step.promote else "",
        "check": step.check,
    }
    return ", ".join(f"{name}: {value}" for name, value in words.items() if value)


def _by_people(what: str, by: pb.Authorship) -> str:
    why = "; ".join(text for text in (by.comment, by.ticket) if text)
    return f"{what} by {by.author or 'somebody'}" + (f": {why}" if why else "")


def _time(time: Timestamp) -> str:
    return time.ToJsonString()[:19]
