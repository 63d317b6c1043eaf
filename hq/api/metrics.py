"""What Prometheus sees of a replica, in one table. docs/metrics.md is made from it (`make proto` beside the API's)."""

from __future__ import annotations

from typing import Final, NamedTuple

from hq.replica import Replica
from hq.store.measured import MeasuredStore
from serving.telemetry.metrics import Declared

_PEER_S: Final = 30.0  # a live replica sends a fence every few seconds


class Subject(NamedTuple):
    """A replica and the store as it asks it."""

    replica: Replica
    store: MeasuredStore


def _staleness_s(r: Replica) -> float:
    staleness_s = r.fence.staleness_s()
    return float("inf") if staleness_s is None else staleness_s


def _peers(r: Replica) -> int:
    since = r.clock.now() - _PEER_S
    return sum(seen_at >= since for seen_at in r.peers.values())


D = Declared[Subject]

CACHE: Final = (
    D("gauge", "hq_instances", "Instances in memory.", lambda s: len(s.replica.cache)),
    D("gauge", "hq_nodes", "Nodes that hold instances.", lambda s: s.replica.cache.nodes()),
    D("gauge", "hq_loaded", "1 if reads can be served.", lambda s: float(s.replica.loaded.is_set())),
    D("gauge", "hq_version", "Version up to which memory has every change.", lambda s: s.replica.cache.version),
    D(
        "gauge",
        "hq_version_lag",
        "Versions by which memory was behind the newest one that the store told.",
        lambda s: max(0, s.store.head - s.replica.cache.version),
    ),
    D(
        "gauge",
        "hq_staleness_seconds",
        "For how long at most changes may have been missed; +Inf: memory was never proven fresh.",
        lambda s: _staleness_s(s.replica),
    ),
    D(
        "gauge",
        "hq_quarantined_records",
        "Records in the store that cannot be decoded.",
        lambda s: len(s.replica.cache.quarantine),
    ),
    D(
        "gauge",
        "hq_epoch_doubted",
        "1 if the store became another one that holds far less, or agents report what it does not know.",
        lambda s: float(bool(s.replica.loaded.is_set() and s.replica.standing().doubt())),
    ),
    D(
        "gauge",
        "hq_unknown_reported",
        "Instances that agents go on reporting although the store does not know them.",
        lambda s: s.replica.standing().strangers,
    ),
    D("gauge", "hq_replicas", "Replicas heard of within the last 30 s, with this one.", lambda s: _peers(s.replica)),
    D("gauge", "hq_watchers", "Open watches.", lambda s: len(s.replica.fanout)),
    D(
        "gauge",
        "hq_watch_backlog_bytes",
        "What waits in memory for all watchers together, of --watch-buffer.",
        lambda s: s.replica.fanout.backlog.size_bytes,
    ),
    D("gauge", "hq_history_versions", "Versions that a watch can resume from.", lambda s: len(s.replica.history)),
    D("counter", "hq_resyncs_total", "Watches told that continuity is lost.", lambda s: s.replica.fanout.resyncs),
)
LIVENESS: Final = (
    D(
        "gauge",
        "hq_ready_revisions",
        "Revisions that are ready and have a deadline.",
        lambda s: len(s.replica.watchman.tracker.deadlines),
    ),
    D(
        "counter",
        "hq_flips_total",
        "Revisions made not ready for silence, by any replica.",
        lambda s: s.replica.watchman.tracker.flips,
    ),
    D(
        "counter",
        "hq_recoveries_total",
        "Flipped revisions that reported ready again.",
        lambda s: s.replica.watchman.tracker.recoveries,
    ),
    D("gauge", "hq_guard_holding", "1 while flips are held.", lambda s: float(s.replica.watchman.sweep.verdict.hold)),
    D("gauge", "hq_guard_waiting_flips", "Flips that are held.", lambda s: s.replica.watchman.sweep.waiting),
    D(
        "gauge",
        "hq_suspended_nodes",
        "Nodes under planned work.",
        lambda s: len(s.replica.watchman.orders.suspensions()),
    ),
    D(
        "counter",
        "hq_gaps_total",
        "Times that this replica was not there to hear, so that deadlines moved.",
        lambda s: s.replica.watchman.presence.gaps,
    ),
    D(
        "counter",
        "hq_reports_refused_total",
        "Reports that this replica refused for reasons of its own, which is not silence.",
        lambda s: {(reason,): count for reason, count in s.replica.watchman.refusals.counted.items()},
        ("reason",),
    ),
    D(
        "gauge",
        "hq_agents_shut_out",
        "1 while reports cannot come in at all; 2 for longer than that excuses silence.",
        lambda s: s.replica.watchman.presence.door.is_shut + 2 * s.replica.watchman.presence.door.is_spent,
    ),
    D("counter", "hq_beats_sent_total", "Beats that this replica stored.", lambda s: s.replica.beats.sent),
    D("counter", "hq_beats_heard_total", "Current beats, of any replica.", lambda s: s.replica.beats.heard),
    D(
        "counter",
        "hq_beats_outdated_total",
        "Beats of a status that was no longer current.",
        lambda s: s.replica.beats.outdated,
    ),
    D(
        "counter",
        "hq_beat_flushes_total",
        "Batches of beats that this replica stored.",
        lambda s: s.replica.beats.flushes,
    ),
)
STORE: Final = (
    D(
        "counter",
        "hq_store_calls_total",
        "Calls to etcd that ended, and ends of watches.",
        lambda s: s.store.calls,
        ("method", "outcome"),
    ),
    D(
        "histogram",
        "hq_store_call_seconds",
        "How long successful calls to etcd took.",
        lambda s: s.store.seconds,
        ("method",),
    ),
    D(
        "histogram",
        "hq_commit_group_size",
        "Writes that shared one transaction.",
        lambda s: s.replica.committer.group_sizes,
    ),
    D("counter", "hq_commit_writes_total", "Writes that were stored.", lambda s: s.replica.committer.writes),
    D(
        "counter",
        "hq_commit_unknown_total",
        "Transactions without an answer, whose outcome had to be settled.",
        lambda s: s.replica.committer.unknown,
    ),
    D(
        "counter",
        "hq_watch_restarts_total",
        "Times the watch on etcd was opened again.",
        lambda s: s.replica.follower.restarts,
    ),
    D(
        "counter",
        "hq_compactions_total",
        "Compactions of etcd's history by this replica.",
        lambda s: s.replica.compactor.compactions,
    ),
    D("gauge", "hq_store_keys", "Keys below the prefix.", lambda s: s.replica.follower.key_count),
    D(
        "gauge",
        "hq_store_file_fault",
        "1 if the files for TLS with etcd are not in force as they are now: what they said before is.",
        lambda s: float(bool(s.store.files_fault)),
    ),
    D(
        "gauge",
        "hq_store_bytes",
        "What the records of all instances take in the store, roughly.",
        lambda s: s.replica.cache.stored_bytes,
    ),
    D(
        "gauge",
        "hq_store_max_bytes",
        "At so many hq_store_bytes what adds more is refused; 0: never.",
        lambda s: s.replica.config.max_store_bytes,
    ),
    D("gauge", "hq_store_full", "1 if etcd has no space left.", lambda s: float(s.replica.fence.store_is_full)),
)
METRICS: Final = (*CACHE, *LIVENESS, *STORE)
