"""The story of an instance's readiness, as lines of text: what holds, what happened, what to do next. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hqcli.readable import age, ago, clock_time, guard_words, seconds_of, span, target, truth
from hqcli.terminal import fold
from hqpb.v1 import admin_pb2, instance_pb2
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
        yield (
            f"Its agent has begun reporting but has sent no status yet: check its log on {node}, "
            "it may still be installing."
        )
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


READY_WORDS = {"yes": "is READY", "no": "is NOT READY", "unknown": "has not been reported yet"}
SINCE_WORDS = {**READY_WORDS, "yes": "has been READY", "no": "has been NOT READY"}
_MOMENT = re.compile(r"  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+  ")
LABEL = 14  # columns of a label in a revision's part


def story(
    answer: pb.ExplainInstanceResponse, now_s: float, moves: Sequence[admin_pb2.Transition] = ()
) -> Iterator[str]:
    """Lines of text; the indent of a line says what it belongs to. `moves` are its expiries and recoveries."""
    yield from _head(answer, now_s)
    for step in next_steps(answer):
        yield f"  next: {step}"
    for revision in answer.revision:
        yield ""
        yield from _revision(revision, now_s, answer.summary)
    if happened := sorted(_timeline_entries(answer, moves)):
        yield ""
        yield "What happened:"
        yield from (f"  {clock_time_of(moment)}  {text}" for moment, text in happened)
    if answer.guard.verdict or answer.guard.holding:
        yield ""
        yield f"Guard: {guard_words(answer.guard)}"


def wrap_line(line: str, width: int) -> list[str]:
    """A line folded to a width, its continuation under the text it belongs to."""
    indent = len(line) - len(line.lstrip())
    if line.startswith("  next: "):
        return fold(line, width, 8)
    if moment := _MOMENT.match(line):
        return fold(line, width, moment.end())
    label = line[indent:].partition("   ")
    return fold(line, width, indent + (LABEL if label[1] else 0))


def _timeline_entries(
    answer: pb.ExplainInstanceResponse, moves: Sequence[admin_pb2.Transition]
) -> Iterator[tuple[int, str]]:
    """Yield what happened, with the moment in seconds since 1970."""
    meta = answer.meta
    if meta.creation_time.seconds:
        yield meta.creation_time.seconds, "created"
    if meta.modification_time.seconds > meta.creation_time.seconds:
        yield meta.modification_time.seconds, f"spec or labels written, version {meta.version}"
    told = {(move.revision_id, move.condition.last_transition_time.seconds) for move in moves}
    for revision in answer.revision:
        moment = revision.ready.last_transition_time.seconds
        if moment and (revision.id, moment) not in told:
            yield moment, f"{revision.id}: {_turn(revision.ready)}"
        if revision.last_heartbeat_time.seconds:
            by = f" by {revision.heard_by}" if revision.heard_by else ""
            yield revision.last_heartbeat_time.seconds, f"{revision.id}: last report heard{by}"
    for move in moves:
        moment = move.condition.last_transition_time.seconds or move.time.seconds
        whose = f"(an earlier {meta.id}, since deleted) " if moment < meta.creation_time.seconds else ""
        yield moment, f"{whose}{move.revision_id}: {_move(move)}"


def _turn(condition: instance_pb2.Condition) -> str:
    state = {"yes": "ready", "no": "not ready"}.get(truth(condition), "readiness unknown")
    if condition.receipt.decided_by:
        return f"{state}, decided by {condition.receipt.decided_by} ({condition.reason})"
    return f"{state}, reported by its agent" + (f" ({condition.reason})" if condition.reason else "")


def _move(move: admin_pb2.Transition) -> str:
    if move.ready:
        return "ready again: its agent reported"
    receipt = move.condition.receipt
    silence = span(seconds_of(receipt.silence))
    by = f" by {receipt.decided_by}" if receipt.decided_by else ""
    return f"expired: marked not ready{by} after {silence} of silence"


def clock_time_of(moment_s: int) -> str:
    """A moment in local time, in seconds since 1970."""
    moment = instance_pb2.Condition().last_transition_time
    moment.seconds = moment_s
    return clock_time(moment)


def _head(answer: pb.ExplainInstanceResponse, now_s: float) -> Iterator[str]:
    meta, ready = answer.meta, answer.ready
    known = ready.status and ready.last_transition_time.seconds
    words = (SINCE_WORDS if known else READY_WORDS)[truth(ready)]
    since = f" since {clock_time(ready.last_transition_time)}" if known else ""
    when = f" ({ago(ready.last_transition_time.seconds, now_s)})" if since else ""
    yield f"{meta.id} {words}{since}{when}."
    if answer.summary:
        yield f"  {answer.summary}"
    service = f"service {meta.service_id}, " if meta.service_id else ""
    where = f"node {answer.node_name}" if answer.node_name else "no node yet"
    yield f"  {service}{where}, version {meta.version}, status version {meta.status_version}"
    if truth(answer.agent) == "no":
        yield f"  Its agent is {_condition('heard', answer.agent, now_s)}: {answer.agent.message}."
    if answer.node_suspended_until.seconds:
        until = clock_time(answer.node_suspended_until)
        yield f"  Planned work on {answer.node_name} until {until}: nothing there expires."


def _revision(revision: pb.RevisionExplanation, now_s: float, told: str) -> Iterator[str]:
    wanted = f"wanted {target(revision.target)}" if revision.target else "not in the spec"
    if not revision.last_heartbeat_time.seconds and not revision.ready.status:
        yield f"Revision {revision.id}, {wanted}: no agent has reported it."
        return
    yield f"Revision {revision.id}, {wanted}: {_condition('ready', revision.ready, now_s)}."
    if revision.summary and revision.summary not in told:
        yield f"  {revision.summary}"
    if truth(revision.installed) != "yes" and revision.last_heartbeat_time.seconds:
        yield f"  {_condition('installed', revision.installed, now_s)}"
    if revision.ready.message and not revision.ready.HasField("receipt"):
        yield f"  message: {revision.ready.message}"
    yield f"  last report   {_last_report(revision, now_s)}"
    yield f"  deadline      {_deadline(revision)}"
    if revision.postponed_because:
        yield f"  postponed     {revision.postponed_because}"
    if revision.ready.HasField("receipt"):
        yield from _receipt(revision.ready.receipt)
    for container in revision.container:
        yield from _isolation(container)
        yield from _last_end(container, now_s)


def _isolation(container: instance_pb2.ContainerStatus) -> Iterator[str]:
    if container.isolation:
        yield f"  isolation     {container.name}: {container.isolation}"


def _last_end(container: instance_pb2.ContainerStatus, now_s: float) -> Iterator[str]:
    """How a container ended last, and what it said."""
    if not container.HasField("last_termination"):
        return
    end = container.last_termination
    times = f", restarted {container.restart_count} times" if container.restart_count else ""
    how = end.message or end.reason
    yield f"  container     {container.name} ended {ago(end.finish_time.seconds, now_s)}: {how}{times}"
    if end.output:
        yield "    its last output:"
        yield from (f"    | {line}" for line in end.output.splitlines())


def _condition(word: str, condition: instance_pb2.Condition, now_s: float) -> str:
    held = {"yes": word, "no": f"not {word}"}.get(truth(condition), f"{word} unknown")
    reason = f" ({condition.reason})" if condition.reason else ""
    since = f" for {age(condition.last_transition_time, now_s)}" if condition.last_transition_time.seconds else ""
    return f"{held}{reason}{since}"


def _last_report(revision: pb.RevisionExplanation, now_s: float) -> str:
    if revision.HasField("not_since"):
        silence = span(seconds_of(revision.silent_for))
        return f"none since this replica started to listen at {clock_time(revision.not_since)}, {silence} or more ago"
    if not revision.last_heartbeat_time.seconds:
        return "never"
    heard_by = f" by {revision.heard_by}" if revision.heard_by else ""
    when = clock_time(revision.last_heartbeat_time)
    # The replica's own measurement does not depend on any wall clock.
    measured = f"{span(seconds_of(revision.silent_for))} ago" if revision.HasField("silent_for") else ""
    told = measured or ago(revision.last_heartbeat_time.seconds, now_s)
    return f"{told}, at {when}, heard{heard_by or ' before this replica started'}"


def _deadline(revision: pb.RevisionExplanation) -> str:
    if not revision.HasField("deadline_in"):
        return "none"
    left_s = seconds_of(revision.deadline_in)
    when = f"in {span(left_s)}" if left_s >= 0 else f"passed {span(-left_s)} ago"
    if not revision.HasField("timeout"):
        return when
    interval, timeout = span(seconds_of(revision.report_interval)), span(seconds_of(revision.timeout))
    return f"{when} (reports every {interval}, timeout {timeout})"


def _receipt(receipt: instance_pb2.Receipt) -> Iterator[str]:
    if receipt.recovered_from:
        yield f"  decision      recovered by a report (was {receipt.recovered_from})"
        return
    heard = clock_time(receipt.last_heartbeat_time)
    heard_by = f" by {receipt.heard_by}" if receipt.heard_by else ""
    silence = span(seconds_of(receipt.silence))
    decided = f"{receipt.decided_by} decided it at version {receipt.decided_at_version}"
    yield f"  decision      {decided}, after {silence} of silence; last heard {heard}{heard_by}"
    if receipt.guard_verdict:
        yield f"  guard verdict {receipt.guard_verdict}"
