"""An instance as a row of a table, and its whole story on a time line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from console.backends.asking import Trouble
from console.views.listing import Column
from console.views.urls import url
from console.views.words import Moment, absolute, lasting, plural, seconds, span, split_camel_case
from hqpb.v1 import admin_pb2
from hqpb.v1 import instance_pb2 as ipb
from hqpb.v1 import service_pb2 as pb

_TRUE: Final = ipb.CONDITION_STATUS_TRUE
_FALSE: Final = ipb.CONDITION_STATUS_FALSE
_SILENT: Final = "HeartbeatTimeout"
_TARGETS: Final = {
    ipb.REVISION_TARGET_UNSPECIFIED: "installed",
    ipb.REVISION_TARGET_INSTALLED: "installed",
    ipb.REVISION_TARGET_READY: "ready",
}


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """One line of a table. `state`: good, bad or unknown; note: it need not be ready."""

    id: str
    href: str
    service: str
    cluster: str
    node: str
    state: str
    reason: str
    message: str
    since: Moment
    endpoints: Sequence[str]
    wanted: str
    ready: Sequence[str]
    heard: Moment


COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {
        "name": Column(lambda row: row.id),
        "location": Column(lambda row: row.cluster),
        "state": Column(lambda row: row.reason),
        "service": Column(lambda row: row.service),
        "revision": Column(lambda row: row.wanted),
        "since": Column(lambda row: seconds(row.since), most_first=True),
        "heard": Column(lambda row: seconds(row.heard), most_first=True),
    }
)


def row(one: ipb.Instance, now_s: float = 0.0) -> InstanceRow:
    """Make its row of the table. `now_s`: for how long it has been silent."""
    status, spec = one.status, one.spec
    ready = status.ready
    wanted = next((r.id for r in spec.revision if r.target == ipb.REVISION_TARGET_READY), "")
    state = "good" if ready.status == _TRUE else "note" if not wanted else "bad" if status.revision else "unknown"
    worst = _speaking(one)
    heard = status.last_heartbeat_time if status.HasField("last_heartbeat_time") else None
    if wanted and status.agent.status == _FALSE:
        state = "bad"
    is_silent = state == "bad" and worst.reason == _SILENT and heard is not None
    host = spec.allocation.host or spec.node_name
    return InstanceRow(
        id=one.meta.id,
        href=url("instances", one.meta.cluster, one.meta.id),
        service=one.meta.service_id,
        cluster=one.meta.cluster,
        node=spec.node_name,
        state=state,
        reason={"good": "", "note": "switched off", "unknown": "never reported"}.get(
            state, split_camel_case(worst.reason) or "not ready"
        ),
        message="" if state in ("good", "note") else silence(heard, now_s) if is_silent else worst.message,
        since=ready.last_transition_time if ready.HasField("last_transition_time") else None,
        endpoints=[f"{port.name} {host}:{port.number}" for port in spec.allocation.port],
        wanted=wanted,
        ready=[r.id for r in status.revision if r.ready.status == _TRUE],
        heard=None if is_silent else heard,
    )


def silence(heard: Moment, now_s: float) -> str:
    """Since when an instance is silent, and for how long (the condition's message has the duration at expiry only)."""
    at_s = seconds(heard)
    lasts = f" ({span(now_s - at_s)})" if now_s - at_s >= 60 else ""
    return f"silent since {absolute(at_s, now_s or at_s)}{lasts}"


def _speaking(one: ipb.Instance) -> ipb.Condition:
    """The condition that says why: the agent's if it is not heard, that of the revision wanted ready, or its own."""
    if one.status.agent.status == _FALSE:
        return one.status.agent
    wanted = {r.id for r in one.spec.revision if r.target == ipb.REVISION_TARGET_READY}
    for revision in one.status.revision:
        if revision.id in wanted and revision.ready.status != _TRUE:
            return revision.ready
    return one.status.ready


def is_crashing(one: ipb.Instance) -> bool:
    """Whether a container of it was started again and does not stay up."""
    containers = (container for revision in one.status.revision for container in revision.container)
    return any(one.restart_count and not one.ready and not one.state.HasField("running") for one in containers)


@dataclass(frozen=True, slots=True)
class LastOutput:
    """The last output of a container before it ended. `ended`: which one, and how."""

    instance: str
    href: str
    ended: str
    text: str
    at: Moment


def last_output(one: ipb.Instance | None) -> LastOutput | None:
    """Output of the container that failed last; None: none failed, or its agent sends no output."""
    failed = [
        (revision.id, container.name, container.last_termination)
        for revision in (one.status.revision if one is not None else ())
        for container in revision.container
        if container.last_termination.output
        and (container.last_termination.exit_code or container.last_termination.signal)
    ]
    if one is None or not failed:
        return None
    revision_id, name, ended = max(failed, key=lambda each: seconds(each[2].finish_time))
    href = url("instances", one.meta.cluster, one.meta.id)
    return LastOutput(one.meta.id, href, f"{revision_id}/{name}: {_ending(ended)}", ended.output, ended.finish_time)


@dataclass(frozen=True, slots=True)
class Moments:
    """One point of a time line."""

    at: Moment
    state: str
    title: str
    text: str = ""


def story(
    one: ipb.Instance | None,
    why: pb.ExplainInstanceResponse,
    moves: Iterable[admin_pb2.Transition],
    now_s: float,
) -> list[Moments]:
    """Return what happened, newest first; before it, what will happen unless somebody reports."""
    points = [*_coming(why, now_s), *_moves(moves), *_revisions(why), *_containers(one)]
    points.append(Moments(why.meta.creation_time, "plain", "created", f"uid {why.meta.uid}"))
    if why.meta.modification_time != why.meta.creation_time:
        points.append(
            Moments(why.meta.modification_time, "plain", "description changed", f"version {why.meta.version}")
        )
    seen: dict[tuple[int, str, str], Moments] = {}
    for point in points:
        if seconds(point.at):  # do not repeat an expiry as the revision's state
            whose = point.title.partition(" ")[0]
            seen.setdefault((int(seconds(point.at)), whose, point.text or point.title), point)
    return sorted(seen.values(), key=lambda point: -seconds(point.at))


def _coming(why: pb.ExplainInstanceResponse, now_s: float) -> Iterable[Moments]:
    for revision in why.revision:
        if revision.HasField("deadline_in") and (left_s := lasting(revision.deadline_in)) > 0:
            text = revision.postponed_because or "unless its agent reports before"
            yield Moments(now_s + left_s, "coming", f"{revision.id} would expire", text)
    if why.HasField("node_suspended_until"):
        yield Moments(why.node_suspended_until, "coming", "planned work on the node ends", "nothing expires before")


def _revisions(why: pb.ExplainInstanceResponse) -> Iterable[Moments]:
    for revision in why.revision:
        for name, condition in (("installed", revision.installed), ("ready", revision.ready)):
            if condition.HasField("last_transition_time"):
                holds = condition.status == _TRUE
                word = name if holds else f"not {name}"
                matters = name == "installed" or revision.target == ipb.REVISION_TARGET_READY
                yield Moments(
                    condition.last_transition_time,
                    "good" if holds else "bad" if matters else "plain",
                    f"{revision.id} {word}",
                    _condition_text(condition),
                )
        if revision.HasField("last_heartbeat_time"):
            by = f"received by {revision.heard_by}" if revision.heard_by else ""
            yield Moments(revision.last_heartbeat_time, "plain", f"{revision.id} reported last", by)


def _condition_text(condition: ipb.Condition) -> str:
    parts = [split_camel_case(condition.reason), condition.message]
    if condition.HasField("receipt"):
        parts.append(_decision(condition.receipt))
    return " · ".join(part for part in parts if part)


def _decision(receipt: ipb.Receipt) -> str:
    parts = [f"decided by {receipt.decided_by}"] if receipt.decided_by else []
    if receipt.HasField("silence"):
        parts.append(f"after {span(lasting(receipt.silence))} of silence")
    if receipt.guard_verdict:
        parts.append(f"guard: {receipt.guard_verdict}")
    if receipt.recovered_from:
        parts.append(f"ended: {receipt.recovered_from}")
    return ", ".join(parts)


def _moves(moves: Iterable[admin_pb2.Transition]) -> Iterable[Moments]:
    for move in moves:
        word = "ready again" if move.ready else "expired: marked not ready"
        yield Moments(
            move.time, "good" if move.ready else "bad", f"{move.revision_id} {word}", _condition_text(move.condition)
        )


def _containers(one: ipb.Instance | None) -> Iterable[Moments]:
    for revision in one.status.revision if one is not None else ():
        for container in revision.container:
            name = f"{revision.id}/{container.name}"
            if container.state.HasField("running"):
                yield Moments(container.state.running.start_time, "plain", f"{name} started", _restarts(container))
            for ended in (container.state.terminated, container.last_termination):
                if ended.HasField("finish_time"):
                    yield Moments(
                        ended.finish_time,
                        "bad" if ended.exit_code or ended.signal else "plain",
                        f"{name} ended",
                        _ending(ended),
                    )


def _restarts(container: ipb.ContainerStatus) -> str:
    return f"after {plural(container.restart_count, 'restart')}" if container.restart_count else ""


def _ending(ended: ipb.ContainerTerminated) -> str:
    how = f"killed by signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
    return " · ".join(part for part in (how, split_camel_case(ended.reason), ended.message) if part)


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """One revision of an instance."""

    id: str
    target: str
    installed: str
    ready: str
    summary: str
    heard: Moment
    silence: str


def revisions(why: pb.ExplainInstanceResponse, now_s: float) -> list[RevisionRow]:
    """Revisions that are wanted, or still report."""
    return [
        RevisionRow(
            one.id,
            _TARGETS.get(one.target, "unknown") if one.target else "not wanted",
            _mark(one.installed),
            _mark(one.ready) if one.target == ipb.REVISION_TARGET_READY or one.ready.status == _TRUE else "note",
            one.summary,
            one.last_heartbeat_time if one.HasField("last_heartbeat_time") else None,
            silence(one.last_heartbeat_time, now_s)
            if one.HasField("last_heartbeat_time") and one.ready.reason == _SILENT
            else "",
        )
        for one in why.revision
    ]


def _mark(condition: ipb.Condition) -> str:
    return {ipb.CONDITION_STATUS_TRUE: "good", ipb.CONDITION_STATUS_FALSE: "bad"}.get(condition.status, "unknown")


def are_cut(found: Iterable[tuple[str, admin_pb2.ListTransitionsResponse | Trouble]], most: int) -> bool:
    """Whether a location may know more than it answered, as it gave as many as were asked for."""
    return any(not isinstance(answer, Trouble) and len(answer.transitions) >= most for _, answer in found)


def moves_of(
    found: Iterable[tuple[str, admin_pb2.ListTransitionsResponse | Trouble]],
) -> list[tuple[str, admin_pb2.Transition]]:
    """Return all moves with their clusters, newest first."""
    listed = [(name, move) for name, answer in found if not isinstance(answer, Trouble) for move in answer.transitions]
    return sorted(listed, key=lambda pair: -seconds(pair[1].time))
