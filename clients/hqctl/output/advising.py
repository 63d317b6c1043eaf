"""What to do next about an instance that is not ready. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from hqctl.words import clock_time, truth
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb

READY = instance_pb2.REVISION_TARGET_READY


def next_steps(answer: pb.ExplainInstanceResponse) -> Iterator[str]:
    """Sentences; none: nothing needs to be done."""
    wanted = next((revision for revision in answer.revision if revision.target == READY), None)
    name, node = answer.meta.id, answer.node_name
    if not node:
        yield "It has no node yet: a scheduler must place it (spec.node_name and spec.allocation)."
    elif wanted is None:
        yield from _nothing_wanted(answer)
    elif not wanted.last_heartbeat_time.seconds:
        yield f"No agent has ever reported {wanted.id}: does instancectl run on {node}, and is {name} in its log?"
        yield f"Does any agent on {node} report? `hqctl find --node {node} --sort-by heartbeat`"
    elif _was_expired(wanted.ready):
        yield f"Is the agent alive, and does it reach HQ from {node}? Its next report makes {wanted.id} ready again."
        yield f"Is it the whole node? `hqctl find --node {node} --not-ready`"
    elif truth(wanted.ready) == "unknown":
        yield f"Its agent began reporting but sent no status yet: check its log on {node}, it may still be installing."
    elif truth(wanted.ready) != "yes":
        yield f"The agent itself reports this: check its containers, `hqctl get {name} -o yaml`, and its log on {node}."
        yield from _way_back(answer, wanted.id)
    elif _is_late(wanted):
        yield from _silence(answer, node)


def _nothing_wanted(answer: pb.ExplainInstanceResponse) -> Iterator[str]:
    ids = [revision.id for revision in answer.revision if revision.target]
    if ids:
        yield f"No revision is wanted READY; to run one: `hqctl revision activate {answer.meta.id} {ids[-1]}`"
    else:
        yield "It has no revision: the deploy system must add one (`hqctl revision put`)."


def _way_back(answer: pb.ExplainInstanceResponse, wanted_id: str) -> Iterator[str]:
    installed = [r.id for r in answer.revision if r.id != wanted_id and truth(r.installed) == "yes"]
    if installed:
        yield f"To go back: `hqctl revision activate {answer.meta.id} {installed[0]}`"


def _silence(answer: pb.ExplainInstanceResponse, node: str) -> Iterator[str]:
    yield f"It is still ready, but silent: check its agent on {node} now."
    if answer.guard.holding:
        until = f" until {clock_time(answer.guard.until)} at the latest" if answer.guard.until.seconds else ""
        yield f"The guard holds expiries{until}: see `hqctl status` for why; `hqctl guard release` lets them proceed."


def _was_expired(condition: instance_pb2.Condition) -> bool:
    return truth(condition) == "no" and bool(condition.receipt.decided_by)


def _is_late(revision: pb.RevisionExplanation) -> bool:
    return revision.HasField("deadline_in") and revision.deadline_in.ToSeconds() < 0
