"""The metrics of a replica, in one table. docs/metrics.md is made from it (`make proto` beside the API's)."""

from __future__ import annotations

from typing import Final

from hq.replica import Replica
from serving.storage.measured import MeasuredStore
from serving.telemetry.metrics import Declared, Histogram
from store.commit import MAX_WRITES

GROUP_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, MAX_WRITES)
_PEER_S: Final = 30.0  # a live replica sends a fence every few seconds


class ReplicaMetrics:
    """A replica, its measured store, and the sizes of its transactions, in writes."""

    def __init__(self, replica: Replica, store: MeasuredStore) -> None:
        self.replica, self.store = replica, store
        self.group_sizes = Histogram(GROUP_SIZES)
        replica.committer.grouped = self.group_sizes.add


def _staleness_s(r: Replica) -> float:
    staleness_s = r.fence.staleness_s()
    return float("inf") if staleness_s is None else staleness_s


def _age_s(r: Replica, at: float | None) -> float:
    return float("inf") if at is None else r.clock.now() - at


def _peers(r: Replica) -> int:
    since = r.clock.now() - _PEER_S
    return sum(seen_at >= since for seen_at in r.events.peers.values())


D = Declared[ReplicaMetrics]

CACHE: Final = (
    D("gauge", "hq_instances", "Instances in memory.", lambda s: len(s.replica.cache)),
    D("gauge", "hq_nodes", "Nodes that hold instances.", lambda s: s.replica.cache.nodes()),
    D("gauge", "hq_loaded", "1 if the replica can serve reads.", lambda s: float(s.replica.loading.loaded.is_set())),
    D("gauge", "hq_version", "Version up to which memory contains every change.", lambda s: s.replica.cache.version),
    D(
        "gauge",
        "hq_version_lag",
        "How many versions memory is behind the newest one reported by the store.",
        lambda s: max(0, s.store.head - s.replica.cache.version),
    ),
    D(
        "gauge",
        "hq_staleness_seconds",
        "Upper bound of how long changes may have been missed; +Inf: memory was never proven fresh.",
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
        "1 if the store was replaced and holds far less, or agents report instances that it does not have.",
        lambda s: float(bool(s.replica.loading.loaded.is_set() and s.replica.trust.standing().doubt())),
    ),
    D(
        "gauge",
        "hq_unknown_reported",
        "Instances that agents keep reporting although the store does not have them.",
        lambda s: s.replica.trust.unknown_reported(),
    ),
    D("gauge", "hq_replicas", "Replicas seen within the last 30 s, including this one.", lambda s: _peers(s.replica)),
    D("gauge", "hq_watchers", "Open watches.", lambda s: len(s.replica.fanout)),
    D(
        "gauge",
        "hq_watch_backlog_bytes",
        "Bytes waiting in memory for all watchers, limited by --watch-buffer.",
        lambda s: s.replica.fanout.backlog.size_bytes,
    ),
    D("gauge", "hq_history_versions", "Versions that a watch can resume from.", lambda s: len(s.replica.history)),
    D(
        "counter",
        "hq_resyncs_total",
        "Watches that lost continuity and had to resync.",
        lambda s: s.replica.fanout.resyncs,
    ),
)
LIVENESS: Final = (
    D(
        "gauge",
        "hq_ready_revisions",
        "Revisions that are ready and have a deadline.",
        lambda s: len(s.replica.tracker.deadlines),
    ),
    D(
        "counter",
        "hq_expiries_total",
        "Revisions that expired (marked not ready for silence), by any replica.",
        lambda s: s.replica.tracker.expiries,
    ),
    D(
        "counter",
        "hq_recoveries_total",
        "Expired revisions that reported ready again.",
        lambda s: s.replica.tracker.recoveries,
    ),
    D(
        "counter",
        "hq_agents_silenced_total",
        "Agents judged silent (status.agent FALSE), by any replica.",
        lambda s: s.replica.tracker.agents_silenced,
    ),
    D(
        "gauge",
        "hq_guard_holding",
        "1 while the guard holds expiries.",
        lambda s: float(s.replica.liveness.sweep.verdict.hold),
    ),
    D("gauge", "hq_guard_waiting_expiries", "Expiries held by the guard.", lambda s: s.replica.liveness.sweep.waiting),
    D(
        "gauge",
        "hq_suspended_nodes",
        "Nodes under planned work (suspended).",
        lambda s: len(s.replica.liveness.orders.suspensions()),
    ),
    D(
        "counter",
        "hq_gaps_total",
        "Times that this replica could not receive reports, so that deadlines were extended.",
        lambda s: s.replica.liveness.reachability.gaps,
    ),
    D(
        "counter",
        "hq_reports_refused_total",
        "Reports that this replica refused for its own reasons; they do not count as silence.",
        lambda s: {(reason,): count for reason, count in s.replica.liveness.refusals.counted.items()},
        ("reason",),
    ),
    D(
        "gauge",
        "hq_agents_shut_out",
        "1 while no reports can come in; 2 once this has lasted too long to excuse silence.",
        lambda s: s.replica.liveness.reachability.door.is_shut + 2 * s.replica.liveness.reachability.door.is_spent,
    ),
    D("counter", "hq_heartbeats_sent_total", "Heartbeats stored by this replica.", lambda s: s.replica.heartbeats.sent),
    D(
        "counter",
        "hq_heartbeats_heard_total",
        "Current heartbeats, of any replica.",
        lambda s: s.replica.heartbeats.heard,
    ),
    D(
        "counter",
        "hq_heartbeats_outdated_total",
        "Heartbeats for a status that was no longer current.",
        lambda s: s.replica.heartbeats.outdated,
    ),
    D(
        "counter",
        "hq_heartbeat_flushes_total",
        "Heartbeat batches stored by this replica.",
        lambda s: s.replica.heartbeats.flushes,
    ),
)
STORE: Final = (
    D(
        "counter",
        "hq_store_calls_total",
        "Finished calls to etcd, and ended watches.",
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
        lambda s: s.group_sizes,
    ),
    D("counter", "hq_commit_writes_total", "Writes that were stored.", lambda s: s.replica.committer.writes),
    D(
        "counter",
        "hq_commit_unknown_total",
        "Transactions without a response, whose outcome had to be determined.",
        lambda s: s.replica.committer.unknown,
    ),
    D(
        "counter",
        "hq_watch_restarts_total",
        "Times the watch on etcd was reopened.",
        lambda s: s.replica.follower.restarts,
    ),
    D(
        "counter",
        "hq_compactions_total",
        "Compactions of etcd's history by this replica.",
        lambda s: s.replica.compactor.compactions,
    ),
    D(
        "counter",
        "hq_store_repairs_total",
        "Records in memory that differed from the store and were mended.",
        lambda s: s.replica.proof.mended,
    ),
    D(
        "gauge",
        "hq_memory_compared_seconds",
        "Time since all records in memory were last compared with the store; +Inf: not yet.",
        lambda s: _age_s(s.replica, s.replica.proof.compared_at),
    ),
    D("gauge", "hq_store_keys", "Keys below the prefix.", lambda s: s.replica.follower.key_count),
    D(
        "gauge",
        "hq_store_file_fault",
        "1 if changed TLS files for etcd could not be loaded and the previous contents remain in force.",
        lambda s: float(bool(s.store.files_fault)),
    ),
    D(
        "gauge",
        "hq_store_bytes",
        "Approximate size of all instance records in the store.",
        lambda s: s.replica.cache.stored_bytes,
    ),
    D(
        "gauge",
        "hq_store_max_bytes",
        "Limit of hq_store_bytes at which writes that add data are refused; 0: no limit.",
        lambda s: s.replica.config.max_store_bytes,
    ),
    D("gauge", "hq_store_full", "1 if etcd has no space left.", lambda s: float(s.replica.fence.store_is_full)),
)
METRICS: Final = (*CACHE, *LIVENESS, *STORE)
