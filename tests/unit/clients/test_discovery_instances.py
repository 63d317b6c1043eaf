"""The list of all instances, ready or not, and of which clusters it is known to be complete."""

from __future__ import annotations

from pathlib import Path

from hqclient.discovery.endpoint import endpoint, known_instance
from hqclient.discovery.roster import Roster
from hqclient.discovery.saved import SavedState, file_name, load, save
from hqclient.watch_items import Bookmark, Resync
from hqpb.v1 import service_pb2 as pb
from tests.support.watch_items import AWAY, changes, fed, instance, part, put, synced

EAST = pb.Source(cluster="east", replica="east-1", epoch="e")
WEST = pb.Source(cluster="west", replica="west-1", epoch="e")
WEST_AWAY = pb.Source(cluster="west", error="unreachable")


def told(roster: Roster) -> tuple[list[str], list[str], list[str]]:
    """The clusters that are heard, unheard and away."""
    return sorted(roster.heard), sorted(roster.unheard), sorted(roster.away)


def everything() -> Roster:
    return Roster(keep=known_instance)


def test_instances_that_are_not_ready_are_in_the_list_and_make_no_endpoint() -> None:
    roster, _ = fed(part("web-1"), synced(), changes(put("web-2", 5, ready=False)), roster=everything())
    assert {key[1]: known.is_ready for key, known in roster.instances.items()} == {"web-1": True, "web-2": False}
    assert endpoint(known_instance(instance("web-2", ready=False)), "http") is None


def test_becoming_not_ready_is_a_change_and_no_disappearance() -> None:
    _, deltas = fed(part("web-1"), synced(), changes(put("web-1", 5, ready=False)), roster=everything())
    [(before, after)] = deltas[-1].changes.values()
    assert before is not None
    assert after is not None
    assert (before.is_ready, after.is_ready) == (True, False)


def test_a_cluster_is_heard_once_it_has_shown_everything() -> None:
    roster, _ = fed(part("web-1"))
    assert told(roster)[0] == []
    fed(synced(pb.Source(cluster="c", replica="c-1")), roster=roster)
    assert told(roster) == (["c"], [], [])


def test_a_location_that_is_away_from_the_beginning_is_unheard() -> None:
    roster, _ = fed(Bookmark("", (EAST, WEST_AWAY)), part("web-1", cluster="east"), synced(EAST))
    assert told(roster) == (["east"], ["west"], ["west"])
    fed(part("web-2", cluster="west"), synced(WEST), roster=roster)
    assert told(roster) == (["east", "west"], [], [])


def test_the_first_of_two_locations_is_heard_before_the_second() -> None:
    opening = Bookmark("", (pb.Source(cluster="east"), pb.Source(cluster="west")))
    roster, _ = fed(opening, part("web-1", cluster="east"), synced(EAST))
    assert (*told(roster), roster.is_known) == (["east"], ["west"], [], False)


def test_a_heard_cluster_stays_heard_while_hq_is_away() -> None:
    roster, _ = fed(part("web-1"), synced(pb.Source(cluster="c", replica="c-1")), AWAY, Resync("lost"))
    assert told(roster)[0] == ["c"]


def test_a_list_from_a_file_counts_no_cluster_as_heard() -> None:
    roster = everything()
    known = known_instance(instance("web-1", ready=False))
    roster.restore([known], as_of=1.0, resumable=True, epochs={"c": "e"})
    assert (roster.is_known, sorted(roster.heard)) == (True, [])
    fed(Bookmark("t", (pb.Source(cluster="c", replica="c-1", epoch="e"),)), roster=roster)
    assert told(roster)[0] == ["c"]


def test_a_list_of_all_services_is_saved_with_instances_not_ready(tmp_path: Path) -> None:
    state = SavedState((), 1.0, "t", (known_instance(instance("web-1", ready=False)),), {})
    path = tmp_path / file_name((), ready_only=False)
    save(path, state)
    assert load(path, ()) == state
    names = {file_name((), ready_only=False), file_name(()), file_name(["all"]), file_name(["all"], ready_only=False)}
    assert len(names) == 4
