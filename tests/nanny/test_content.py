"""A description with faults is refused whole, with all faults; what is accepted has one id whatever its spelling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from descriptions.held import HeldInstance, held_instance
from hqcli import documents
from hqpb.v1 import instance_pb2
from nanny.snapshots import content as snapshot_content
from nanny.snapshots import wanted
from nanny.snapshots.content import MAX_CONTENT_BYTES, Content, chunks_of, read_content, text_of
from nannyctl.plans.plan import PlannedKind
from nannyctl.plans.upload_intent import UploadIntent
from serving.errors import InvalidRequest, TooLarge

GOOD = b"""
service: web
resources: {ports: [http]}
instances:
  - {id: web-1, node: n1, installation: sas, allocation: {host: h1, ports: {http: 81}}}
  - {id: web-2, node: n2, installation: man}
revisions:
  - {id: v1, container: [{name: web, command: [run]}]}
"""
KEY = ("sas", "web-1")
LOCATIONS = ("sas", "man")
STAMP = wanted.stamp_of("web", 1_000, 7)


def content(text: bytes = GOOD) -> Content:
    return read_content("web", text, LOCATIONS)


def faults(text: bytes) -> list[str]:
    with pytest.raises(InvalidRequest) as caught:
        content(text)
    return [f"{fault.field}: {fault.description}" for fault in caught.value.violations]


def test_all_faults_are_told_at_once_each_under_its_field() -> None:
    told = "\n".join(
        faults(b"service: web\nready: v1\ninstances: [{id: 'a b'}, {id: c, installation: vla}]\nfrob: 1\n")
    )
    for part in ("content.instances[0].id", "unknown location vla", "content.ready", "content.frob", "0 entries"):
        assert part in told, told


def test_a_description_of_another_service_is_refused() -> None:
    assert any("is other" in fault for fault in faults(GOOD.replace(b"service: web", b"service: other")))


@pytest.mark.parametrize("text", [b"", b"a: [", b"\xff", b"- a", b"a: 1\n---\nb: 2\n", b"[" * 5000], ids=range(6))
def test_what_is_no_description_is_refused(text: bytes) -> None:
    assert faults(text)


def test_a_description_over_the_limit_is_refused() -> None:
    with pytest.raises(TooLarge, match="the limit is 8388608"):
        content(b"#" * (MAX_CONTENT_BYTES + 1))


def merging(levels: int, wide: int) -> bytes:
    """Each level brings the entries of the one before so many times."""
    lines = [
        b"a0: &a0 {a: 1, b: 2}",
        *(b"a%d: &a%d {<<: [%s]}" % (n, n, b",".join([b"*a%d" % (n - 1)] * wide)) for n in range(1, levels)),
    ]
    return b"\n".join(lines)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (merging(20, 10), "`<<` brings more than 100000 entries"),
        (
            b"a: &a {" + b",".join(b"k%d: 1" % n for n in range(5_000)) + b"}\nb: {<<: [" + b"*a," * 200 + b"]}",
            "brings",
        ),
        (b"&a {<<: *a}", "is nested too deeply"),
        (b"- " * 5_000, "is nested too deeply"),
        (b"service: web\nlabels: " + b"[" * 100_000, "is nested too deeply"),
        (b'{"service": ' + b'{"a": ' * 100_000, "is nested too deeply"),
        (b"service: " + b"9" * 5_000, "a number that is too long"),
        (b"service: 1" + b":1" * 100_000, "content.service"),
        (b"service: 1" + b":1" * 1_000 + b".5", "content.service"),
        (b"? [a]\n: b", "a key that is no text"),
        (b"? {a: b}\n: b", "a key that is no text"),
        (b"service: web\ninstances: &a [*a]", "with its aliases and defaults written out"),
    ],
    ids=[
        "merges",
        "a merge",
        "itself",
        "depth",
        "depth that ended the process",
        "depth of JSON",
        "digits",
        "base 60",
        "base 60 with a fraction",
        "list",
        "map",
        "circle",
    ],
)
def test_a_short_text_makes_nothing_large_or_slow_and_no_error_of_the_server(text: bytes, told: str) -> None:
    """Four hundred bytes took Nanny's memory by merges, and two hundred kilobytes a thread for ever by numbers."""
    with pytest.raises((InvalidRequest, TooLarge), match=told):
        content(text)


@pytest.mark.parametrize(
    ("labels", "module", "bound", "value"),
    [
        (b"{<<: *l}", documents._DocumentLoader, "most_merged", 0),
        (b"*l", snapshot_content, "_AGAIN_BYTES", MAX_CONTENT_BYTES),
        (b"{}", documents._DocumentLoader, "most_digits", 1),  # a port has two
    ],
    ids=["merges", "aliases", "digits"],
)
def test_a_content_that_was_accepted_before_there_were_bounds_is_read(
    labels: bytes, module: Any, bound: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade a service's stored content could not be read any more, so nothing was done for it."""
    monkeypatch.setattr(module, bound, value)
    text = GOOD.replace(b"resources:", b"labels: &l {k: v}\nresources:").replace(b"node: n2", b"labels: " + labels)
    with pytest.raises((InvalidRequest, TooLarge)):
        content(text)
    assert len(read_content("web", text, LOCATIONS, "a", "a", was_accepted=True).placements) == 2


def test_of_very_many_faults_only_the_first_hundred_are_told() -> None:
    with pytest.raises(InvalidRequest) as refused:
        content(b"service: web\nrevisions: [{id: v1}]\ninstances: [" + b"{}," * 500 + b"]")
    assert len(refused.value.violations) == 100


def test_keys_are_text_whatever_they_look_like() -> None:
    """Keys of several types could not be put in order: an error of the server."""
    labels = b"labels: {1: a, b: c, .nan: d, true: e, ~: f}\n"
    assert content(labels + GOOD).description.labels == {"1": "a", "b": "c", ".nan": "d", "true": "e", "~": "f"}
    assert content(labels + GOOD).id == content(b"labels: {'1': a, b: c, .nan: d, 'true': e, '~': f}\n" + GOOD).id


def described(allocation: str, instances: str, more: str = "") -> bytes:
    return f"service: web\nrevisions: [{{id: v1}}]\nallocation: {allocation}\ninstances: [{instances}]\n{more}".encode()


def test_an_allocation_that_all_instances_share_is_read_once() -> None:
    """Written out for each instance, an allocation of some megabytes took all of Nanny's memory."""
    told = read_content("web", described("{host: h, ports: {http: 81}}", "{id: web-1}, {id: web-2}"), ["sas"])
    one, other = (placement.allocation for placement in told.placements.values())
    assert one is other
    assert one is not None
    assert one.port[0].number == 81


def test_defaults_that_write_out_to_more_than_the_limit_are_refused() -> None:
    names = ", ".join(f"{{id: web-{n}, allocation: {{}}}}" for n in range(100))
    with pytest.raises(TooLarge, match="defaults"):
        read_content("web", described("{host: " + "h" * 100_000 + "}", names), ["sas"])


def test_usual_defaults_of_as_many_instances_as_there_may_be_are_taken() -> None:
    names = ", ".join(f"{{id: web-{n}, allocation: {{host: h{n}}}}}" for n in range(20_000))
    told = read_content("web", described("{host: h, ports: {http: 81, grpc: 82}}", names), ["sas"])
    assert len(told.placements) == 20_000


def test_a_snapshot_has_so_many_instances_and_no_more() -> None:
    """Four megabytes of them were 400,000, each of which takes a kilobyte of memory and time of every look."""
    text = described("{}", ", ".join(f"{{id: web-{n}}}" for n in range(20_001)))
    with pytest.raises(InvalidRequest, match="at most 20000"):
        read_content("web", text, ["sas"])


@pytest.mark.long
def test_long_lists_of_names_cost_no_more_for_each_than_short_ones() -> None:
    """Each port, id and revision was compared with all before it: four megabytes of them took hours of a thread."""
    ports = ", ".join(f"p{n}: {n + 1}" for n in range(60_000))
    ids = ", ".join(f"a{n}" for n in range(50_000))
    revisions = ", ".join(f"{{id: v{n}}}" for n in range(2, 5_000))
    text = described(f"{{ports: {{{ports}}}}}", "{id: web-1}", f"installed: [{ids}]\ndrop: [{ids}]\n")
    with pytest.raises(InvalidRequest) as refused:
        read_content("web", text.replace(b"{id: v1}", b"{id: v1}, " + revisions.encode()), ["sas"])
    assert len(refused.value.violations) == 100


@pytest.mark.long
def test_aliases_that_write_out_to_more_than_the_limit_are_refused() -> None:
    bomb = b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
    bomb += b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9))
    with pytest.raises(TooLarge, match="aliases"):
        content(bomb)


def test_the_id_follows_from_what_a_description_says_and_not_from_its_spelling() -> None:
    other = b"# a comment\n" + GOOD.replace(b"{id: web-2, node: n2,", b"{node: n2, id: web-2,")
    assert content(other).id == content().id
    assert content(GOOD.replace(b"command: [run]", b"command: [walk]")).id != content().id


def test_the_text_comes_back_from_its_chunks() -> None:
    text = bytes(range(256)) * 5000
    assert text_of(chunks_of(text)) == text


def of(instance: instance_pb2.Instance | None) -> HeldInstance:
    assert instance is not None
    return held_instance(instance, "epoch")


def test_a_new_instance_is_prepared_with_everything_that_is_described() -> None:
    made = wanted.with_revision(content(), KEY, None, wanted.INSTALLED, STAMP)
    assert made is not None
    assert made.spec.allocation.host == "h1"
    assert wanted.target_of(made, content().revision_id) == wanted.INSTALLED
    assert wanted.generation_of(made, 1_000) == 7


@pytest.mark.parametrize(
    "text",
    [
        "999",
        "999-",
        STAMP.replace("7-", "999-"),
        wanted.stamp_of("mail", 1_000, 999),
        wanted.stamp_of("web", 2_000, 999),
        "-1",
        "\u0663",
        "9" * 10_000,
        wanted.stamp_of("web", 1_000, 2**64 - 1),  # whoever may read the service can compute it; no order fits after it
    ],
)
def test_an_annotation_made_by_hand_or_copied_from_another_service_belongs_to_no_order(text: str) -> None:
    made = wanted.with_revision(content(), KEY, None, wanted.INSTALLED, STAMP)
    assert made is not None
    made.meta.annotations[wanted.OWNER] = text
    assert wanted.generation_of(made, 1_000) == 0


@pytest.mark.parametrize("annotation", [b"nanny.v1/generation: '5'", b"nanny.v1/weight: 5% of 100"])
def test_a_snapshot_does_not_set_the_annotations_of_nanny(annotation: bytes) -> None:
    assert "belongs to Nanny" in faults(GOOD + b"annotations: {%s}\n" % annotation)[0]


def test_liveness_times_come_with_a_new_instance_and_with_a_switch_and_restart_nothing() -> None:
    timed = content(GOOD + b"liveness: {reportInterval: 20s, timeout: 60s}\n")
    assert (timed.id != content().id, timed.revision_id) == (True, content().revision_id)
    made = wanted.with_revision(timed, KEY, None, wanted.INSTALLED, STAMP)
    assert made is not None
    assert made.spec.liveness.timeout.seconds == 60
    running = wanted.switched_instance(content(), KEY, None, STAMP)
    assert running is not None
    after = wanted.switched_instance(timed, KEY, of(running), STAMP)
    assert after is not None
    assert (after.spec.liveness.report_interval.seconds, after.spec.revision) == (20, running.spec.revision)


def test_preparing_changes_neither_labels_nor_the_revision_that_runs() -> None:
    running = instance_pb2.Instance()
    running.meta.id, running.meta.service_id = "web-1", "web"
    running.spec.revision.add(id="old", target=wanted.READY)
    after = wanted.with_revision(content(), KEY, of(running), wanted.INSTALLED, STAMP)
    assert after is not None
    assert not after.spec.allocation.host
    assert wanted.target_of(after, "old") == wanted.READY


@pytest.mark.parametrize(
    ("before", "after", "restarts"),
    [
        (b"node: n1", b"node: n1, labels: {tier: gold}", False),
        (
            b"resources: {ports: [http]}",
            b"resources: {ports: [http]}\nliveness: {reportInterval: 20s, timeout: 60s}",
            False,
        ),
        (b"http: 81", b"http: 82", True),
        (b"node: n1", b"node: n3", True),
        (b"host: h1", b"host: h1, memoryBytes: 1000", True),
        (b"command: [run]", b"command: [other]", True),
    ],
)
def test_only_changes_of_host_ports_disks_limits_node_or_revision_restart_an_instance(
    before: bytes, after: bytes, restarts: bool
) -> None:
    running = wanted.switched_instance(content(), KEY, None, STAMP)
    assert running is not None
    assert not wanted.switch_restarts(content(), KEY, of(running))
    assert wanted.switch_restarts(content(GOOD.replace(before, after)), KEY, of(running)) is restarts


def test_a_switch_makes_the_revision_ready_and_happens_once() -> None:
    running = instance_pb2.Instance()
    running.meta.id, running.meta.service_id = "web-1", "web"
    running.spec.revision.add(id="old", target=wanted.READY)
    after = wanted.switched_instance(content(), KEY, of(running), STAMP)
    assert after is not None
    assert wanted.target_of(after, "old") == wanted.INSTALLED
    assert wanted.target_of(after, content().revision_id) == wanted.READY
    assert wanted.switched_instance(content(), KEY, of(after), STAMP) is None


def test_lowering_the_target_of_a_revision_never_raises_it() -> None:
    made = wanted.with_revision(content(), KEY, None, wanted.INSTALLED, STAMP)
    assert wanted.lowered_instance(content().revision_id, of(made), wanted.INSTALLED, STAMP) is None
    gone = wanted.lowered_instance(content().revision_id, of(made), None, STAMP)
    assert gone is not None
    assert not gone.spec.revision


def test_the_direct_commands_do_not_touch_what_the_nanny_server_owns() -> None:
    made = wanted.with_revision(content(), KEY, None, wanted.INSTALLED, STAMP)
    action = UploadIntent(content().description, content().placements.values()).action("web-1", of(made))
    assert action.kind is PlannedKind.REFUSED
    assert "belongs to the Nanny server" in action.note


def test_the_example_of_the_guide_is_a_snapshot() -> None:
    text = (Path(__file__).resolve().parents[2] / "examples/nanny/site.yaml").read_bytes()
    without_ready = b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"ready:"))
    assert len(read_content("site", without_ready, ["default"]).placements) == 3
