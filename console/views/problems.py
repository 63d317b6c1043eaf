"""Problems of the registry, the worst first, each with its reason, what to do next, and where to look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from console.backends.asking import Trouble, unreachable_troubles
from console.views.instances import LastOutput
from console.views.urls import url
from console.views.words import plural, relative, seconds, span
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

_ORDER: Final = {"bad": 0, "warn": 1, "note": 2}
_NAMED: Final = 5
_GUARD_LOOKS_S: Final = 60.0  # a younger hold requires no action


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `level`: bad (somebody must act), warn (somebody should look), note (known and planned).

    Attributes:
        bar: ready, wanted and floor, where it is about them.
        output: what one of the instances that fail printed last.
        group: of work that is decided as one; problems of the same group have one cause.
        place: nodes that fail together: the cause of problems that are `on` these nodes only.
        on: the nodes of everything that is wrong, if they are known.
        holds: the problems that it explains, which stand under it.
    """

    level: str
    title: str
    why: str
    next: str = ""
    href: str = ""
    since_s: float = 0.0
    bar: tuple[int, int, int] | None = None
    output: LastOutput | None = None
    group: str = ""
    place: frozenset[str] = frozenset()
    on: frozenset[str] = frozenset()
    holds: tuple[Problem, ...] = ()


def fold_causes(found: Iterable[Problem]) -> list[Problem]:
    """One problem for each cause, with those that it explains under it; a cause is as bad as the worst of these.

    The first of a group is its cause: so pass the problem of the one who plans work before that of the one asked.
    """
    causes: list[Problem] = []
    under: dict[int, list[Problem]] = {}
    listed = list(found)
    for one in sorted(listed, key=lambda each: not each.place):  # stable: places first, as they explain the others
        number = next((n for n, cause in enumerate(causes) if _explains(cause, one)), len(causes))
        if number == len(causes):
            causes.append(one)
        else:
            under.setdefault(number, []).append(one)
    return [_with_held(cause, under.get(number, [])) for number, cause in enumerate(causes)]


def _explains(cause: Problem, one: Problem) -> bool:
    return bool((cause.group and cause.group == one.group) or (cause.place and one.on and one.on <= cause.place))


def _with_held(cause: Problem, held: Sequence[Problem]) -> Problem:
    if not held:
        return cause
    level = min((cause.level, *(one.level for one in held)), key=_ORDER.__getitem__)
    return replace(cause, level=level, holds=(*cause.holds, *sorted_problems(held)))


def sorted_problems(found: Iterable[Problem]) -> list[Problem]:
    """The worst first, of one level the oldest; services below their floor after possible causes of the same age."""
    return sorted(
        found, key=lambda one: (_ORDER[one.level], one.since_s or float("inf"), one.bar is not None, one.title)
    )


def trouble_problems(found: Sequence[Trouble]) -> list[Problem]:
    """Servers that do not answer; and in one line for each, what it does not show to this person."""
    away = [Problem("bad", f"{one.server} does not answer", one.text, one.next) for one in unreachable_troubles(*found)]
    denied: dict[str, list[Trouble]] = {}
    for one in found:
        if one.kind == "denied":
            denied.setdefault(one.server, []).append(one)
    return away + [
        Problem(
            "note",
            f"{server}: not shown with your rights",
            f"{'; '.join(dict.fromkeys(one.text for one in those))}.",
            those[0].next,
        )
        for server, those in denied.items()
    ]


def join_names(names: Sequence[str]) -> str:
    """The first of them, and how many more."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def guard_problems(guards: Iterable[tuple[str, admin_pb2.GetGuardResponse | Trouble]], now_s: float) -> list[Problem]:
    """Guards that hold expiries back, or that somebody overrode."""
    found = []
    for cluster, answer in guards:
        if isinstance(answer, Trouble):
            continue
        guard = answer.guard
        if guard.override.kind:
            word = "released" if guard.override.kind == pb.GUARD_OVERRIDE_KIND_RELEASE else "forced to hold"
            ends = relative(seconds(guard.override.until), now_s)
            why = f"by {guard.override.by}: {guard.override.reason}. It ends {ends}."
            since_s = seconds(guard.override.since)
            found.append(Problem("warn", f"the guard of {cluster} was {word}", why, "", "/nodes#guard", since_s))
        elif guard.holding:
            found.append(_guard_problem(cluster, guard, now_s))
    return found


def _guard_problem(cluster: str, guard: pb.GuardState, now_s: float) -> Problem:
    """Return the problem of a guard that holds expiries back: at first information, after a minute a call to act."""
    since_s = seconds(guard.since)
    why, href = f"{guard.verdict.removeprefix('holding: ')}.", "/nodes#guard"
    if not guard.waiting:
        return Problem("note", f"the guard of {cluster} holds, and nothing waits to expire", why, "", href, since_s)
    many = f"{plural(guard.waiting, 'instance is', 'instances are')} silent in {cluster}"
    title = f"{many}; HQ still counts {'it' if guard.waiting == 1 else 'them'} ready (guard)"
    if now_s - since_s < _GUARD_LOOKS_S:
        return Problem(
            "warn", title, why, "Many agents at once: HQ waits to see whether they come back.", href, since_s
        )
    ways = "Many agents at once: check the network first. If they are really gone, release the guard."
    return Problem("bad", title, why, ways, href, since_s)


def planned_problems(
    planned: Iterable[tuple[str, admin_pb2.ListSuspensionsResponse | Trouble]], now_s: float
) -> list[Problem]:
    """Nodes under planned work: nothing is wrong, but they may explain other problems. One line per piece of work."""
    together: dict[tuple[str, str], list[admin_pb2.Suspension]] = {}
    for _, answer in planned:
        for one in () if isinstance(answer, Trouble) else answer.suspensions:
            together.setdefault((one.by, one.reason), []).append(one)
    return [_suspension_problem(those, now_s) for those in together.values()]


def _suspension_problem(those: Sequence[admin_pb2.Suspension], now_s: float) -> Problem:
    names = sorted(one.node_name for one in those)
    ends_s = min(seconds(one.until) for one in those)
    return Problem(
        "note",
        f"planned work on {join_names(names)}",
        f"by {those[0].by}: {those[0].reason}. Nothing there expires for another {span(ends_s - now_s)}.",
        "",
        url("nodes", names[0]) if len(names) == 1 else url("nodes"),
        min(seconds(one.since) for one in those),
    )


def expiry_problem(moves: Sequence[admin_pb2.Transition], now_s: float, *, is_cut: bool = False) -> list[Problem]:
    """Expiries of the last hour, in one line; `moves` come newest first; `is_cut`: there may be older ones."""
    lately = [one for one in moves if not one.ready and seconds(one.time) > now_s - 3_600]
    if not lately:
        return []
    last = {(one.node_name, one.instance_id): one for one in reversed(moves)}
    places = {(one.node_name, one.instance_id) for one in lately}
    nodes = sorted({node for node, _ in places})
    still = sorted({node for node, name in places if not last[node, name].ready})
    where = frozenset(still or nodes)
    least = "at least " if is_cut and seconds(moves[-1].time) > now_s - 3_600 else ""
    title = f"{least}{plural(len(lately), 'expiry')} in the last hour, on {plural(len(nodes), 'node')}"
    silent = (
        f"Agents on {join_names(still or nodes)} were silent for too long, and HQ marked their instances not ready."
    )
    if still:
        again = sum(last[place].ready for place in places)
        more = f" {plural(again, 'instance is', 'instances are')} ready again." if again else ""
        since_s = seconds(lately[0].time)
        return [Problem("warn", title, silent + more, "Is a node down, or its network?", "/events", since_s, on=where)]
    healed_s = max(seconds(last[place].time) for place in places)
    return [Problem("note", f"{title}: all are ready again", silent, "", "/events", healed_s, on=where)]
