"""What discovery makes of a watch at a gateway: each location has a snapshot, a silence and an end of its own."""

from __future__ import annotations

from hqclient.discovery.roster import Origin
from hqclient.watch_items import Bookmark, Resync, Synced
from hqpb.v1 import service_pb2 as pb
from tests.support.watch_items import (
    changes,
    fed,
    ids,
    part,
    put,
    shown,
    synced,
)


def test_two_clusters_may_use_one_id() -> None:
    roster, _ = fed(part("a", cluster="east"), part("a", cluster="west"), synced())
    assert len(roster.instances) == 2


def test_a_location_that_is_away_keeps_its_instances_until_it_is_back() -> None:
    east, west = pb.Source(cluster="east"), pb.Source(cluster="west", error="away")
    roster, _ = fed(
        part("e", cluster="east"), part("w1", "w2", cluster="west"), synced(east, pb.Source(cluster="west"))
    )
    fed(Resync("lost"), part("e", cluster="east"), synced(east, west), roster=roster)
    assert ids(roster) == ["e", "w1", "w2"]
    assert roster.source_is_stale
    back = pb.Source(cluster="west")
    _, deltas = fed(changes(put("w1", 9, cluster="west")), Bookmark("t", (east, back)), roster=roster)
    assert (ids(roster), shown(deltas)) == (["e", "w1"], [["-w2"]])
    assert not roster.source_is_stale


def gateway_shows(*clusters: str, away: str = "") -> Bookmark:
    """The first message of a gateway."""
    sources = [pb.Source(cluster=name, error="no answer" * (name == away)) for name in clusters]
    return Bookmark("", tuple(sources))


def told_by(cluster: str) -> pb.Source:
    return pb.Source(cluster=cluster, replica=f"{cluster}-1")


def test_a_location_that_is_away_from_the_beginning_costs_its_own_instances_only() -> None:
    roster, _ = fed(
        gateway_shows("east", "west", away="west"), part("e", cluster="east"), Synced("t", (told_by("east"),))
    )
    assert (ids(roster), roster.origin, roster.is_whole, roster.source_is_stale) == (["e"], Origin.LIVE, True, True)
    fed(part("w1", cluster="west"), roster=roster)
    assert (ids(roster), roster.is_whole) == (["e"], False)
    fed(part("w2", cluster="west"), Synced("t", (told_by("west"),)), roster=roster)
    assert (ids(roster), roster.is_whole, roster.source_is_stale) == (["e", "w1", "w2"], True, False)


def test_the_list_stays_stale_while_a_location_is_away_whatever_the_others_say() -> None:
    east, west = told_by("east"), told_by("west")
    roster, _ = fed(gateway_shows("east", "west"), part("e", cluster="east"), Synced("t", (east,)))
    fed(part("w", cluster="west"), Synced("t", (west,)), roster=roster)
    assert not roster.source_is_stale
    fed(Bookmark("t", (pb.Source(cluster="west", error="no answer"),)), Bookmark("t", (east,)), roster=roster)
    assert (ids(roster), roster.source_is_stale) == (["e", "w"], True)
    fed(Synced("t", (west,)), Bookmark("t", (west,)), roster=roster)
    assert not roster.source_is_stale


def test_a_location_removed_from_the_gateway_has_no_instances() -> None:
    east, west, removed = told_by("east"), told_by("west"), pb.Source(cluster="west", error="not known any more")
    roster, _ = fed(gateway_shows("east", "west"), part("e", cluster="east"), Synced("t", (east,)))
    fed(part("w", cluster="west"), Synced("t", (west,)), roster=roster)
    _, deltas = fed(Resync("removed", "west"), Synced("t", (removed,)), Bookmark("t", (east,)), roster=roster)
    assert (shown(deltas), ids(roster)) == ([["-w"]], ["e"])
    assert (roster.origin, roster.is_whole, roster.source_is_stale) == (Origin.LIVE, True, False)
    fed(Resync("restored"), part("e", cluster="east"), Synced("t", (east,)), roster=roster)
    assert roster.is_whole


def test_a_first_snapshot_that_is_cut_off_leaves_other_locations_as_they_are() -> None:
    roster, _ = fed(
        gateway_shows("east", "west"),
        part("w1", cluster="west"),
        part("e1", "gone", cluster="east"),
        Resync("cut off", "east"),
        part("w2", cluster="west"),
        Synced("t", (told_by("west"),)),
        part("e1", cluster="east"),
        Synced("t", (told_by("east"),)),
    )
    assert (ids(roster), roster.is_whole, roster.resyncs) == (["e1", "w1", "w2"], True, 0)
