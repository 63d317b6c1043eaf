"""Nanny's roll-outs: problems for the first page (orders that failed or wait), and the steps of one roll-out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from console.views.instances import LastOutput
from console.views.problems import Problem
from console.views.snapshots import current_of, has_failed, short, target_of
from console.views.urls import url
from console.views.words import plural, seconds, span
from nannypb.v1 import service_pb2 as pb

_OUTCOMES: Final = {
    pb.ORDER_OUTCOME_OPEN: ("busy", "under way"),
    pb.ORDER_OUTCOME_REACHED: ("good", "reached its end"),
    pb.ORDER_OUTCOME_FAILED: ("bad", "failed"),
    pb.ORDER_OUTCOME_ROLLED_BACK: ("warn", "failed, and was rolled back"),
    pb.ORDER_OUTCOME_SUPERSEDED: ("note", "another order took its place"),
    pb.ORDER_OUTCOME_CANCELLED: ("note", "cancelled"),
}


def failed_services(services: Iterable[pb.Service]) -> list[str]:
    """Services whose roll-out failed."""
    return [
        one.id
        for one in services
        if any(has_failed(state) and state.target == pb.TARGET_ACTIVE for state in one.snapshot)
    ]


def judged_output(rollout: pb.Rollout) -> LastOutput | None:
    """What the first of the judged instances that printed something printed last."""
    printed = next((one for one in rollout.judged if one.output), None)
    if printed is None:
        return None
    href = url("instances", printed.location, printed.id)
    return LastOutput(printed.id, href, printed.message, printed.output, printed.time)


def nanny_problems(
    services: Iterable[pb.Service], control: pb.ControlState | None, rollouts: Mapping[str, pb.Rollout] | None = None
) -> list[Problem]:
    """Orders that failed, services that are stuck, paused or drift; a Nanny that does not act.

    `rollouts`: the last one of some services, for what its instances printed.
    """
    ran = rollouts or {}
    found = [problem for one in services for problem in _of_service(one, ran.get(one.id, pb.Rollout()))]
    if control is not None and not control.open:
        found.append(
            Problem(
                "bad",
                "Nanny's store was restored or replaced",
                "Nanny changes nothing until an operator opens the epoch.",
                "Compare the targets with what runs, then run `nanny control open`.",
            )
        )
    elif control is not None and control.HasField("frozen"):
        why = f"by {control.frozen.author}: {control.frozen.comment}. No roll-out begins."
        found.append(Problem("warn", "Nanny is frozen", why, "", "", seconds(control.frozen.time)))
    elif control is not None and control.why_not:
        found.append(Problem("bad", "No Nanny process is the leader", control.why_not))
    return found


def _of_service(one: pb.Service, ran: pb.Rollout) -> list[Problem]:
    href = url("services", one.id, "snapshots")
    found = [
        _failure_problem(one.id, state, href, judged_output(ran) if state.snapshot_id == ran.snapshot_id else None)
        for state in one.snapshot
        if has_failed(state)
    ]
    if one.state == pb.SERVICE_STATE_BROKEN and not found:
        since = max((seconds(s.current_since) for s in one.snapshot), default=0.0)
        ways = "Roll back on its page, or activate a better snapshot."
        said = "An activation did not finish."
        found.append(Problem("bad", f"{one.id}: the roll-out failed", said, ways, href, since))
    if one.stuck:
        found.append(Problem("bad", f"{one.id} is stuck", one.stuck, "", href))
    if one.HasField("paused"):
        why = f"by {one.paused.author}: {one.paused.comment or 'no reason given'}. No action begins."
        ways = f"Somebody with the role operator can resume it: `nanny resume {one.id}`"
        found.append(Problem("note", f"{one.id} is paused", why, ways, href, seconds(one.paused.time)))
    if one.drift:
        more = f" and {plural(len(one.drift) - 1, 'more difference')}" if len(one.drift) > 1 else ""
        found.append(Problem("warn", f"{one.id} differs from what is wanted", f"{one.drift[0]}{more}.", "", href))
    if one.state == pb.SERVICE_STATE_UPDATING and not found:
        why = "Its page shows the batches, and lets you roll back."
        found.append(Problem("note", f"{one.id}: a roll-out is under way", why, "", href))
    return found


def _failure_problem(service: str, state: pb.SnapshotState, href: str, output: LastOutput | None) -> Problem:
    """The problem of a snapshot that rests half way to its target."""
    name, target = short(state.snapshot_id), target_of(state.target)
    is_rollout = state.target == pb.TARGET_ACTIVE
    title = f"{service}: the roll-out failed" if is_rollout else f"{service}: {name} has not become {target}"
    back = ", roll back" if is_rollout else ", set another target"
    return Problem(
        "bad" if is_rollout else "warn",
        title,
        state.message or f"{name} is {current_of(state)}.",
        f"Retry{back} on its page. Again: `nanny target {service} {target.lower()} {state.snapshot_id}`",
        href,
        seconds(state.current_since),
        output=output,
    )


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of a roll-out.

    Attributes:
        state: past, now, coming, or ended: the roll-out ended within it.
        held: how much of its time is over; empty: it holds nothing.
        bound: what its check asks, and within which bound; empty: it is no check.
        instances, weight: in per cent of all, from this step on.
    """

    number: int
    words: str
    state: str
    record: pb.RolloutStepRecord
    held: str
    result: str
    bound: str
    instances: float
    weight: float


@dataclass(frozen=True, slots=True)
class RolloutPicture:
    """One roll-out. `step_number`: the step under way, 0 for none; `waits`: it waits for a person's promotion.

    `may_end`: it can be aborted.
    """

    rollout: pb.Rollout
    outcome: tuple[str, str]
    steps: list[StepRow]
    step_number: int
    waits: bool
    may_end: bool


def rollout_picture(rollout: pb.Rollout, service: pb.Service, instances: int = 0) -> RolloutPicture | None:
    """None: no snapshot was ordered ACTIVE yet. `instances`: of the snapshot, if no progress is reported."""
    if not rollout.snapshot_id:
        return None
    state = next((one for one in service.snapshot if one.snapshot_id == rollout.snapshot_id), pb.SnapshotState())
    action = state.action if rollout.order.outcome == pb.ORDER_OUTCOME_OPEN else pb.ActionProgress()
    total = sum(one.total for one in action.location) or instances
    rows = list(_step_rows(rollout, action, {one.name: one for one in service.info.rollout.check}, total))
    now = next((one for one in rows if one.state == "now"), None)
    return RolloutPicture(
        rollout=rollout,
        outcome=_OUTCOMES.get(rollout.order.outcome, ("unknown", "not known")),
        steps=rows,
        step_number=now.number if now is not None else 0,
        waits=now is not None and now.record.step.promote,
        may_end=action.action == "activate" and not rollout.HasField("aborted"),
    )


def _step_rows(
    rollout: pb.Rollout, action: pb.ActionProgress, checks: Mapping[str, pb.RolloutCheck], total: int
) -> Iterator[StepRow]:
    """All steps while it is under way; afterwards those that had begun."""
    is_open = rollout.order.outcome == pb.ORDER_OUTCOME_OPEN  # the service may not have been heard
    planned = list(action.step) or [one.step for one in rollout.step]
    instances, weight = 0.0, 100.0
    for number, step in enumerate(planned, 1):
        record = rollout.step[number - 1] if number <= len(rollout.step) else pb.RolloutStepRecord(step=step)
        begun = record.HasField("begin_time")
        past = record.HasField("end_time") or (action.step_number > number)
        is_now = number == action.step_number or (is_open and begun and not past)
        instances = _percent(step.instances, total) if step.instances else instances
        weight = _percent(step.weight, 0) if step.weight else weight
        check = checks.get(step.check, pb.RolloutCheck())
        lasts_s = step.hold_s or ((check.duration_s or _CHECKED_S) if step.check else 0)
        yield StepRow(
            number=number,
            words=_step_words(step),
            state="now" if is_now else "past" if past else "ended" if begun else "coming",
            record=record,
            held=f"{span(action.step_ms / 1e3)} of {span(lasts_s)}" if is_now and lasts_s else "",
            result=(action.check_result if is_now and step.check else "") or record.check_result,
            bound=_check_words(check) if step.check and check.name else "",
            instances=instances,
            weight=weight,
        )


_CHECKED_S: Final = 300  # Nanny's default


def _step_words(step: pb.RolloutStep) -> str:
    """A step as a sentence's part."""
    if step.hold_s:
        return f"hold for {span(step.hold_s)}"
    if step.promote:
        return "wait for a person"
    if step.check:
        return f"check {step.check}"
    many = step.instances if step.instances.endswith("%") else plural(int(step.instances or 0), "instance")
    weight = f"{step.weight} of the usual weight"
    return f"{many}, {weight}" if step.instances and step.weight else many if step.instances else weight


def _check_words(check: pb.RolloutCheck) -> str:
    bounds = [
        f"{word} {value:g}"
        for word, value, is_set in (
            ("below", check.below, check.HasField("below")),
            ("above", check.above, check.HasField("above")),
        )
        if is_set
    ]
    return f"{check.query} {' and '.join(bounds)}, for {span(check.duration_s or _CHECKED_S)}"


def _percent(amount: str, total: int) -> float:
    """`10%` as it is; `3` of `total`, 0 where that is not known."""
    text = amount.removesuffix("%")
    if not text.replace(".", "", 1).isdigit():
        return 0.0
    value = float(text) if amount.endswith("%") else 100.0 * float(text) / total if total else 0.0
    return min(100.0, value)
