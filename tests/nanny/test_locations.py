"""A location that does not answer: the others go on, the roll-out says what it waits for, an order leaves it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import pytest

from hqclient import Client, Resync, SnapshotPart, Synced
from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import Instance
from hqpb.v1.service_pb2 import Source
from nanny.actions.levels import look_at
from nanny.actions.stages import stages_of
from nanny.actions.subject import ServiceContext
from nanny.automaton.service import ManagedService, SnapshotState
from nanny.automaton.states import Action, Current, Target
from nanny.rollout.moves import Begin, Finished, Wait
from nanny.rollout.plan import next_step
from nanny.rollout.policy import Policy
from nanny.rollout.views import Key, RolloutProgress, Stage, keys_in
from nanny.snapshots.content import Content, read_content
from nanny.snapshots.wanted import INSTALLED, READY
from nanny.world.pictures import ServiceView
from nannypb.v1.records_pb2 import ServiceRecord
from serving.clock import SystemClock
from tests.nanny.orders import Ordered

LOCATIONS: Final = ("ams", "fra")
KEYS: Final[list[Key]] = [(location, f"{location}-{number}") for location in LOCATIONS for number in range(2)]


def content(title: str) -> Content:
    instances = ", ".join(f"{{id: {name}, installation: {location}}}" for location, name in KEYS)
    text = f"{{service: web, instances: [{instances}], revisions: [{{id: {title}, container: [{{name: {title}}}]}}]}}"
    return read_content("web", text.encode(), LOCATIONS)


OLD, NEW = content("v1"), content("v2")


def instance(key: Key, ready: str = OLD.revision_id, installed: str = "") -> Instance:
    """One revision runs, another one is installed."""
    made = Instance()
    made.meta.id, made.meta.service_id, made.meta.version = key[1], "web", 1
    made.spec.revision.add(id=ready, target=READY)
    made.status.ready.status = instance_pb2.CONDITION_STATUS_TRUE
    runs = made.status.revision.add(id=ready)
    runs.ready.status = runs.installed.status = instance_pb2.CONDITION_STATUS_TRUE
    runs.ready.reason = "Ready"
    if installed:
        made.spec.revision.add(id=installed, target=INSTALLED)
        made.status.revision.add(id=installed).installed.status = instance_pb2.CONDITION_STATUS_TRUE
    return made


def subject(*, away: bool = False, leave_out: bool = False, installed: str = NEW.revision_id) -> ServiceContext:
    """The old snapshot runs everywhere; `fra` does not answer, or is left out."""
    picture = ServiceView(cast("Mapping[str, Client]", dict.fromkeys(LOCATIONS)), SystemClock())
    for key in KEYS:
        picture.put_instance(key, instance(key, installed=installed))
    tuples = {
        OLD.id: SnapshotState(Current.DEACTIVATING, Target.PREPARED),
        NEW.id: SnapshotState(Current.ACTIVE, Target.ACTIVE),
    }
    policy = Policy(leave_out=frozenset({"fra"} if leave_out else ()))
    told = {"fra": "does not answer"} if away else {}
    return ServiceContext("web", ServiceRecord(), ManagedService(tuples), policy, picture, away=told)


def test_a_location_that_does_not_answer_is_switched_last_and_the_others_go_on() -> None:
    stages = stages_of(subject(away=True), NEW)
    assert keys_in(stages, Stage.AWAY) == {key for key in KEYS if key[0] == "fra"}
    step = next_step(Policy(), stages, RolloutProgress(), 0)
    assert isinstance(step, Begin)
    assert step.batch == (("ams", "ams-0"),)


def test_holds_wait_for_a_location_that_is_away_unless_it_is_left_out() -> None:
    assert not subject(away=True).is_whole
    assert subject(away=True, leave_out=True).is_whole


def test_a_roll_out_says_what_it_waits_for_and_what_goes_on_without_it() -> None:
    done = {Stage.DONE: {KEYS[0], KEYS[1]}, Stage.AWAY: {KEYS[2], KEYS[3]}}
    for progress in (RolloutProgress(), RolloutProgress(batch=(KEYS[2],))):
        step = next_step(Policy(), done, progress, 1e9)
        assert isinstance(step, Wait)
        assert "answer" in step.why
        assert "nanny service leave-out SERVICE fra" in step.why


def test_a_location_that_is_left_out_is_neither_touched_nor_waited_for_whether_it_answers_or_not() -> None:
    for away in (True, False):
        told = subject(away=away, leave_out=True, installed="")
        assert {key[0] for key in keys_in(stages_of(told, NEW), *Stage)} == {"ams"}
        look = look_at(told, NEW, Action.PREPARE, heard=True)
        assert {write.key[0] for write in look.writes} == {"ams"}
        assert not look.away
    assert next_step(Policy(), {Stage.DONE: {KEYS[0]}}, RolloutProgress(batch=(KEYS[2],)), 0) != Wait("")
    end = next_step(Policy(), {Stage.DONE: {KEYS[0]}}, RolloutProgress(proven=True), 0, 300.0)
    assert end == Finished("", frozenset({KEYS[0]}))


def test_while_a_location_takes_no_writes_the_others_are_written_first() -> None:
    look = look_at(subject(installed=""), NEW, Action.PREPARE, heard=True, last={"ams"})
    assert [write.key[0] for write in look.writes] == ["fra", "fra", "ams", "ams"]


def test_a_roll_out_switches_off_only_what_it_has_replaced() -> None:
    """Else a location that is left out would serve nothing: its instances give way to the new snapshot only."""
    look = look_at(subject(leave_out=True), OLD, Action.DEACTIVATE, heard=True, kept=NEW.placements)
    assert (look.writes, look.left) == ([], 4)
    look = look_at(subject(), OLD, Action.DEACTIVATE, heard=True)
    assert len(look.writes) == 4


def test_an_instance_is_judged_anew_when_hq_shows_a_change_and_not_before() -> None:
    asked: list[Key] = []

    def judge(key: Key) -> str:
        asked.append(key)
        return "x"

    picture = subject().picture
    tally = picture.tally("asked", judge)
    assert tally.groups() == {"x": set(KEYS)}
    assert tally.groups() == {"x": set(KEYS)}
    assert len(asked) == 4
    picture.put_instance(KEYS[0], instance(KEYS[0]))
    assert picture.tally("asked", lambda _: None).groups() == {"x": set(KEYS)}
    assert asked[4:] == [KEYS[0]]


@pytest.mark.parametrize("real", [("a",), ("a", "b", "c"), ("a", "c")])
def test_a_watch_that_starts_over_mends_lost_deletions_creations_and_pairs_of_them(real: tuple[str, ...]) -> None:
    picture = ServiceView(cast("Mapping[str, Client]", {"ams": None}), SystemClock())
    seen, tally = picture.seen["ams"], picture.tally("known", lambda key: key in picture.instances or None)
    synced = Synced("t", (Source(cluster="", epoch="e", replica="r"),))
    for items in (
        (SnapshotPart(tuple(instance(("ams", name)) for name in ("a", "b"))), synced),
        (Resync("starting over, to compare with HQ"),),
        (SnapshotPart(tuple(instance(("ams", name)) for name in real)), synced),
    ):
        for item in items:
            seen.took(item)
        assert bool(seen.error) == (len(items) == 1), "in between nothing is acted on"
    keys = {("ams", name) for name in real}
    assert (set(picture.instances), tally.groups()[True]) == (keys, keys)


def test_a_stage_follows_what_hq_shows() -> None:
    told = subject()
    assert keys_in(stages_of(told, NEW), Stage.UP) == set(KEYS)
    told.picture.put_instance(KEYS[0], None)
    assert keys_in(stages_of(told, NEW), Stage.DOWN) == {KEYS[0]}
    told.picture.put_instance(KEYS[0], instance(KEYS[0]))
    assert keys_in(stages_of(told, NEW), Stage.UP) == set(KEYS)


def test_leaving_a_location_out_is_in_the_history_with_its_author() -> None:
    web = Ordered()
    web.send(updated={"rollout": {"leave_out": ["fra"]}})
    web.send(updated={})
    assert web.history()[-4:] == [
        "ann:  info attributes replaced",
        "ann:  roll-outs leave out fra",
        "ann:  info attributes replaced",
        "ann:  roll-outs leave out no location",
    ]
