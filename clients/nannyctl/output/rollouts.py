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
    why = "; ".join(text for text in (ordered.comment, ordered.ticket) if text)
    yield _time(ordered.time), f"ordered by {ordered.author or 'Nanny'}" + (f": {why}" if why else "")
    events = [event for batch in rollout.batch for event in _batch_events(batch)]
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


def _time(time: Timestamp) -> str:
    return time.ToJsonString()[:19]
