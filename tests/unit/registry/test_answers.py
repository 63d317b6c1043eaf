"""Answers: spliced bytes, masks, and JSON that is made once, in slices, and kept within bounds."""

from __future__ import annotations

import json

import pytest
from google.protobuf import json_format

from hq.api.answers import Answers
from hq.memory.entry import Entry, frames_of
from hq.memory.history import put_event
from hq.memory.query import Query
from hq.registry.reads import Found
from hq.registry.source import Source
from hq.registry.watch_messages import WatchMessage
from hqapi.pieces import Pieces
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.calls.methods import maybe_await
from tests.support.cache_entries import Feed, entry, mark, reported, spec_value, status_value
from tests.support.loop_turns import counted_turns

SOURCE = Source("c", "r", "e", 7, 5, stale=False, error="", quarantined=("x",))


def found(*entries: Entry, token: str = "") -> Found:
    return Found(list(entries), [b"".join(frames_of(entries))], token, SOURCE)


async def both(answer: object, kind: type[pb.FindInstancesResponse] | type[pb.GetInstanceResponse]) -> object:
    """The answer as a message, after a check that both encodings are equal."""
    binary = kind.FromString(answer.proto())  # type: ignore[attr-defined]
    text = json_format.Parse(await maybe_await(answer.json()), kind())  # type: ignore[attr-defined]
    assert binary == text
    return binary


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("token", ["", "to\u00dfen"])
async def test_a_list_is_the_same_in_both_encodings(count: int, token: str) -> None:
    entries = [entry(f"i-{number}") for number in range(count)]
    answer = await Answers(1 << 20).find_answer(found(*entries, token=token), ())
    expected = pb.FindInstancesResponse(
        instances=[each.instance() for each in entries], next_page_token=token, sources=[SOURCE.message()]
    )
    assert await both(answer, pb.FindInstancesResponse) == expected


async def test_a_single_instance_is_the_same_in_both_encodings() -> None:
    made = reported()
    answer = await Answers(1 << 20).find_answer(found(made), (), single=True)
    expected = pb.GetInstanceResponse(instance=made.instance(), sources=[SOURCE.message()])
    assert await both(answer, pb.GetInstanceResponse) == expected


# --- masks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [True, False])
async def test_masks_hold_in_both_encodings_and_inside_lists(single: bool) -> None:
    made = reported()
    paths = ("meta.id", "spec.revision.id", "status.revision.ready.status", "status.heartbeat")
    answer = await Answers(1 << 20).find_answer(found(made), paths, single=single)
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


async def test_a_masked_list_is_made_once_for_each_mask_and_again_after_a_heartbeat() -> None:
    feed = Feed()
    feed(spec=spec_value("a", node_name="n"), status=status_value(mark("r", heard_ms=1_000)))
    answers, of_s = Answers(1 << 20), Query(pb.InstanceFilter(service_id=["s"]))

    async def masked(*paths: str) -> tuple[pb.FindInstancesResponse, list[object]]:
        listing = feed.cache.listing(of_s)
        assert listing is not None
        whole = Found(listing.entries, (), "", SOURCE, listing)
        shown = await both(await answers.find_answer(whole, paths), pb.FindInstancesResponse)
        assert isinstance(shown, pb.FindInstancesResponse)
        return shown, [listing.forms[paths], listing.forms["json", paths]]

    first, kept = await masked("meta.id", "status.heartbeat")
    assert first.instances[0].status.heartbeat["r"].ToMilliseconds() == 1_000
    assert not first.instances[0].spec.node_name
    assert (await masked("spec.node_name"))[0].instances[0] == model.Instance(spec=model.InstanceSpec(node_name="n"))
    assert await masked("meta.id", "status.heartbeat") == (first, kept)
    heard = feed.cache.get("a")
    assert heard is not None
    heard.heartbeat(0, 2_000, "writer")
    assert (await masked("status.heartbeat"))[0].instances[0].status.heartbeat["r"].ToMilliseconds() == 2_000


# --- what is made once ----------------------------------------------------------------------------------------------


async def test_json_is_made_once_until_something_changes() -> None:
    answers, made = Answers(1 << 20), reported()

    async def shown() -> str:
        (instance,) = json.loads(await maybe_await((await answers.find_answer(found(made), ())).json()))["instances"]
        return str(instance["status"]["lastHeartbeatTime"])

    assert {await shown(), await shown()} == {"1970-01-01T00:00:01Z"}
    assert len(answers._pieces._order) == 1
    made.heartbeat(0, 9_000, "somebody")
    assert await shown() == "1970-01-01T00:00:09Z"


def test_pieces_are_made_once_and_kept_within_a_limit_of_bytes() -> None:
    pieces, made = Pieces(20_000), []

    def make(message: bytes) -> bytes:
        made.append(message)
        return message * 2

    messages = [b"%03d" % number * 100 for number in range(100)]
    for message in messages:
        for form in ("a", "b"):
            assert pieces.get(form, make, message) is pieces.get(form, make, bytes(bytearray(message)))
    assert len(made) == 200
    assert pieces.size_bytes <= 20_000
    kept = sum(len(one) for form in pieces._kept.values() for pair in form.items() for one in pair)
    assert 10_000 < kept < pieces.size_bytes
    assert pieces.at_once("b", messages[-2:]) == [message * 2 for message in messages[-2:]]
    assert pieces.at_once("b", messages) is None


async def test_times_out_of_range_do_not_spoil_a_list_in_json() -> None:
    spoiled = reported()
    instance = spoiled.instance()
    instance.meta.creation_time.seconds = 1 << 60
    spoiled.fresh_frame = put_frame(instance)
    body = await maybe_await((await Answers(1).find_answer(found(spoiled), ())).json())
    assert json.loads(body)["instances"][0]["meta"]["creationTime"].startswith("9999-12-31")


def put_frame(instance: model.Instance) -> bytes:
    return pb.FindInstancesResponse(instances=[instance]).SerializeToString()


async def test_encoding_a_long_list_as_json_yields_to_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.limiting.turns._SLICE_S", 0.0)
    entries = [entry(f"i-{number}") for number in range(100)]
    answer = await Answers(1 << 20).find_answer(found(*entries), ())
    async with counted_turns() as turns:
        body = await maybe_await(answer.json())
    assert len(json.loads(body)["instances"]) == 100
    assert turns.count > 50


# --- watches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        WatchMessage(pb.WATCH_KIND_SYNCED, SOURCE, [], token="t"),
        WatchMessage(pb.WATCH_KIND_RESYNC, SOURCE, [], reason='"so"'),
        WatchMessage(pb.WATCH_KIND_EVENTS, SOURCE, [put_event(3, entry("a").frame())] * 2, "t", collapsed=True),
        WatchMessage(pb.WATCH_KIND_SNAPSHOT, SOURCE, [put_event(3, entry("a").frame())]),
    ],
    ids=lambda message: pb.WatchKind.Name(message.kind),
)
async def test_a_message_of_a_watch_is_the_same_in_both_encodings(message: WatchMessage) -> None:
    answers, count = Answers(1 << 20), len(message.events)
    once, again = (answers.watch(message._replace(events=[*message.events])) for _ in range(2))
    binary = pb.WatchInstancesResponse.FromString(once.proto())
    assert binary == json_format.Parse(await maybe_await(again.json()), pb.WatchInstancesResponse())
    assert (binary.kind, binary.resume_token, binary.reason) == (message.kind, message.token, message.reason)
    assert (len(binary.events), binary.collapsed) == (count, message.collapsed)
    assert list(binary.sources) == [SOURCE.message()]


@pytest.mark.parametrize("encoding", ["proto", "json"])
async def test_an_encoded_message_no_longer_holds_its_events(encoding: str) -> None:
    message = WatchMessage(pb.WATCH_KIND_EVENTS, SOURCE, [put_event(3, entry("a").frame())])
    assert await maybe_await(getattr(Answers(1 << 20).watch(message), encoding)())
    assert message.events == []
