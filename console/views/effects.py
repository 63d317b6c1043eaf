"""What an order for many rows of a list would do to each of them, before it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from console.views.readiness import wanted_of
from console.views.snapshots import current_of, service_state, target_of
from console.views.urls import url
from console.views.words import Moment, plural
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb
from nannypb.v1 import service_pb2 as npb


@dataclass(frozen=True, slots=True)
class Effect:
    """What one row is, and would be.

    Attributes:
        key: as the row's box sends it. `place`: its location; empty: it has none.
        ends: when the planned work on it ends.
        otherwise: why nothing would be done to it; empty: the order is for it.
    """

    key: str
    name: str
    href: str
    now: str
    then: str
    place: str = ""
    ends: Moment = None
    otherwise: str = ""


def node_effects(
    chosen: Iterable[str],
    counts: Mapping[str, Sequence[pb.InstanceCount]],
    planned: Mapping[tuple[str, str], admin_pb2.Suspension],
    *,
    is_begun: bool,
    is_known: bool,
) -> list[Effect]:
    """Effects of planned work on nodes. `counts`: of nodes, by location; `planned`: by location and node.

    `is_known`: every location answered.
    """
    found = []
    for node in chosen:
        places = [(where, one) for where, groups in counts.items() for one in groups if one.key == node]
        for where, count in places:
            work = planned.get((where, node))
            now = f"{count.ready} of {plural(wanted_of(count), 'instance')} ready"
            otherwise = _NO_WORK if work is None and not is_begun else ""
            then = "nothing expires" if is_begun else "what is silent expires after the usual time"
            if work is not None and is_begun:
                then += ", in place of the work that there is"
            ends = work.until if work is not None else None
            if work is not None:
                now += f"; planned work by {work.by}: {work.reason}"
            found.append(Effect(node, node, url("nodes", node), now, then, where, ends, otherwise))
        if not places:
            found.append(
                Effect(node, node, url("nodes", node), "", "", otherwise="has no instance" if is_known else _UNKNOWN)
            )
    return found


_NO_WORK: Final = "is not under planned work"
_UNKNOWN: Final = "is not known now"


def service_effects(chosen: Iterable[str], services: Iterable[npb.Service] | None, *, is_paused: bool) -> list[Effect]:
    """Effects of pausing or resuming the actions of services. `services` None: Nanny did not answer."""
    known, missing = {one.id: one for one in services or ()}, _UNKNOWN if services is None else "is not Nanny's"
    return [
        _service_effect(known[name], is_paused=is_paused)
        if name in known
        else Effect(name, name, url("services", name), "", "", otherwise=missing)
        for name in chosen
    ]


def _service_effect(one: npb.Service, *, is_paused: bool) -> Effect:
    now = service_state(one)[1]
    if one.HasField("paused"):
        now += f"; paused by {one.paused.author}" + (f": {one.paused.comment}" if one.paused.comment else "")
    then = "no action begins" if is_paused else "its actions go on"
    is_so = one.HasField("paused") == is_paused
    otherwise = ("is paused already" if is_paused else "is not paused") if is_so else ""
    return Effect(one.id, one.id, url("services", one.id, "snapshots"), now, then, otherwise=otherwise)


def instance_effects(
    chosen: Iterable[str],
    rows: Iterable[npb.InstanceRow] | None,
    target: npb.Target,
    snapshot: npb.SnapshotState | None,
) -> list[Effect]:
    """Effects of a target for instances of a snapshot, each alone; keys are `LOCATION/INSTANCE`.

    `rows` None: Nanny did not answer.
    """
    known = {f"{one.location}/{one.id}": one for one in rows or ()}
    missing = _UNKNOWN if rows is None else "is not in this snapshot"
    return [_instance_effect(key, known.get(key), target, snapshot, missing) for key in chosen]


def _instance_effect(
    key: str, one: npb.InstanceRow | None, target: npb.Target, snapshot: npb.SnapshotState | None, missing: str
) -> Effect:
    place, _, name = key.partition("/")
    href = url("instances", place, name)
    if one is None:
        return Effect(key, name, href, "", "", place, otherwise=missing)
    serves = ", its instance serves" if one.serving else ""
    now = f"{one.state_name or one.state}, wanted {target_of(one.target) or 'UNKNOWN'}{serves}"
    otherwise = ""
    if one.state == "UNKNOWN" and not one.target:
        otherwise = f"has no configuration yet, as the snapshot is {current_of(snapshot) or 'not in HQ'}"
    elif one.target == target:
        otherwise = f"is wanted {target_of(target)} already"
    return Effect(key, name, href, now, f"wanted {target_of(target)}, alone", place, otherwise=otherwise)
