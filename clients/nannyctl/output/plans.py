"""Plans as people and programs read them. Identical actions are shown once, with their instances."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import click

from hqcli.readable import plural
from hqcli.terminal import colour_of, escape_controls
from nannyctl.plans.diff import FieldChange, format_value
from nannyctl.plans.plan import InstancePlan, PlannedAction, PlannedKind

SHOWN = 10
SIGNS = {
    PlannedKind.CREATE: "+",
    PlannedKind.UPDATE: "~",
    PlannedKind.DELETE: "-",
    PlannedKind.REFUSED: "!",
    PlannedKind.UNCHANGED: " ",
}
COLOURS = {"+": "green", "~": "yellow", "-": "red", "!": "red"}
WORDS = {
    PlannedKind.CREATE: "to create",
    PlannedKind.UPDATE: "to change",
    PlannedKind.DELETE: "to delete",
    PlannedKind.REFUSED: "impossible",
    PlannedKind.UNCHANGED: "as described",
}
# Fields that naturally differ between instances.
OWN = ("meta.id", "spec.node_name", "spec.allocation.host", "spec.allocation.port", "spec.allocation.disk")


class PlanLine(NamedTuple):
    """A line of text; the sign gives its colour."""

    sign: str
    text: str


def plan_lines(installation: str, plan: InstancePlan, *, every: bool = False) -> Iterator[PlanLine]:
    """The plan: a heading, then each group of identical actions with its instances and changes."""
    counts = [f"{count} {WORDS[PlannedKind(kind)]}" for kind, count in plan.counts().items() if count]
    yield PlanLine("", f"{installation}: {plan.service}: {', '.join(counts) or 'nothing'}")
    for group in _groups(plan.actions):
        first = group[0]
        sign = SIGNS[first.kind]
        for action in group[: len(group) if every else SHOWN]:
            yield PlanLine(sign, f"  {sign} {action.id}{_own_words(action)}")
        if len(group) > SHOWN and not every:
            yield PlanLine(sign, f"  {sign} ... and {plural(len(group) - SHOWN, 'more instance')} (--all names them)")
        if first.note:
            yield PlanLine("!" if first.kind is PlannedKind.REFUSED else "", f"      {first.note}")
        if first.kind is not PlannedKind.DELETE:
            yield from (_change_line(change) for change in first.changes if not _is_own(change))


def print_lines(lines: Iterable[PlanLine]) -> None:
    """On stdout, in colours on a terminal."""
    coloured = colour_of(sys.stdout)
    for line in lines:
        bold = not line.sign and not line.text.startswith(" ")
        click.secho(escape_controls(line.text), fg=COLOURS.get(line.sign), bold=bold, color=coloured)


def plan_as_dict(plan: InstancePlan) -> dict[str, Any]:
    """The plan for programs: every action except those that change nothing."""
    actions = [
        _action_as_dict(action) for action in plan.actions if action.kind is not PlannedKind.UNCHANGED or action.note
    ]
    return {"service": plan.service, "empty": plan.is_empty, "counts": plan.counts(), "actions": actions}


def _action_as_dict(action: PlannedAction) -> dict[str, Any]:
    changes = [{"field": c.field, "before": c.before, "after": c.after} for c in action.changes]
    version = action.before.instance.meta.version if action.before is not None else None
    told = {"instance": action.id, "action": action.kind.value, "version": version, "changes": changes}
    return {**told, "note": action.note} if action.note else told


def _groups(actions: Sequence[PlannedAction]) -> list[list[PlannedAction]]:
    """Identical actions, in order of their first instances; those that change nothing only if they have a note."""
    groups: defaultdict[tuple[str, ...], list[PlannedAction]] = defaultdict(list)
    for action in actions:
        if action.kind is not PlannedKind.UNCHANGED or action.note:
            groups[_likeness(action)].append(action)
    return list(groups.values())


def _likeness(action: PlannedAction) -> tuple[str, ...]:
    common = (f"{c.field}\n{c.before!r}\n{c.after!r}" for c in action.changes if not _is_own(c))
    return action.kind, action.note, *(() if action.kind is PlannedKind.DELETE else common)


def _is_own(change: FieldChange) -> bool:
    return change.field.startswith(OWN)


def _own_words(action: PlannedAction) -> str:
    if action.kind is PlannedKind.DELETE:
        return ""
    own = [change for change in action.changes if _is_own(change) and change.field != "meta.id"]
    return "".join(f"  {_short(change.field)}={_after(change)}" for change in own)


def _short(field: str) -> str:
    """`spec.allocation.port[http].number` is `http` to people."""
    name = field.removeprefix("spec.allocation.").removeprefix("spec.")
    return name.removeprefix("port[").removesuffix("].number") if name.startswith("port[") else name


def _after(change: FieldChange) -> str:
    after = "(none)" if change.after is None else format_value(change.after)
    return after if change.before is None else f"{format_value(change.before)}->{after}"


def _change_line(change: FieldChange) -> PlanLine:
    if change.before is None:
        return PlanLine("+", f"      + {change.field}{_value(change.after, change.field)}")
    if change.after is None:
        return PlanLine("-", f"      - {change.field}{_value(change.before, change.field)}")
    before, after = _value(change.before, change.field), format_value(change.after, change.field)
    return PlanLine("~", f"      ~ {change.field}{before} -> {after}")


def _value(value: Any, field: str) -> str:
    return "" if value == "" else f": {format_value(value, field)}"
