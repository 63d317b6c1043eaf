"""What hqctl status finds wrong, and what it advises."""

from __future__ import annotations

from hqctl.output.findings import Facts, Finding, Reached, findings
from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb

NOW_S = 1_700_000_000.0


def source(**fields: object) -> pb.Source:
    return pb.Source(**{"cluster": "east", "replica": "hq-1", "epoch": "e1", **fields})  # type: ignore[arg-type]


def facts(**fields: object) -> Facts:
    counts = [pb.InstanceCount(key="web", total=3, ready=3)]
    healthy = {"reached": [Reached("a:1", (source(),))], "counts": counts, "guard": pb.GuardState()}
    return Facts(**{**healthy, **fields})  # type: ignore[arg-type]


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


def test_without_problems_there_are_no_findings() -> None:
    members = [admin_pb2.StoreMember(endpoint="e1:2379", leader=True)]
    assert findings(facts(members=members), NOW_S) == []


def test_a_silent_server_is_severe_and_its_address_is_named_once() -> None:
    reached = [Reached("a:1", (source(),)), Reached("b:1", error="cannot connect to b:1 (refused)")]
    found = only(findings(facts(reached=reached), NOW_S))
    assert found.severe
    assert found.what == "b:1 does not respond: cannot connect (refused)."
    assert found.next.startswith("The others keep serving")


def test_a_stale_replica_says_since_when_and_why() -> None:
    stale = source(stale=True, error="no etcd member answers")
    stale.staleness.FromSeconds(42)
    found = only(findings(facts(reached=[Reached("a:1", (stale,))]), NOW_S))
    assert found.what == "replica hq-1 is stale for 42s: no etcd member answers."


def test_a_location_that_does_not_answer_the_gateway_is_severe() -> None:
    missing = pb.Source(cluster="west", error="no replica accepts connections")
    found = only(findings(facts(reached=[Reached("f:1", (source(), missing))], refused="a gateway"), NOW_S))
    assert found.what.startswith("west did not respond to the gateway: no replica accepts connections.")


def test_replicas_of_different_epochs_are_severe() -> None:
    reached = [Reached("a:1", (source(),)), Reached("b:1", (source(replica="hq-2", epoch="e2"),))]
    assert "different epochs" in only(findings(facts(reached=reached), NOW_S)).what


def test_each_location_of_a_gateway_has_an_epoch_of_its_own() -> None:
    reached = [Reached("f:1", (source(), source(cluster="west", epoch="e2")))]
    assert findings(facts(reached=reached, refused="a gateway"), NOW_S) == []


def members(broken: int, count: int) -> list[admin_pb2.StoreMember]:
    return [
        admin_pb2.StoreMember(
            endpoint=f"e{n}:2379", leader=n == count - 1, error="connection refused" if n < broken else ""
        )
        for n in range(count)
    ]


def test_lost_members_are_shown_with_how_many_more_may_be_lost() -> None:
    assert "1 more loss can be tolerated" in only(findings(facts(members=members(1, 5)), NOW_S)).next
    assert "one more loss stops all writes" in findings(facts(members=members(2, 5)), NOW_S)[0].next
    assert "reaches no majority" in findings(facts(members=members(3, 5)), NOW_S)[0].next


def test_a_store_without_its_leader_among_the_members_reached_is_severe() -> None:
    assert "is the leader" in only(findings(facts(members=[admin_pb2.StoreMember()]), NOW_S)).what


def test_a_holding_guard_says_since_when_why_and_until() -> None:
    guard = pb.GuardState(holding=True, waiting=7, verdict="holding: 7 of 33 revisions silent, over 20%")
    guard.since.FromSeconds(int(NOW_S) - 18)
    guard.until.FromSeconds(int(NOW_S) + 41)
    found = only(findings(facts(guard=guard), NOW_S))
    assert found.severe
    assert "holds 7 expiries since" in found.what
    assert "(18s ago): 7 of 33 revisions silent, over 20%." in found.what
    assert found.next.endswith("else it ends by itself in 41s at the latest.")


def test_an_order_to_the_guard_is_mentioned_but_not_severe() -> None:
    guard = pb.GuardState(holding=True, verdict="held by an operator's order")
    guard.override.kind, guard.override.by = pb.GUARD_OVERRIDE_KIND_FORCE, "ada"
    found = only(findings(facts(guard=guard), NOW_S))
    assert not found.severe
    assert "forced to hold all expiries" in found.what


def test_a_replica_that_stopped_lately_is_mentioned_unlike_one_long_gone() -> None:
    peers = [admin_pb2.ReplicaInfo(replica=name) for name in ("lately", "long-gone", "alive")]
    for peer, silent_s in zip(peers, (100, 4000, 2), strict=True):
        peer.silent_for.FromSeconds(silent_s)
    assert "replica lately has been silent for 1m40s" in only(findings(facts(replicas=peers), NOW_S)).what


def test_severe_findings_come_first() -> None:
    counts = [pb.InstanceCount(key="web", total=10, ready=8)]
    found = findings(facts(counts=counts, records=[admin_pb2.QuarantinedRecord(key="spec/web-1")]), NOW_S)
    assert [one.severe for one in found] == [True, False]
    assert "spec/web-1" in found[0].what
    assert "2 of 10 instances not ready" in found[1].what


def test_many_not_ready_are_severe_and_the_worst_services_are_named_first() -> None:
    counts = [
        pb.InstanceCount(key="api", total=500, ready=294, unknown=100),
        pb.InstanceCount(key="db", total=10, ready=0),
        pb.InstanceCount(key="mail", total=5, ready=0),
        pb.InstanceCount(key="ok", total=100, ready=100),
        pb.InstanceCount(key="web", total=2000, ready=0, unknown=21),
        pb.InstanceCount(key="x", total=1, ready=0),
    ]
    found = only(findings(facts(counts=counts), NOW_S))
    assert found.severe
    assert found.what == (
        "2222 of 2616 instances not ready (121 of them never reported): "
        "web 2000 of 2000, api 206 of 500, db 10 of 10, and 2 more services."
    )


def test_stopped_instances_are_no_finding() -> None:
    stopped = pb.InstanceCount(key="old", total=90, not_wanted=90)
    counts = [stopped, pb.InstanceCount(key="web", total=20, ready=17, not_wanted=1)]
    found = only(findings(facts(counts=counts), NOW_S))
    assert not found.severe
    assert found.what == "2 of 110 instances not ready: web 2 of 20."
    assert findings(facts(counts=[stopped]), NOW_S) == []


def test_a_full_etcd_is_not_called_lost_and_needs_more_than_compaction() -> None:
    full = admin_pb2.StoreMember(
        endpoint="e1:2379",
        version="3.5.9",
        leader=True,
        full=True,
        db_size_bytes=2 << 30,
        db_size_in_use_bytes=2 << 30,
    )
    found = only(findings(facts(members=[full]), NOW_S))
    assert found.severe
    assert found.what.startswith("etcd is full (2.0GiB, 2.0GiB of that in use): nothing can be written")
    steps = ("raise --quota-backend-bytes", "compact", "defrag", "alarm disarm")
    assert sorted(steps, key=found.next.index) == list(steps)


def test_a_store_is_reported_before_it_is_full() -> None:
    filling = admin_pb2.StoreMember(version="3.6.1", leader=True, db_size_bytes=900, quota_bytes=1000)
    assert only(findings(facts(members=[filling]), NOW_S)).what.startswith("etcd is filling (900B, ")
    assert (
        "900B of the 1000B that HQ allows" in only(findings(facts(store_bytes=900, max_store_bytes=1000), NOW_S)).what
    )
    assert findings(facts(store_bytes=700, max_store_bytes=1000), NOW_S) == []


def test_a_member_that_answers_with_an_alarm_is_not_lost() -> None:
    corrupt = admin_pb2.StoreMember(endpoint="e1:2379", version="3.5.9", leader=True, error="alarm:CORRUPT")
    assert "lost" not in only(findings(facts(members=[corrupt]), NOW_S)).next


def test_an_old_etcd_a_mended_memory_and_foreign_compaction_are_remarks() -> None:
    members = [admin_pb2.StoreMember(endpoint="e1:2379", leader=True, version="3.4.23", advice="etcd 3.4.23 is old")]
    proofs = {"hq-1": admin_pb2.MemoryProof(), "hq-2": admin_pb2.MemoryProof(mended=2)}
    for address, ago_s in (("hq-1", 120), ("hq-2", 90)):
        proofs[address].foreign_compaction_ago.FromSeconds(ago_s)
    found = findings(facts(members=members, proofs=proofs), NOW_S)
    assert [one.what.split(":")[0] for one in found] == [
        "etcd 3.4.23 is old.",
        "the memory of the replica at hq-2 differed from etcd in 2 records, and was mended; its log names them.",
        "somebody other than HQ compacts etcd's history (noticed 1m30s ago).",
    ]
    assert not any(one.severe for one in found)
