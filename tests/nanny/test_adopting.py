"""A service that runs already becomes a snapshot that says just what HQ holds."""

from __future__ import annotations

import pytest

from hqpb.v1.instance_pb2 import Instance
from nanny.records import kinds
from nanny.records.handler import handle
from nanny.snapshots.adopting import adopted_content
from nanny.snapshots.wanted import INSTALLED, OWNER, READY
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import Adoption, ServiceEvent, SnapshotRecord
from serving.errors import InvalidRequest
from tests.nanny.orders import Dictionary


def instance(name: str, revision: str = "r1", target: int = READY, command: str = "serve") -> Instance:
    made = Instance()
    made.meta.id, made.meta.service_id, made.meta.version = name, "web", 7
    made.meta.labels["zone"] = "a"
    made.spec.node_name = f"node-{name}"
    made.spec.allocation.host = "10.0.0.1"
    made.spec.allocation.port.add(name="http", number=80)
    made.spec.revision.add(id="r0", target=INSTALLED)
    made.spec.revision.add(id=revision, target=target).container.add(name="main", command=[command])
    return made


def all_of(*instances: Instance) -> dict[tuple[str, str], Instance]:
    return {("ams", one.meta.id): one for one in instances}


def refused(*instances: Instance) -> str:
    with pytest.raises(InvalidRequest) as caught:
        adopted_content("web", all_of(*instances))
    return str(caught.value)


def test_the_snapshot_has_the_id_of_the_revision_and_would_change_nothing() -> None:
    content, text = adopted_content("web", all_of(instance("web-0"), instance("web-1")))
    assert content.id == "r1"
    assert set(content.placements) == {("ams", "web-0"), ("ams", "web-1")}
    assert b"secretCount" not in text


def test_times_that_all_instances_have_are_in_the_snapshot() -> None:
    timed, untimed = instance("web-0"), instance("web-1")
    timed.spec.liveness.timeout.FromSeconds(60)
    timed.spec.liveness.report_interval.FromSeconds(20)
    assert adopted_content("web", all_of(timed))[0].description.liveness == timed.spec.liveness
    assert adopted_content("web", all_of(timed, untimed))[0].description.liveness is None


def test_a_service_whose_instances_differ_is_refused_with_every_one_that_is_unlike() -> None:
    odd = [instance("b", target=INSTALLED), instance("c", "r2"), instance("d", command="other"), instance("e")]
    odd[3].meta.annotations[OWNER] = "4"
    said = refused(instance("a"), *odd)
    for words in (
        "b (ams) has no READY",
        "c (ams) runs r2",
        "d (ams) has different content",
        "e (ams) is already managed by a Nanny",
    ):
        assert words in said
    assert "a (ams)" not in said


def test_a_service_without_instances_is_refused() -> None:
    assert "holds no instance" in refused()


def test_an_adopted_snapshot_has_the_authenticated_author_whatever_the_request_says() -> None:
    change, snapshot = Dictionary(), pb.Snapshot(id="r1", created=pb.Authorship(author="ops/ada"))
    event = ServiceEvent(adopted=Adoption(snapshot=SnapshotRecord(snapshot=snapshot)))
    event.by.author, event.by.ticket = "uploader-of-web", "T-1"
    handle(change, "web", event)  # type: ignore[arg-type]
    stored = change.get(kinds.SNAPSHOT, kinds.of_snapshot("web", "r1")).snapshot.created
    assert (stored.author, stored.ticket, stored.comment) == ("uploader-of-web", "T-1", "adopted as it ran")
