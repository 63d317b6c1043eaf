"""What Nanny's services say for the first page: orders that failed, what keeps others, and what was ordered to wait."""

from __future__ import annotations

from collections.abc import Iterable

from console.views.problems import Problem
from console.views.snapshots import current_of, has_failed, short, target_of
from console.views.urls import url
from console.views.words import plural, seconds
from nannypb.v1 import service_pb2 as pb


def nanny_problems(services: Iterable[pb.Service], control: pb.ControlState | None) -> list[Problem]:
    """Orders that failed, services that are stuck, paused or drift; a Nanny that does not act."""
    found = [problem for one in services for problem in _of_service(one)]
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


def _of_service(one: pb.Service) -> list[Problem]:
    href = url("services", one.id, "snapshots")
    found = [_failure_problem(one.id, state, href) for state in one.snapshot if has_failed(state)]
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


def _failure_problem(service: str, state: pb.SnapshotState, href: str) -> Problem:
    """A snapshot that rests half way to its target."""
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
    )
