"""Services, snapshots, instances and history as tables, and the live table of a roll-out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from hqcli.terminal import escape_controls
from nannypb.v1 import service_pb2 as pb

_SHORT = 8
_JUDGED_SHOWN = 5


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as they need to be."""
    lines = [list(head), *([escape_controls(str(cell)).replace("\n", "\\n") for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def service_words(service: pb.Service) -> str:
    """`web: Online, paused by ann: looking`, and what blocks it."""
    words = f"{service.id}: {state_words(service)}"
    if service.HasField("paused"):
        words += f", paused by {service.paused.author or 'somebody'}: {service.paused.comment or 'no reason given'}"
    if service.info.rollout.leave_out:
        words += f", leaves out {', '.join(service.info.rollout.leave_out)}"
    for problem in filter(None, [service.stuck, service.remark, *(f"drift: {line}" for line in service.drift)]):
        words += f"\n  {problem}"
    return escape_controls(words)


def show_service(service: pb.Service) -> str:
    """A service with its snapshots and their progress."""
    parts = [service_words(service)]
    if service.snapshot:
        rows = [
            (
                short(one.snapshot_id) + (" HEAD" if one.snapshot_id == service.head else ""),
                current_name(one.current),
                target_name(one.target),
                one.target_set.author,
                remark_of(one),
            )
            for one in service.snapshot
        ]
        parts.append(table(("SNAPSHOT", "CURRENT", "TARGET", "BY", ""), rows))
    parts += [progress_table(one) for one in service.snapshot if one.action.location]
    return "\n".join(parts)


def remark_of(state: pb.SnapshotState) -> str:
    """Return the progress of a snapshot's action, else why it is in its state, else why its last order failed."""
    failed = state.order.outcome in (pb.ORDER_OUTCOME_FAILED, pb.ORDER_OUTCOME_ROLLED_BACK)
    return state.action.message or state.message or (outcome_words(state.order) if failed else "")


def outcome_words(order: pb.Order) -> str:
    """`rolled back to 5ff2d2f1: web-1 (ams) did not become ready`."""
    words = pb.OrderOutcome.Name(order.outcome).removeprefix("ORDER_OUTCOME_").replace("_", " ").lower()
    if order.instead_snapshot_id and order.outcome != pb.ORDER_OUTCOME_FAILED:
        words += (" to " if order.outcome == pb.ORDER_OUTCOME_ROLLED_BACK else " by ") + short(
            order.instead_snapshot_id
        )
    return f"{words}: {order.message}" if order.message else words


def active_words(service: pb.Service) -> str:
    """Which snapshot is, or is becoming, the running one."""
    wanted = next((one for one in service.snapshot if one.target == pb.TARGET_ACTIVE), None)
    return (
        f"{short(wanted.snapshot_id)} is {current_name(wanted.current)}"
        if wanted
        else "no snapshot has the target ACTIVE"
    )


def progress_table(state: pb.SnapshotState) -> str:
    """The progress of a snapshot's action, by location."""
    action = state.action
    done = f", {action.batches_done} batch{'es' * (action.batches_done > 1)} done" if action.batches_done else ""
    task = f", CMS task {action.cms_task}" if action.cms_task else ""
    rows = [
        (one.location, one.total, one.done, one.under_way, one.left, one.failed, one.error)
        for one in action.location
        if one.total or one.error
    ]
    head = ("LOCATION", "TOTAL", "DONE", "UNDER WAY", "LEFT", "FAILED", "")
    lines = [f"{action.action} {short(state.snapshot_id)}{done}{task}", table(head, rows)]
    return "\n".join([*lines, *judged_lines(action.judged)])


def judged_lines(
    judged: Sequence[pb.JudgedInstance], *, most: int = _JUDGED_SHOWN, with_output: bool = False
) -> list[str]:
    """A line for each of the latest judged instances; `with_output`: also what it printed last."""
    lines = []
    for one in judged[len(judged) - min(most, len(judged)) :]:
        lines.append(f"{one.verdict}: {one.id} ({one.location}): {one.message}")
        if with_output:
            lines += [f"  | {line}" for line in one.output.splitlines()]
    return lines


SERVICE_HEAD = ("SERVICE", "STATE", "", "HEAD", "")
SNAPSHOT_HEAD = ("SNAPSHOT", "TIME", "AUTHOR", "INSTANCES", "COMMENT")


def service_row(one: pb.Service) -> tuple[str, ...]:
    """Cells under `SERVICE_HEAD`."""
    paused = "paused" if one.HasField("paused") else ""
    return one.id, state_words(one), paused, short(one.head), "; ".join(filter(None, [one.stuck, one.remark]))


def snapshot_row(one: pb.Snapshot) -> tuple[str, ...]:
    """Cells under `SNAPSHOT_HEAD`."""
    return (
        short(one.id) + (" HEAD" if one.head else ""),
        one.created.time.ToJsonString()[:19],
        one.created.author,
        str(one.instances),
        one.created.comment,
    )


def show_instances(answer: pb.ListInstancesResponse) -> str:
    rows = [
        (
            one.id,
            one.location,
            one.node_name,
            one.state_name,
            (target_name(one.target) or "UNKNOWN") + (" (own)" if one.HasField("own_target") else ""),
            "yes" if one.serving else "no",
            one.message,
        )
        for one in answer.instance
    ]
    text = f"Snapshot {short(answer.snapshot_id)} has no instances."
    if rows:
        text = table(("INSTANCE", "LOCATION", "NODE", "STATE", "TARGET", "SERVING", ""), rows)
    return "\n".join([text, *(f"{location}: {why}" for location, why in sorted(answer.missing.items()))])


def show_history(entries: Iterable[pb.HistoryEntry]) -> str:
    rows = [
        (one.time.ToJsonString()[:19], one.author or "nanny", short(one.snapshot_id), one.what, one.comment)
        for one in entries
    ]
    return table(("TIME", "WHO", "SNAPSHOT", "WHAT", "WHY"), rows)


def short(snapshot: str) -> str:
    """The first characters, as many as people compare."""
    return snapshot[:_SHORT]


def state_name(state: int) -> str:
    return pb.ServiceState.Name(state).removeprefix("SERVICE_STATE_").capitalize()


def state_words(service: pb.Service) -> str:
    """`Online 5/6`: how many of its instances are ready, where that was looked at."""
    name = state_name(service.state)
    counts = service.state in (pb.SERVICE_STATE_ONLINE, pb.SERVICE_STATE_BROKEN) and service.wanted
    return f"{name} {service.ready}/{service.wanted}" if counts else name


def current_name(state: int) -> str:
    return pb.CurrentState.Name(state).removeprefix("CURRENT_STATE_")


def target_name(target: int) -> str:
    """The name of a target; empty: none."""
    return pb.Target.Name(target).removeprefix("TARGET_") if target else ""


class LiveServiceView:
    """Keeps showing a service: in place on a terminal, elsewhere one line for each change."""

    def __init__(self, stream: Any = None) -> None:
        self._stream = stream or sys.stderr
        self._lines = 0
        self._last = ""

    def show(self, service: pb.Service) -> None:
        """Show what is new."""
        if self._stream.isatty():
            text = escape_controls(show_service(service))
            self._stream.write(f"\x1b[{self._lines}F\x1b[J" if self._lines else "")
            self._stream.write(text + "\n")
            self._lines = text.count("\n") + 1
        elif (line := escape_controls(_one_line(service))) != self._last:
            self._last = line
            self._stream.write(line + "\n")
        self._stream.flush()


def _one_line(service: pb.Service) -> str:
    parts = [service_words(service).replace("\n ", ";")]
    for one in service.snapshot:
        done = ", ".join(f"{where.location} {where.done}/{where.total}" for where in one.action.location)
        words = f"{short(one.snapshot_id)} {current_name(one.current)}"
        parts.append(" ".join(filter(None, [words, f"[{done}]" if done else "", remark_of(one)])))
    return " | ".join(parts)
