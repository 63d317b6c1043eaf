"""The checker over histories made by hand: what each promise means, in a few lines of history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checker.check import violations
from tests.checker.history import (
    FAILED,
    OK,
    STRONG,
    UNKNOWN,
    Cut,
    Event,
    Fault,
    Final,
    Item,
    Op,
    Range,
    Raw,
    Read,
    Seen,
    Stored,
    Watched,
    Write,
)
from tests.checker.history_file import decoded, encoded, read_history, write_history
from tests.checker.story import Limits
from tests.support.generated_history import generated

A_AT_2, A_AT_3 = Item(2, 2, "one;r1=", ""), Item(3, 2, "two;r1=", "")


def spec(revision: int, mark: str, created: int = 2, key: str = "a") -> Stored:
    return Stored("put", f"spec/{key}", revision, created, ("7", f"{mark};r1=", "web", "node-1"))


def status(revision: int, created: int = 2, mark: str = "", key: str = "a") -> Stored:
    return Stored("put", f"status/{key}", revision, created, ("7", mark, "F", ""))


def write(op: str, marker: str, version: int, at: int = 10, demanded: int = 0, outcome: str = OK) -> Op:
    return Op(at, "writer", op, at, at + 1, outcome, "a", write=Write(marker, demanded, version))


def find(version: int, item: Item, at: int, consistency: str = "CACHED", **more: int) -> Op:
    read = Read(version=version, items={"a": item}, consistency=consistency, **more)  # type: ignore[arg-type]
    return Op(at, "reader", "find", at, at + 1, OK, read=read)


CREATED: list[Event] = [Raw(2, (spec(2, "one"), status(2))), write("create", "one", 2, at=10)]
UPDATED: list[Event] = [*CREATED, Raw(3, (spec(3, "two"),)), write("update", "two", 3, at=20, demanded=2)]


def broken(events: Iterable[Event]) -> set[str]:
    return {violation.word for violation in violations(events)}


def test_a_history_that_keeps_every_promise_breaks_none() -> None:
    final = Final("replica-1", 3, "", {"a": A_AT_3})
    everything = Range(3, (spec(3, "two"), status(2)), gapless=True)
    assert broken([*UPDATED, find(3, A_AT_3, 30, STRONG), find(2, A_AT_2, 30), final, everything]) == set()
    assert broken(generated(2_000)) == set()


@pytest.mark.parametrize(
    ("word", "more"),
    [
        ("DURABLE", [write("update", "lost", 4, at=30)]),
        ("DURABLE", [write("update", "lost", 3, at=30)]),
        ("SETTLED", [Raw(4, (spec(4, "no"),)), write("update", "no", 0, at=30, outcome=FAILED)]),
        ("SETTLED", [Raw(4, (spec(4, "two"),))]),
        ("EXACT", [Raw(4, (spec(4, "three"),)), write("update", "three", 4, at=30, demanded=2)]),
        ("EXACT", [Raw(4, (spec(4, "three"),)), write("create", "three", 4, at=30)]),
        ("FRESH", [find(2, A_AT_2, 30, STRONG)]),
        ("FRESH", [find(2, A_AT_2, 30, min_version=3)]),
        ("FRESH", [find(2, A_AT_2, 20_000_000_000)]),
        ("FRESH", [find(2, A_AT_2, 5_000_000_000, staleness_s=4)]),
        ("GENUINE", [find(3, A_AT_2, 30)]),
        ("GENUINE", [find(3, A_AT_3._replace(spec_mark="never"), 30)]),
        ("GENUINE", [Op(9, "reader", "find", 30, 31, OK, read=Read(version=3))]),
        ("KEPT", [Raw(4, (Stored("delete", "spec/a", 4, 0),)), write("delete", "", 4, at=30)]),
        ("CONVERGED", [Final("replica-1", 3, "", {"a": A_AT_2})]),
        ("CONVERGED", [Final("replica-1", 2, "", {"a": A_AT_3})]),
        ("ETCD", [Raw(4, (spec(4, "three", created=3),))]),
        ("ETCD", [Raw(3, (spec(3, "three"),))]),
        ("ETCD", [Range(3, (spec(3, "two"),))]),
        ("ETCD", [Raw(5, (spec(5, "three"),)), Range(5, (spec(5, "three"), status(2)), gapless=True)]),
    ],
)
def test_each_break_is_found(word: str, more: list[Event]) -> None:
    assert word in broken([*UPDATED, *more])


def test_a_source_may_be_as_old_as_it_says_plus_the_transit_to_a_gateway() -> None:
    old = find(2, A_AT_2, 5_000_000_000, staleness_s=4)
    assert broken([*UPDATED, replace(old, call_ns=4_000_000_000)]) == set()
    assert [str(one) for one in violations([*UPDATED, old], Limits(transit_s=1.0))] == []
    almost = find(2, A_AT_2, 13 * S, staleness_s=8)
    assert words([*UPDATED, almost], Limits(transit_s=6.0)) == set()
    assert words([*UPDATED, replace(almost, call_ns=15 * S)], Limits(transit_s=6.0)) == {"FRESH"}
    assert words([*UPDATED, find(2, A_AT_2, 17 * S, staleness_s=12)], Limits(transit_s=6.0)) == {"FRESH"}


def test_a_write_of_unknown_outcome_may_have_taken_place_or_not() -> None:
    unknown = Op(9, "writer", "update", 30, None, UNKNOWN, "a", write=Write("three"))
    assert broken([*UPDATED, unknown]) == set()
    assert broken([*UPDATED, unknown, Raw(4, (spec(4, "three"),))]) == set()


def test_a_repeated_creation_is_answered_with_the_instance_as_it_is_by_then() -> None:
    answered_late = replace(write("create", "one", 3, at=10), return_ns=40)
    own, other = CREATED[0], write("update", "two", 3, at=20, demanded=2)
    assert broken([own, Raw(3, (spec(3, "two"),)), other, answered_late]) == set()
    stranger = [Raw(2, (spec(2, "else"), status(2))), Raw(3, (spec(3, "one"),))]
    assert "EXACT" in broken([*stranger, answered_late])


def test_a_restore_loses_only_writes_after_its_snapshot_that_were_acknowledged_before_it() -> None:
    assert broken([*UPDATED, Cut(2, at_ns=100), find(2, A_AT_2, 200, STRONG)]) == set()
    assert broken([*UPDATED, Cut(2, at_ns=15)]) == {"DURABLE"}  # acknowledged after the restore


def test_a_write_is_not_acknowledged_before_it_is_stored() -> None:
    """Write two is acknowledged before write three begins, yet stored after it: a violation."""
    events = [*CREATED, Raw(3, (spec(3, "three"),)), Raw(4, (spec(4, "two"),))]
    calls = [write("update", "two", 4, at=20), write("update", "three", 3, at=30)]
    assert broken([*events, *calls]) == {"DURABLE"}


S = 1_000_000_000
DELETED: list[Event] = [
    *UPDATED,
    Raw(4, (Stored("delete", "spec/a", 4, 0), Stored("delete", "status/a", 4, 0)), seen_ns=100 * S),
    write("delete", "", 4, at=100 * S),
]
GHOSTS = Limits(stale_after_s=1_000, ghost_s=60)


def words(events: Iterable[Event], limits: Limits) -> set[str]:
    return {violation.word for violation in violations(events, limits)}


def test_a_deleted_instance_is_not_shown_after_memory_was_compared() -> None:
    assert "GHOST" not in words([*DELETED, find(3, A_AT_3, 159 * S)], GHOSTS)
    late = find(3, A_AT_3, 161 * S)
    assert words([*DELETED, late], GHOSTS) == {"GHOST"}
    assert words([*DELETED, late], replace(GHOSTS, ghost_s=None)) == set()
    assert late.read is not None
    told_so = replace(late, read=replace(late.read, stale=True))
    assert words([*DELETED, told_so], GHOSTS) == set()
    again: list[Event] = [
        Raw(5, (spec(5, "new", created=5), status(5, created=5))),
        write("create", "new", 5, at=101 * S),
    ]
    assert words([*DELETED, *again, find(5, Item(5, 5, "new;r1=", ""), 161 * S)], GHOSTS) == set()


def ready(revision: int, mark: str = "r1=up", at_s: int = 1, word: str = "T", expired: str = "") -> Raw:
    stored = Stored("put", "status/a", revision, 2, ("7", mark, word, expired))
    return Raw(revision, (stored,), seen_ns=at_s * S)


def report(at_s: int, marker: str = "up") -> Op:
    return Op(at_s, "agent", "report", at_s * S, at_s * S + 1, OK, "a", write=Write(marker, revision_id="r1"))


def test_a_dead_instance_is_ready_no_longer_than_timeout_plus_allowed_fault_time() -> None:
    """Its agent reports once, at second 1; it expires at second 40, or never; the history ends at second 60."""
    limits = Limits(gone_s=45, forgiven_s=10)
    living = [*CREATED, replace(ready(3), seen_ns=S), replace(report(0), return_ns=S + 1)]
    until_60 = Raw(9, (Stored("put", "fence/r", 9, 9),), seen_ns=60 * S)
    expiry = ready(4, at_s=40, word="F", expired="r1")
    assert words([*living, expiry, until_60], limits) == set()
    assert words([*living, until_60], limits) == {"GONE"}
    assert words([*living, replace(expiry, seen_ns=50 * S), until_60], limits) == {"GONE"}
    assert words([*living, replace(report(30), outcome=FAILED), until_60], limits) == set(), "it goes on trying"
    assert words([*living, Fault("replica killed", 10 * S, 15 * S), until_60], limits) == set()
    assert words([*living, Fault("replica killed", 10 * S, 13 * S), until_60], limits) == {"GONE"}
    assert words([*living, Fault("replica killed", 70 * S, 90 * S), until_60], limits) == {"GONE"}
    gone = Raw(4, (Stored("delete", "spec/a", 4, 0), Stored("delete", "status/a", 4, 0)), seen_ns=40 * S)
    assert "GONE" not in words([*living, gone, until_60], limits)
    assert words([*living, until_60], replace(limits, gone_s=None)) == set()


def told(kind: str, version: int, *events: Seen, token: bool = True, **more: object) -> Op:
    watched = Watched("w", kind, version, token=token, events=events, **more)  # type: ignore[arg-type]
    return Op(version, "watcher", "watch", 50, 50, OK, watch=watched)


OPENED = told("OPENED", 0, token=False)
SNAPSHOT = told("SNAPSHOT", 2, Seen("put", "a", 2, 2, "one;r1=", "", 2), token=False)
CHANGE = Seen("put", "a", 3, 2, "two;r1=", "", 3)
SYNCED, NEWS = told("SYNCED", 2), told("EVENTS", 3, CHANGE)


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (set(), [OPENED, SNAPSHOT, SYNCED, NEWS, told("BOOKMARK", 3)]),
        ({"COMPLETE"}, [OPENED, SNAPSHOT, SYNCED, told("BOOKMARK", 3)]),
        ({"COMPLETE"}, [OPENED, SYNCED]),
        ({"UNIQUE", "WHOLE", "COMPLETE"}, [OPENED, SNAPSHOT, SYNCED, NEWS, NEWS]),
        ({"EXPLICIT"}, [OPENED, SNAPSHOT, SYNCED, SYNCED]),
        ({"EXPLICIT", "RESUMABLE"}, [OPENED, SNAPSHOT, SYNCED, told("RESYNC", 2, token=False)]),
        ({"ORDERED"}, [OPENED, SNAPSHOT, SYNCED, NEWS, told("BOOKMARK", 2)]),
        ({"BOOKMARKABLE"}, [OPENED, SNAPSHOT, SYNCED, told("BOOKMARK", 2, token=False)]),
        (
            {"WHOLE"},
            [OPENED, SNAPSHOT, SYNCED, told("EVENTS", 3, CHANGE, token=False), told("BOOKMARK", 3)],
        ),
        (set(), [told("OPENED", 0, token=False, resumed_from=2), told("SYNCED", 2), NEWS]),
        ({"RESUMABLE", "ORDERED"}, [told("OPENED", 0, token=False, resumed_from=3), SNAPSHOT, SYNCED]),
    ],
)
def test_each_broken_promise_of_a_watch_is_found(words: set[str], messages: list[Op]) -> None:
    assert broken([*UPDATED, *messages]) >= words
    assert bool(words) == bool(broken([*UPDATED, *messages]))


def test_a_violation_says_what_was_promised_what_happened_and_where_to_look() -> None:
    [violation] = violations([*UPDATED, find(2, A_AT_2, 30, STRONG)])
    assert "STRONG read shows version 2, and 3 was known" in str(violation)
    for part in ("promised:", "look at: hq/registry/source.py", "'process': 'reader'"):
        assert part in str(violation)


@pytest.mark.parametrize("name", ["history.jsonl", "history.jsonl.gz"])
def test_a_history_is_the_same_when_it_comes_back_from_a_file(tmp_path: Path, name: str) -> None:
    totals = Op(1, "reader", "count", 1, None, OK, read=Read(totals=(2, 1)))
    events = [
        *UPDATED,
        SNAPSHOT,
        NEWS,
        totals,
        Cut(2, 3),
        Fault("f", 1, 2),
        Final("r", 3, "e", {"a": A_AT_2}),
        Range(3, (status(2),)),
    ]
    write_history(tmp_path / name, events)
    assert list(read_history(tmp_path / name)) == events
    assert decoded(encoded(replace(totals, key="a"))) == replace(totals, key="a")
