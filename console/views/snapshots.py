"""A service's snapshots as its page lists them: HEAD first, then the active one, then the others."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Final

from console.views.listing import Column
from console.views.squares import MOST_SQUARES, Square, squares_of
from console.views.urls import url
from console.views.words import HASH_CHARS, Moment, seconds
from hqpb.v1 import service_pb2 as hpb
from nannypb.v1 import service_pb2 as pb

_LEVELS: Final = {
    "ACTIVE": "good",
    "ACTIVATING": "busy",
    "GENERATING": "busy",
    "PREPARING": "busy",
    "DEACTIVATING": "busy",
    "REMOVING": "busy",
    "DESTROYING": "busy",
    "BROKEN": "bad",
    "PARTIALLY_PREPARED": "warn",
    "PARTIALLY_CREATED": "warn",
    "DEACTIVATE_PENDING": "warn",
    "PREPARED": "note",
    "CREATED": "note",
}
_SERVICE: Final = {
    pb.SERVICE_STATE_OFFLINE: ("note", "Offline"),
    pb.SERVICE_STATE_ONLINE: ("good", "Online"),
    pb.SERVICE_STATE_PREPARING: ("busy", "Preparing"),
    pb.SERVICE_STATE_UPDATING: ("busy", "Updating"),
    pb.SERVICE_STATE_BROKEN: ("bad", "Broken"),
}
_MOST_LINES: Final = 2_000  # of a difference
TARGETS: Final = (
    ("CREATED", "Present in HQ only", "Described in HQ; nodes hold nothing of it."),
    ("PREPARED", "Prepared", "Files and disks are on the nodes; it does not run. Ready for a fast switch."),
    ("ACTIVE", "Active", "Rolled out batch by batch; the one that is active now becomes prepared."),
    ("DESTROYED", "Destroyed", "Removed from the nodes and from HQ, and then from this list."),
)
INSTANCE_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {
        "name": Column(lambda one: (one.id, one.location)),
        "current": Column(lambda one: one.state_name or one.state),
        "target": Column(lambda one: one.target),
        "node": Column(lambda one: one.node_name),
        "serves": Column(lambda one: one.serving),
    }
)
_MOST_OTHERS: Final = 30
_HALF_WAY: Final = (
    pb.CURRENT_STATE_PARTIALLY_CREATED,
    pb.CURRENT_STATE_PARTIALLY_PREPARED,
    pb.CURRENT_STATE_BROKEN,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """That a snapshot did not become ACTIVE: why, and when."""

    why: str
    at: Moment


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """One element of the list. What is not known is empty: old snapshots have no author, HEAD may have no states."""

    id: str
    made: pb.Snapshot | None
    state: pb.SnapshotState | None
    is_head: bool
    current: str
    level: str
    configuration: str  # what describes it in HQ: the id of its revision; empty: nothing does
    target: str
    may_change: bool
    retry: str  # its target, where the work towards it failed; empty: there is nothing to do again
    failed: Failure | None  # of its last roll-out, as long as none succeeded since
    way: str  # "back" or "on" for the previously active one: whether it is older or newer than the active one
    targets: str
    href: str


def short(snapshot: str) -> str:
    """Enough of a hash for people."""
    return snapshot[:HASH_CHARS]


def service_state(service: pb.Service) -> tuple[str, str]:
    """The level of a service's state, and the word for it."""
    return _SERVICE.get(service.state, ("unknown", "unknown"))


def way_back(service: pb.Service, history: Iterable[pb.HistoryEntry]) -> str:
    """The snapshot to roll back to: what was ACTIVE before the one that is now, or is ordered; empty: none."""
    held = {one.snapshot_id: one for one in service.snapshot}
    active = active_of(service)
    # Snapshots that were ordered but never active do not count: after a roll-back that would be the broken one.
    reached = (one.snapshot_id for one in history if "-> ACTIVE (" in one.what)
    return next((one for one in reached if active and one != active and one in held), "")


def failure_of(snapshot: str, state: pb.SnapshotState | None, history: Iterable[pb.HistoryEntry]) -> Failure | None:
    """How its last roll-out failed; None: it did not, or there was none. `history`: newest first."""
    order = state.order if state is not None else pb.Order()
    if order.target == pb.TARGET_ACTIVE and order.outcome:
        if order.outcome not in (pb.ORDER_OUTCOME_FAILED, pb.ORDER_OUTCOME_ROLLED_BACK):
            return None
        return Failure(order.message or _FAILED, order.end_time if order.HasField("end_time") else None)
    for one in history:  # another target was ordered since
        if one.snapshot_id == snapshot and "-> ACTIVE (" in one.what:
            return None
        if one.snapshot_id == snapshot and one.what.startswith("ACTIVATING ->") and one.what.endswith(_ENDED_BADLY):
            return Failure(_FAILED, one.time)
    return None


_FAILED: Final = "it did not become ACTIVE"
_ENDED_BADLY: Final = ("(failed)", "(aborted by people)")


def snapshot_rows(
    service: pb.Service, known: Sequence[pb.Snapshot], back: str = "", history: Sequence[pb.HistoryEntry] = ()
) -> tuple[list[SnapshotRow], list[SnapshotRow]]:
    """Two lists of rows: HEAD, then snapshots with a state (the active one first); and older ones without a state."""
    made = {one.id: one for one in known}
    states = {one.snapshot_id: one for one in service.snapshot}
    head = service.head or next((one.id for one in known if one.head), "")
    live = sorted(states, key=lambda one: (_rank(states[one]), _age(made.get(one))))
    listed = [head, *(one for one in live if one != head)] if head else live
    others = [one.id for one in known if one.id not in listed][:_MOST_OTHERS]
    failed = {one: failure_of(one, states.get(one), history) for one in (*listed, *others)}
    return [_row(service, one, made, states, head, back, failed[one]) for one in listed], [
        _row(service, one, made, states, head, back, failed[one]) for one in others
    ]


def _row(
    service: pb.Service,
    snapshot: str,
    made: dict[str, pb.Snapshot],
    states: dict[str, pb.SnapshotState],
    head: str,
    back: str,
    failed: Failure | None,
) -> SnapshotRow:
    state = states.get(snapshot)
    current = current_of(state)
    target = target_of(state.target) if state is not None else ""
    # The active one is switched off by Stop service, or by activating another one: this prevents operators' mistakes.
    may_change = state is None or not _is_active(state)
    return SnapshotRow(
        id=snapshot,
        made=made.get(snapshot),
        state=state,
        is_head=snapshot == head,
        current=current,
        level=_LEVELS.get(current, "unknown"),
        configuration=_configuration(snapshot, made.get(snapshot)) if current else "",
        target=target,
        may_change=may_change,
        retry=target if state is not None and has_failed(state) else "",
        failed=failed,
        way=_way(service, snapshot, made) if may_change and snapshot == back else "",
        targets=" ".join(
            name for name, _, _ in TARGETS if name != target and (state is not None or name != "DESTROYED")
        ),
        href=url("services", service.id, "snapshots", snapshot),
    )


def _way(service: pb.Service, snapshot: str, made: dict[str, pb.Snapshot]) -> str:
    active = made.get(active_of(service))
    return "on" if active is not None and _age(made.get(snapshot)) < _age(active) else "back"


def _configuration(snapshot: str, made: pb.Snapshot | None) -> str:
    return (made.revision_id if made is not None else "") or snapshot


def has_failed(state: pb.SnapshotState) -> bool:
    """Whether it rests half way: an action towards its target failed, or was interrupted."""
    return state.current in _HALF_WAY and bool(state.target) and not state.HasField("action")


def active_of(service: pb.Service) -> str:
    """The snapshot that is ACTIVE, or is ordered to be; empty: none."""
    return next((one.snapshot_id for one in service.snapshot if _is_active(one)), "")


def step_text(what: str) -> str:
    """A step of the history for people. A snapshot that is switched off next is BROKEN, too, though nothing failed."""
    before, _, after = what.partition(" -> BROKEN (")
    if after and not after.startswith("failed"):
        return f"{before} \N{RIGHTWARDS ARROW} to be switched off ({after}"
    arrow = "\N{RIGHTWARDS ARROW}"
    return what.replace("BROKEN -> DEACTIVATING", f"{arrow} DEACTIVATING").replace("->", arrow)


def snapshot_label(snapshot: str, made: Iterable[pb.Snapshot]) -> str:
    """Its short id, with its comment."""
    comment = next((one.created.comment for one in made if one.id == snapshot), "")
    return f"{short(snapshot)} ({comment})" if comment else short(snapshot)


def what_runs(counts: Mapping[str, Sequence[hpb.InstanceCount]], made: Iterable[pb.Snapshot]) -> str:
    """Which snapshots are ready where now, whatever was ordered; empty: none, or it is not known.

    `counts`: by location.
    """
    names = {one.revision_id or one.id: one.id for one in made}
    said = {}
    for location, groups in counts.items():
        running = sorted((-one.ready, short(names.get(one.key, one.key))) for one in groups if one.ready)
        if running:
            said[location] = ", ".join(f"{-ready} of {name}" for ready, name in running)
    return "; ".join(f"{location}: {what}" for location, what in said.items())


def _is_active(state: pb.SnapshotState) -> bool:
    return state.target == pb.TARGET_ACTIVE or (
        state.current == pb.CURRENT_STATE_ACTIVE and state.target == pb.TARGET_UNSPECIFIED
    )


def _rank(state: pb.SnapshotState) -> int:
    """The active one first, then those that may still serve."""
    serving = (pb.CURRENT_STATE_ACTIVE, pb.CURRENT_STATE_DEACTIVATE_PENDING, pb.CURRENT_STATE_BROKEN)
    return 0 if _is_active(state) else 1 if state.current in serving else 2


def _age(made: pb.Snapshot | None) -> float:
    return -seconds(made.created.time) if made is not None else 0.0


def current_of(state: pb.SnapshotState | None) -> str:
    """The name of the current state, as in the API; empty: there is none."""
    if state is None or not state.current:
        return ""
    return pb.CurrentState.Name(state.current).removeprefix("CURRENT_STATE_")


def target_of(target: pb.Target) -> str:
    """The name of a target, as in the API; empty: there is none."""
    return pb.Target.Name(target).removeprefix("TARGET_") if target else ""


def squares(one: pb.LocationProgress) -> tuple[list[Square], int]:
    """A square for each instance (done, under way, failed, left, waiting), and the height; no squares if too many."""
    waiting = max(0, one.total - one.done - one.under_way - one.failed - one.left)
    parts = (("done", one.done), ("way", one.under_way), ("failed", one.failed), ("left", one.left), ("wait", waiting))
    return squares_of(kind for kind, count in parts for _ in range(min(count, MOST_SQUARES + 1)))


def difference(old: pb.Snapshot, new: pb.Snapshot) -> list[tuple[str, str]]:
    """Return what activating `new` would change."""
    before, after = (one.content.decode("utf-8", "replace") for one in (old, new))
    return text_difference(before, after, short(old.id), short(new.id))


def text_difference(old: str, new: str, old_name: str = "now", new_name: str = "then") -> list[tuple[str, str]]:
    """Lines of a unified diff, each with its kind; at most 2,000."""
    return list(islice(_unified(old.splitlines(), new.splitlines(), old_name, new_name), _MOST_LINES))


def _unified(old: Sequence[str], new: Sequence[str], old_name: str, new_name: str) -> Iterator[tuple[str, str]]:
    """As difflib.unified_diff, in bounded time."""
    groups = list(_BoundedMatcher(None, old, new).get_grouped_opcodes(3))
    if groups:
        yield "removed", f"--- {old_name}"
        yield "added", f"+++ {new_name}"
    for group in groups:
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        yield "place", f"@@ -{_range(old_from, old_to)} +{_range(new_from, new_to)} @@"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (("same", f" {line}") for line in old[i:j])
                continue
            yield from (("removed", f"-{line}") for line in old[i:j])
            yield from (("added", f"+{line}") for line in new[k:m])


def _range(begin: int, end: int) -> str:
    """Lines as a unified diff counts them."""
    length = end - begin
    return f"{begin + 1}" if length == 1 else f"{begin + (length > 0)},{length}"


class _BoundedMatcher(difflib.SequenceMatcher[str]):
    """Where repeated lines would take minutes to compare, it stops: the rest counts as changed."""

    left = 2_000_000  # pairs of equal lines to be looked at, about a second

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        places: Mapping[str, Sequence[int]] = self.b2j  # type: ignore[attr-defined]  # a public attribute
        lines: Sequence[str] = self.a[alo:ahi]  # type: ignore[attr-defined]
        self.left -= sum(1 + len(places.get(line, ())) for line in lines)
        if self.left < 0:
            return difflib.Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)
