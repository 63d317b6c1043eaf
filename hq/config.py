"""Settings of one replica, with their defaults. Flags and environment variables are made from them in `options.py`."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """The settings of a replica.

    Attributes:
        cluster: name of the installation; becomes meta.cluster.
        replica: name of this process, unique among all there ever were.
        prefix: of all keys in the store.
        liveness_timeout_s: this much silence makes a revision not ready.
        report_interval_s: how often agents are told to report.
        heartbeat_batches_per_s: batches of heartbeats, at most; from 5,000 heartbeats a second on there are five.
        guard_share: more than this share of silent revisions makes the guard hold.
        stale_after_s: answers say that they are stale when the cache was not proven fresh for this long.
        history_bytes: of changes kept for watches to resume from.
        watch_buffer_bytes: how much all watchers together may leave unread; a single one is cut off at a sixteenth.
        page_bytes: the most that one answer of FindInstances holds.
        json_bytes: of instances kept as JSON.
        max_store_bytes: of live records, beyond which none may be added; 0: no limit. (etcd's default quota: 2 GiB.)
        compact_every_s: how often the store's history is compacted; 0: never by HQ.
        checkpoint: file for what memory holds at an orderly stop, so that the next start is fast; empty: none.
        write_timeout_s: how long a write may take if the caller sets no deadline.
    """

    cluster: str = "default"
    replica: str = "replica"
    prefix: str = "/hq/v1/"
    liveness_timeout_s: float = 600.0
    report_interval_s: float = 180.0
    heartbeat_batches_per_s: float = 50.0
    guard_share: float = 0.2
    stale_after_s: float = 8.0
    history_bytes: int = 128 * MIB
    watch_buffer_bytes: int = 256 * MIB
    page_bytes: int = 3 * MIB
    json_bytes: int = 64 * MIB
    max_store_bytes: int = 1536 * MIB
    compact_every_s: float = 300.0
    checkpoint: str = ""
    write_timeout_s: float = 10.0
