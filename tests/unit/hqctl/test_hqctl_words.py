"""Small things that hqctl says and understands."""

from __future__ import annotations

import click
import grpc
import pytest

from hqcli.exits import Exit, exit_of
from hqcli.readable import age, ago, parse_span, size, span, target
from hqclient.errors import HqApiError, Violation, not_connected
from hqclient.watch_items import Changes, Interrupted, Resync, SnapshotPart, Synced, WatchItem
from hqctl.asking.failures import sentence
from hqctl.asking.options import addresses
from hqctl.output.sources import faults, merged_sources, not_of
from hqctl.output.story import story, wrap_line
from hqctl.output.watch_view import WatchLines
from hqpb.v1 import admin_pb2, instance_pb2
from hqpb.v1 import service_pb2 as pb

Code = grpc.StatusCode


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-3, "0s"), (59.9, "59s"), (60, "1m"), (200, "3m20s"), (7205, "2h"), (90_000, "1d1h")],
)
def test_a_span_is_shown_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_time_ahead_of_this_clock_is_shown_as_ahead_unless_by_little() -> None:
    moment = instance_pb2.Condition().last_transition_time
    moment.FromSeconds(1_700_000_300)
    assert [age(moment, 1_700_000_000.0 + late_s) for late_s in (0, 299, 324)] == ["ahead:5m", "0s", "24s"]
    assert ago(1_700_000_300, 1_700_000_000.0) == "5m ahead of this machine's clock"
    assert ago(1_700_000_300, 1_700_000_324.0) == "24s ago"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("3m", 180), ("1h30m", 5400), ("2d", 172_800), ("0.5s", 0.5)]
)
def test_a_span_is_understood(text: str, seconds: float) -> None:
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "3x", "-3m", "3m ago"])
def test_a_malformed_span_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a valid duration"):
        parse_span(text)


def test_sizes_are_shown_in_a_suitable_unit() -> None:
    assert [size(n) for n in (512, 20_480, 1_610_612_736)] == ["512B", "20.0KiB", "1.5GiB"]


def test_servers_get_the_default_port_and_may_be_separated_by_commas() -> None:
    assert addresses(("a,b:1", "::1", "[::1]:5")) == ("a:7071", "b:1", "[::1]:7071", "[::1]:5")


@pytest.mark.parametrize("address", ["a:b", "a:0", "a:70000", "http://a:1"])
def test_a_malformed_server_is_a_usage_error(address: str) -> None:
    with pytest.raises(click.UsageError):
        addresses((address,))


GIVEN_UP = "the store did not respond in time; nothing of web-1 was stored"


@pytest.mark.parametrize(
    ("error", "writing", "exit_code"),
    [
        (HqApiError(Code.NOT_FOUND, "…", from_hq=True), False, Exit.NOT_FOUND),
        (HqApiError(Code.ABORTED, "…", from_hq=True), True, Exit.CONFLICT),
        (HqApiError(Code.INVALID_ARGUMENT, "…", from_hq=True), True, Exit.REFUSED),
        (HqApiError(Code.UNAVAILABLE, "cut"), False, Exit.UNAVAILABLE),
        (HqApiError(Code.UNAVAILABLE, "cut"), True, Exit.OUTCOME_UNKNOWN),
        (not_connected("a", "refused"), True, Exit.UNAVAILABLE),
        (HqApiError(Code.RESOURCE_EXHAUSTED, "…", from_hq=True, retry_delay_s=1), True, Exit.UNAVAILABLE),
        (HqApiError(Code.RESOURCE_EXHAUSTED, "…", reason="TOO_LARGE", from_hq=True), True, Exit.REFUSED),
        (HqApiError(Code.PERMISSION_DENIED, "…", from_hq=True), True, Exit.NOT_ALLOWED),
        (
            HqApiError(Code.DEADLINE_EXCEEDED, GIVEN_UP, reason="DEADLINE_EXCEEDED", from_hq=True),
            True,
            Exit.UNAVAILABLE,
        ),
        (HqApiError(Code.DEADLINE_EXCEEDED, "…", reason="DEADLINE_EXCEEDED", from_hq=True), True, Exit.OUTCOME_UNKNOWN),
    ],
    ids=lambda value: repr(value),
)
def test_the_exit_code_says_what_to_do_next(error: HqApiError, writing: bool, exit_code: Exit) -> None:
    assert exit_of(error, writing=writing) is exit_code


def test_an_error_is_one_line_with_fields_and_a_next_step() -> None:
    error = HqApiError(
        Code.UNAVAILABLE, "the store\nis away", violations=[Violation("meta.id", "x")], from_hq=True, retry_delay_s=3
    )
    assert sentence(error, writing=True) == "the store is away; meta.id: x. Try again in 3 s."
    assert "--server" in sentence(not_connected("a", "a refuses"), writing=True)
    assert "hqctl get" in sentence(HqApiError(Code.UNAVAILABLE, "cut"), writing=True)
    late = HqApiError(Code.DEADLINE_EXCEEDED, "Deadline Exceeded", endpoint="hq-1:7071")
    assert sentence(late, writing=False).startswith("hq-1:7071 did not respond in time. See `hqctl status`")
    given_up = HqApiError(Code.DEADLINE_EXCEEDED, GIVEN_UP, reason="DEADLINE_EXCEEDED", from_hq=True)
    assert "may or may not be stored" not in sentence(given_up, writing=True)


def test_an_unknown_call_brings_the_question_whether_the_server_is_an_hq() -> None:
    message = "there is no method '/hq.v1.InstanceService/FindInstances' here"
    error = HqApiError(Code.UNIMPLEMENTED, message, reason="UNKNOWN_METHOD", from_hq=True, endpoint="127.0.0.1:7580")
    said = sentence(error, writing=False)
    assert said.endswith("here. Is 127.0.0.1:7580 the gRPC address of an HQ, and as new as this hqctl?")


@pytest.mark.parametrize("reason", ["DEADLINE_EXCEEDED", "SHUTTING_DOWN"])
def test_a_write_that_was_surely_not_stored_is_not_called_unknown(reason: str) -> None:
    words = "conflict: web-1 kept changing until the deadline; nothing was stored, retry"
    error = HqApiError(Code.DEADLINE_EXCEEDED, words, reason=reason, from_hq=True)
    assert "may or may not be stored" not in sentence(error, writing=True)
    assert exit_of(error, writing=True) is Exit.UNAVAILABLE


def test_an_undecodable_record_brings_no_advice_to_try_again() -> None:
    words = "cannot decode the secret descriptors of this instance (see `hqctl quarantine`): delete it"
    error = HqApiError(Code.UNAVAILABLE, words, reason="STORE_UNAVAILABLE", from_hq=True, retry_delay_s=1)
    assert sentence(error, writing=True) == f"{words}."


def test_every_target_has_its_name_and_an_unset_one_means_installed() -> None:
    assert target(instance_pb2.REVISION_TARGET_CREATED) == "CREATED"
    assert target(instance_pb2.REVISION_TARGET_READY) == "READY"
    assert target(instance_pb2.REVISION_TARGET_INSTALLED) == "INSTALLED"
    assert target(instance_pb2.REVISION_TARGET_UNSPECIFIED) == "INSTALLED"


def test_an_answer_of_another_cluster_than_the_one_named_is_refused() -> None:
    east, west = pb.Source(cluster="east", replica="r"), pb.Source(cluster="west", replica="r")
    assert not_of(["west"], [east]).startswith("this is cluster east, not west")
    assert [not_of(*case) for case in ((["west"], [east, west]), ([""], [east]), ([], [east]), (["west"], []))] == [
        ""
    ] * 4


def test_stale_and_missing_sources_are_reported() -> None:
    stale = pb.Source(cluster="dc1", replica="r1", stale=True, quarantined=["a", "b", "c", "d"])
    stale.staleness.FromSeconds(90)
    assert len(faults(stale)) == 2
    assert "1m30s" in faults(stale)[0]
    assert "4 instances" in faults(stale)[1]
    assert "missing" in faults(pb.Source(cluster="dc2", error="timed out"))[0]
    assert faults(pb.Source(cluster="dc1", replica="r1")) == []


def test_the_last_page_of_a_replica_decides_how_fresh_it_is() -> None:
    pages = [[pb.Source(replica="a", version=1)], [pb.Source(replica="a", version=2)]]
    assert [source.version for source in merged_sources(pages)] == [2]


def test_an_explanation_shows_how_a_container_ended_and_its_last_output() -> None:
    answer = pb.ExplainInstanceResponse(node_name="node-7")
    revision = answer.revision.add(id="v2", target=instance_pb2.REVISION_TARGET_READY)
    revision.last_heartbeat_time.seconds = 1_700_000_000
    container = revision.container.add(name="main", restart_count=3)
    container.last_termination.message, container.last_termination.output = "exited with 7", "no route\nto db"
    container.last_termination.finish_time.seconds = 1_700_000_000
    lines = list(story(answer, 1_700_000_005.0))
    at = next(number for number, line in enumerate(lines) if "main ended" in line)
    assert lines[at] == "  container     main ended 5s ago: exited with 7, restarted 3 times"
    assert lines[at + 1 : at + 4] == ["    its last output:", "    | no route", "    | to db"]


def test_an_explanation_begins_with_the_verdict_and_has_the_receipt() -> None:
    answer = pb.ExplainInstanceResponse(node_name="node-7", summary="its agent fell silent")
    answer.meta.id = "web-1"
    answer.ready.status = instance_pb2.CONDITION_STATUS_FALSE
    revision = answer.revision.add(id="v2", target=instance_pb2.REVISION_TARGET_READY)
    revision.ready.status = instance_pb2.CONDITION_STATUS_FALSE
    revision.ready.reason = "HeartbeatTimeout"
    revision.ready.receipt.decided_by, revision.ready.receipt.decided_at_version = "hq-2", 1234
    revision.ready.receipt.silence.FromSeconds(612)
    lines = list(story(answer, 1_700_000_000.0))
    assert lines[0].startswith("web-1 is NOT READY")
    assert "its agent fell silent" in lines[1]
    assert any("v2, wanted READY: not ready (HeartbeatTimeout)" in line for line in lines)
    assert any("hq-2 decided it at version 1234, after 10m12s of silence" in line for line in lines)


def test_a_long_line_is_folded_under_its_own_text() -> None:
    first, second = wrap_line("  receipt       one two three", 24)
    assert second == " " * 16 + "three"
    assert first.endswith("two")


def test_a_watch_shows_changes_of_readiness_and_each_break_once() -> None:
    def web(status: instance_pb2.ConditionStatus) -> instance_pb2.Instance:
        instance = instance_pb2.Instance(meta=instance_pb2.InstanceMeta(id="web-1"))
        instance.status.ready.status = status
        return instance

    broken = Interrupted(HqApiError(Code.UNAVAILABLE, "cut"), 1.0)
    put = pb.WatchEvent(put=web(instance_pb2.CONDITION_STATUS_TRUE))
    gone = pb.WatchEvent(delete=pb.InstanceRef(id="web-1"))
    items: list[WatchItem] = [
        SnapshotPart((web(instance_pb2.CONDITION_STATUS_FALSE),)),
        Synced("t1", ()),
        Changes((put, gone), "t2", ()),
        broken,
        broken,
        Resync("too slow"),
    ]
    lines = WatchLines(snapshot=True)
    shown = [line for item in items for line in lines.of(item)]
    assert [kind for kind, _ in shown] == ["is", "synced", "put", "gone", "broken", "resync"]
    assert "no>yes" in shown[2][1]


def test_a_transition_of_an_earlier_instance_of_this_id_is_marked() -> None:
    answer = pb.ExplainInstanceResponse()
    answer.meta.creation_time.seconds = 1_700_000_100
    moves = [admin_pb2.Transition(revision_id="r1", ready=True) for _ in range(2)]
    moves[0].time.seconds, moves[1].time.seconds = 1_700_000_050, 1_700_000_150
    told = [line for line in story(answer, 1_700_000_200.0, moves) if "r1: ready again" in line]
    assert ["since deleted" in line for line in told] == [True, False]
