"""How many instances of services are ready of those that shall be, which services lack some, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from console.views.instances import InstanceRow, LastOutput
from console.views.listing import Column
from console.views.problems import Problem, join_names
from console.views.urls import url
from console.views.words import number, plural, split_camel_case
from hqpb.v1 import service_pb2 as pb

_REASONS: Final = 3
_REASON_WORDS: Final = {"NothingReported": "never reported"}
_DEFAULT_SHARE: Final = 10  # without a budget, one in ten may be away


def totals(counts: Sequence[pb.InstanceCount]) -> dict[str, int]:
    """Totals over all services; `off`: instances that need not be ready."""
    run = [one for one in counts if wanted_of(one)]
    return {
        "wanted": sum(map(wanted_of, run)),
        "off": sum(one.not_wanted for one in counts),
        "ready": sum(one.ready for one in counts),
        "unknown": sum(one.unknown for one in counts),
        "services": len(run),
        "full": sum(one.ready >= wanted_of(one) for one in run),
    }


def wanted_of(one: pb.InstanceCount) -> int:
    """How many shall be ready: all but those that were stopped, or are prepared only."""
    return one.total - one.not_wanted


COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {  # of services and nodes, by the word of the query
        "name": Column(lambda one: one.key),
        "ready": Column(lambda one: one.ready, most_first=True),
        "lacking": Column(lambda one: wanted_of(one) - one.ready, most_first=True),
        "unreported": Column(lambda one: one.unknown, most_first=True),
    }
)


def worst_first(one: pb.InstanceCount) -> tuple[int, str]:
    """The key by which those that lack most stand first."""
    return one.ready - wanted_of(one), one.key


def floor_of(one: pb.InstanceCount, budgeted: int | None) -> int:
    """How many must be ready: as the budget says, else all but a tenth (at least one may be away)."""
    if budgeted is not None:
        return max(0, budgeted - one.not_wanted)
    return max(0, wanted_of(one) - max(1, wanted_of(one) // _DEFAULT_SHARE))


def is_lacking(one: pb.InstanceCount, budgeted: int | None = None, held: int = 0) -> bool:
    """Whether it is below its floor, has nothing ready, or lacks more than a tenth beyond what tasks hold."""
    wanted = wanted_of(one)
    is_below = one.ready < floor_of(one, budgeted) or not one.ready
    return wanted > 0 and (is_below or wanted - one.ready - held > max(1, wanted // _DEFAULT_SHARE))


def lacking(
    counts: Iterable[pb.InstanceCount], floors: Mapping[str, int], held: Mapping[str, int]
) -> list[pb.InstanceCount]:
    """Services that lack instances, those that lack the most first. `held`: instances that tasks of the CMS hold."""
    found = [one for one in counts if is_lacking(one, floors.get(one.key), held.get(one.key, 0))]
    return sorted(found, key=worst_first)


def common_reasons(rows: Sequence[InstanceRow], counts: Iterable[pb.InstanceCount], missing: int) -> str:
    """Why instances are not ready: the most common reasons first, each with what one of them says.

    `counts`: all of them by reason; none: only `rows` are known, a sample of the `missing`.
    """
    groups: dict[str, list[InstanceRow]] = {}
    for one in rows:
        if one.wanted:
            groups.setdefault(one.reason, []).append(one)
    sizes = {_REASON_WORDS.get(one.key) or split_camel_case(one.key): one.total for one in counts if not one.not_wanted}
    is_sample = not sizes and missing > len(rows)
    sizes = sizes or {reason: len(those) for reason, those in groups.items()}
    listed = sorted(sizes.items(), key=lambda pair: -pair[1])
    said = [_reason(reason, size, groups.get(reason, ())) for reason, size in listed[:_REASONS]]
    if rest := sum(size for _, size in listed[_REASONS:]):
        said.append(f"{plural(rest, 'instance')}: other reasons")
    nodes = sorted({one.node for those in groups.values() for one in those if one.node})
    where = "For example on" if missing > len(rows) else "All on" if len(nodes) == 1 else "On"
    place = f" {where} {join_names(nodes)}." if nodes else ""
    looked = f"of {plural(len(rows), 'instance')} that were looked at, " if is_sample else ""
    return f"{looked}{'; '.join(said)}.{place}" if said else ""


def _reason(reason: str, size: int, those: Sequence[InstanceRow]) -> str:
    message = next((one.message for one in those if one.message), "")
    return f"{plural(size, 'instance')}: {reason}" + (f": {message}" if message else "")


def unseen(one: pb.InstanceCount, totals: Mapping[str, int], silent: Sequence[str]) -> int:
    """Instances of a service that stand in silent locations, as far as budgets know them."""
    return max(0, totals.get(one.key, 0) - one.total) if silent else 0


def service_problems(
    below: Iterable[pb.InstanceCount],
    floors: Mapping[str, int],
    reasons: Mapping[str, str],
    totals: Mapping[str, int],
    silent: Sequence[str],
    outputs: Mapping[str, LastOutput | None] = MappingProxyType({}),
    places: Mapping[str, frozenset[str]] = MappingProxyType({}),
) -> list[Problem]:
    """Services in `lacking`, each with the reasons of its instances where they were looked up.

    `totals`: of instances, as budgets count them; `silent`: locations whose instances are not counted;
    `outputs`: what an instance printed last; `places`: the nodes of all that are not ready, where they are known.
    """
    found = []
    for one in below:
        if hidden := unseen(one, totals, silent):
            found.append(_partial_problem(one, hidden, floors[one.key], reasons.get(one.key, ""), silent))
            continue
        wanted = wanted_of(one)
        floor = floor_of(one, floors.get(one.key))
        default = "" if one.key in floors else " (the default: a tenth may be away)"
        told = f"Its floor is {number(floor)}{default}." if floor else "None is ready."
        if floor <= one.ready:
            away = plural(wanted - one.ready, "instance is", "instances are")
            told = f"{away} away, though its floor of {number(floor)} holds."
        found.append(
            Problem(
                "bad",
                f"{one.key or 'without a service'}: {number(one.ready)} of {plural(wanted, 'instance')} ready",
                f"{told} {reasons.get(one.key, '')}".strip(),
                "",
                url("services", one.key) if one.key else url("instances"),
                bar=(one.ready, wanted, floor),
                output=outputs.get(one.key),
                on=places.get(one.key, frozenset()),
            )
        )
    return found


def scattered_problem(
    few: Sequence[pb.InstanceCount], reasons: str, output: LastOutput | None = None, *, is_crashing: bool
) -> list[Problem]:
    """Instances that are not ready in services that stand well otherwise, in one line."""
    away = sum(wanted_of(one) - one.ready for one in few)
    if not away:
        return []
    title = f"{plural(away, 'instance is', 'instances are')} not ready in {plural(len(few), 'service')} above the floor"
    why = reasons or f"{join_names([one.key for one in few])}."
    href = url("instances", readiness="not-ready")
    return [Problem("warn" if is_crashing else "note", title, why, "", href, output=output)]


def _partial_problem(one: pb.InstanceCount, hidden: int, floor: int, reasons: str, silent: Sequence[str]) -> Problem:
    """The problem of a service that has instances in a silent location."""
    where = f"{', '.join(silent)} ({hidden}) {'does' if len(silent) == 1 else 'do'} not answer"
    wanted = wanted_of(one)
    return Problem(
        "bad" if one.ready < wanted else "warn",
        f"{one.key}: {number(one.ready)} of {plural(wanted + hidden, 'instance')} known to be ready; {where}",
        f"Whether it stands above its floor of {floor} is not known. {reasons}".strip(),
        "",
        url("services", one.key),
        bar=(one.ready, wanted + hidden, floor),
    )
