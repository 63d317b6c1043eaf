"""What discovery believes after a store was replaced by one with far fewer instances."""

from __future__ import annotations

import pytest

from hqclient.discovery.roster import Origin, Roster
from hqclient.watch_items import Bookmark, Resync, WatchItem
from hqpb.v1 import service_pb2 as pb
from tests.support.watch_items import changes, fed, ids, kept, part, put, shown, synced

UNSPECIFIED, DOUBTED, CONFIRMED = pb.EPOCH_TRUST_UNSPECIFIED, pb.EPOCH_TRUST_DOUBTED, pb.EPOCH_TRUST_CONFIRMED
LOST = Resync("the store has a new history")
HOUR_S = 3600.0


def source(epoch: str, trust: pb.EpochTrust = UNSPECIFIED, *, cluster: str = "c") -> pb.Source:
    error = "it holds 0 where there were 3" if trust == DOUBTED else ""
    return pb.Source(cluster=cluster, replica="r", epoch=epoch, trust=trust, error=error)


def bookmark(epoch: str, trust: pb.EpochTrust = UNSPECIFIED) -> Bookmark:
    return Bookmark("t", (source(epoch, trust),))


def known() -> Roster:
    return fed(part("a", "b", "c"), synced(source("e1")))[0]


@pytest.mark.parametrize("trust", [UNSPECIFIED, DOUBTED])
def test_an_empty_snapshot_of_another_epoch_is_doubted_whether_hq_doubts_it_or_not(trust: pb.EpochTrust) -> None:
    roster, deltas = fed(LOST, synced(source("e2", trust)), bookmark("e2", trust), roster=known())
    assert ids(roster) == ["a", "b", "c"]
    assert [delta.changes for delta in deltas] == [{}]  # that continuity was lost is said
    assert "c: it" in roster.doubt()
    assert roster.origin is Origin.LIVE
    assert not roster.is_resumable


@pytest.mark.parametrize("told", [bookmark("e2", CONFIRMED), changes(put("n", 9))])
def test_a_doubted_epoch_is_believed_once_hq_confirms_it(told: WatchItem) -> None:
    roster, _ = fed(LOST, synced(source("e2", DOUBTED)), roster=known())
    if not isinstance(told, Bookmark):
        told = changes(put("n", 9))
        told = type(told)(told.events, told.resume_token, (source("e2", CONFIRMED),), told.collapsed)
    fed(told, roster=roster)
    assert set(ids(roster)) <= {"n"}
    assert (roster.doubt(), roster.is_resumable, roster.epochs) == ("", True, {"c": "e2"})


def test_instances_that_return_during_a_doubt_are_followed() -> None:
    roster, _ = fed(LOST, part("b"), synced(source("e2", DOUBTED)), changes(put("a", 5, tag="new")), roster=known())
    assert ids(roster) == ["a", "b", "c"]
    fed(bookmark("e2", CONFIRMED), roster=roster)
    assert ids(roster) == ["a", "b"]


def test_a_doubt_ends_by_itself_after_an_hour() -> None:
    roster, _ = fed(LOST, synced(source("e2", DOUBTED)), roster=known(), now=100)
    fed(bookmark("e2", DOUBTED), roster=roster, now=99 + HOUR_S)
    assert ids(roster) == ["a", "b", "c"]
    # A new snapshot is not a new hour.
    fed(LOST, synced(source("e2", DOUBTED)), roster=roster, now=99 + HOUR_S)
    fed(bookmark("e2", DOUBTED), roster=roster, now=100 + HOUR_S)
    assert ids(roster) == []


def test_a_snapshot_of_the_same_epoch_is_believed_however_small_it_is() -> None:
    roster, deltas = fed(LOST, part("a"), synced(source("e1")), roster=known())
    assert (ids(roster), shown(deltas), roster.doubt()) == (["a"], [["-b", "-c"]], "")


@pytest.mark.parametrize(("trust", "left"), [(UNSPECIFIED, ["a", "b"]), (CONFIRMED, [])])
def test_another_epoch_is_believed_if_it_is_confirmed_or_has_most_instances(
    trust: pb.EpochTrust, left: list[str]
) -> None:
    roster, _ = fed(LOST, part(*left), synced(source("e2", trust)), roster=known())
    assert (ids(roster), roster.doubt(), roster.epochs) == (left, "", {"c": "e2"})


def test_a_restart_remembers_the_epoch_of_its_file() -> None:
    roster = Roster()
    roster.restore([kept("a"), kept("b")], as_of=40, resumable=False, epochs={"c": "e1"})
    fed(synced(source("e2")), roster=roster)
    assert ids(roster) == ["a", "b"]
    assert roster.epochs == {"c": "e1"}


def test_of_several_locations_only_the_one_that_lost_its_store_is_doubted() -> None:
    east, west = source("e1", cluster="east"), source("w1", cluster="west")
    roster, _ = fed(part("a", cluster="east"), part("b", cluster="west"), synced(east, west))
    lost = Resync("the store has a new history", "west")
    fed(lost, synced(source("w2", DOUBTED, cluster="west")), roster=roster)
    fed(Bookmark("t", (east,)), Bookmark("t", (pb.Source(cluster="west"),)), roster=roster)
    assert ids(roster) == ["a", "b"]
    fed(Bookmark("t", (source("w2", CONFIRMED, cluster="west"),)), roster=roster)
    assert ids(roster) == ["a"]
