"""Answers: spliced bytes, masks, and JSON that is made once, in slices, and kept within bounds."""

from __future__ import annotations

import json

import pytest
from google.protobuf import json_format

from hq.api.answers import Answers, in_slices
from hq.api.json_cache import EventJson, InstanceJson
from hq.memory.entry import Entry, frames_of
from hq.memory.history import put_event
from hq.memory.query import Query
from hq.registry.reads import Found
from hq.registry.source import Source
from hq.registry.watches import Message
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import settled
from tests.support.cache_entries import Feed, entry, mark, reported, spec_value, status_value
from tests.support.loop_turns import counted_turns

SOURCE = Source("c", "r", "e", 7, 5, stale=False, error="", quarantined=("x",))


def found(*entries: Entry, token: str = "") -> Found:
    return Found(list(entries), [b"".join(frames_of(entries))], token, SOURCE)


async def both(answer: object, kind: type[pb.FindInstancesResponse] | type[pb.GetInstanceResponse]) -> object:
    """The answer in both encodings, which have to say the same."""
    binary = kind.FromString(answer.proto())  # type: ignore[attr-defined]
    text = json_format.Parse(await settled(answer.json()), kind())  # type: ignore[attr-defined]
    assert binary == text
    return binary


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("token", ["", "to\u00dfen"])
async def test_a_list_is_the_same_in_both_encodings(count: int, token: str) -> None:
    entries = [entry(f"i-{number}") for number in range(count)]
    answer = await Answers(1 << 20).found(found(*entries, token=token), ())
    expected = pb.FindInstancesResponse(
        instances=[each.instance() for each in entries], next_page_token=token, sources=[SOURCE.message()]
    )
    assert await both(answer, pb.FindInstancesResponse) == expected


async def test_a_single_instance_is_the_same_in_both_encodings() -> None:
    made = reported()
    answer = await Answers(1 << 20).found(found(made), (), single=True)
    expected = pb.GetInstanceResponse(instance=made.instance(), sources=[SOURCE.message()])
    assert await both(answer, pb.GetInstanceResponse) == expected


# --- masks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [True, False])
async def test_masks_hold_in_both_encodings_through_lists_too(single: bool) -> None:
    made = reported()
    paths = ("meta.id", "spec.revision.id", "status.revision.ready.status", "status.heartbeat")
    answer = await Answers(1 << 20).found(found(made), paths, single=single)
    kept = model.Instance(meta=model.InstanceMeta(id="a"))
    for revision in ("r", "r-1"):
        kept.spec.revision.add(id=revision)
        kept.status.revision.add()
    kept.status.revision[0].ready.status = model.CONDITION_STATUS_TRUE
    kept.status.revision[1].ready.status = model.CONDITION_STATUS_FALSE
    kept.status.heartbeat["r"].FromMilliseconds(1_000)
    if single:
        shown = await both(answer, pb.GetInstanceResponse)
        assert shown == pb.GetInstanceResponse(instance=kept, sources=[SOURCE.message()])
    else:
        shown = await both(answer, pb.FindInstancesResponse)
        assert shown == pb.FindInstancesResponse(instances=[kept], sources=[SOURCE.message()])


async def test_a_masked_list_is_made_once_for_each_mask_in_turn_and_again_after_a_heartbeat() -> None:
    feed = Feed()
    feed(spec=spec_value("a", node_name="n"), status=status_value(mark("r", heard_ms=1_000)))
    answers, of_s = Answers(1 << 20), Query(pb.InstanceFilter(service_id=["s"]))

    async def masked(*paths: str) -> tuple[pb.FindInstancesResponse, bytes]:
        listing = feed.cache.listing(of_s)
        assert listing is not None
        answer = await answers.found(Found(listing.entries, [listing.frames], "", SOURCE, listing), paths)
        return pb.FindInstancesResponse.FromString(answer.proto()), listing.masked[1]

    first, kept = await masked("meta.id", "status.heartbeat")
    assert first.instances[0].status.heartbeat["r"].ToMilliseconds() == 1_000
    assert not first.instances[0].spec.node_name
    again, still = await masked("meta.id", "status.heartbeat")
    assert (again, still is kept) == (first, True)
    assert (await masked("spec.node_name"))[0].instances[0] == model.Instance(spec=model.InstanceSpec(node_name="n"))
    beaten = feed.cache.get("a")
    assert beaten is not None
    beaten.heartbeat(0, 2_000, "writer")
    assert (await masked("status.heartbeat"))[0].instances[0].status.heartbeat["r"].ToMilliseconds() == 2_000


# --- JSON -----------------------------------------------------------------------------------------------------------


def test_json_is_made_once_until_something_changes() -> None:
    twins, made = InstanceJson(1 << 20), reported()
    first = twins.get(made)
    assert twins.get(made) is first
    made.heartbeat(0, 9_000, "somebody")
    second = twins.get(made)
    assert json.loads(second)["status"]["lastHeartbeatTime"] == "1970-01-01T00:00:09Z"
    assert json.loads(first)["status"]["lastHeartbeatTime"] == "1970-01-01T00:00:01Z"


def test_json_is_kept_within_its_bytes() -> None:
    twins = InstanceJson(20_000)
    entries = [entry(f"i-{number}", text="x" * 1_000) for number in range(100)]
    for each in entries:
        twins.get(each)
        for _ in range(3):
            each.json = None  # as a heartbeat does
            twins.get(each)
    kept = [each for each in entries if each.json]
    assert 0 < sum(len(each.json or b"") + len(each.frame()) for each in kept) <= 20_000
    assert kept == entries[-len(kept) :]
    assert sum(len(twin) for _, twin in twins._kept) <= 20_000


def test_events_as_json_are_made_once_and_kept_within_their_bytes() -> None:
    twins = EventJson(20_000)
    events = [put_event(number, entry(f"i-{number}", text="x" * 1_000).frame()) for number in range(100)]
    for event in events:
        assert twins.get(event) is twins.get(bytes(bytearray(event)))
    assert sum(len(key) + len(twin) for key, twin in twins._kept.items()) <= 20_000


def test_times_that_json_cannot_say_do_not_spoil_a_list() -> None:
    made = entry("a")
    instance = made.instance()
    instance.meta.creation_time.seconds = 1 << 60
    assert json.loads(Answers(1)._json_cache.get(made))["meta"]["id"] == "a"
    far = InstanceJson(1 << 20)
    spoiled = reported()
    spoiled.fresh_frame = put_frame(instance)
    assert json.loads(far.get(spoiled))["meta"]["creationTime"].startswith("9999-12-31")


def put_frame(instance: model.Instance) -> bytes:
    return pb.FindInstancesResponse(instances=[instance]).SerializeToString()


async def test_a_long_list_of_json_gives_the_loop_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hq.api.answers._SLICE_S", 0.0)
    entries = [entry(f"i-{number}") for number in range(100)]
    answer = await Answers(1 << 20).found(found(*entries), ())
    async with counted_turns() as turns:
        body = await settled(answer.json())
    assert len(json.loads(body)["instances"]) == 100
    assert turns.count > 50


async def test_slices_leave_nothing_out() -> None:
    assert await in_slices(lambda number: number * 2, range(10)) == list(range(0, 20, 2))


# --- watches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        Message(pb.WATCH_KIND_SYNCED, SOURCE, [], token="t"),
        Message(pb.WATCH_KIND_RESYNC, SOURCE, [], reason='"so"'),
        Message(pb.WATCH_KIND_EVENTS, SOURCE, [put_event(3, entry("a").frame())] * 2, "t", collapsed=True),
        Message(pb.WATCH_KIND_SNAPSHOT, SOURCE, [put_event(3, entry("a").frame())]),
    ],
    ids=lambda message: pb.WatchKind.Name(message.kind),
)
async def test_a_message_of_a_watch_is_the_same_in_both_encodings(message: Message) -> None:
    answers, count = Answers(1 << 20), len(message.events)
    once, again = (answers.watch(message._replace(events=[*message.events])) for _ in range(2))
    binary = pb.WatchInstancesResponse.FromString(once.proto())
    assert binary == json_format.Parse(await settled(again.json()), pb.WatchInstancesResponse())
    assert (binary.kind, binary.resume_token, binary.reason) == (message.kind, message.token, message.reason)
    assert (len(binary.events), binary.collapsed) == (count, message.collapsed)
    assert list(binary.sources) == [SOURCE.message()]


@pytest.mark.parametrize("encoding", ["proto", "json"])
async def test_a_message_that_was_encoded_holds_its_events_no_more(encoding: str) -> None:
    message = Message(pb.WATCH_KIND_EVENTS, SOURCE, [put_event(3, entry("a").frame())])
    assert await settled(getattr(Answers(1 << 20).watch(message), encoding)())
    assert message.events == []
