"""What Prometheus sees of a replica: read from its parts at each scrape, which costs the hot paths nothing."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hq.replica import Replica


class ReplicaCollector(Collector):
    """All metrics of one replica. Names follow Prometheus' conventions: base units, `_total` for counters."""

    def __init__(self, replica: Replica) -> None:
        self._r = replica

    def collect(self) -> Iterable[Metric]:
        yield from self._cache()
        yield from self._liveness()
        yield from self._store()

    def _cache(self) -> Iterable[Metric]:
        r, staleness_s = self._r, self._r.fence.staleness_s()
        yield _gauge("hq_instances", "Instances in memory.", len(r.cache))
        yield _gauge("hq_version", "Version up to which the cache has every change.", r.cache.version)
        yield _gauge("hq_loaded", "1 if reads can be served.", float(r.loaded.is_set()))
        yield _gauge(
            "hq_staleness_seconds",
            "For how long at most changes may have been missed; +Inf if the cache was never proven fresh.",
            float("inf") if staleness_s is None else staleness_s,
        )
        yield _gauge("hq_quarantined_records", "Records that could not be decoded.", len(r.cache.quarantine))
        yield _gauge("hq_watchers", "Open watches.", len(r.fanout))
        yield _gauge("hq_history_steps", "Versions that a watch can resume from.", len(r.history))
        yield _counter("hq_resyncs", "Watches that lost continuity and ended so.", r.fanout.resyncs)

    def _liveness(self) -> Iterable[Metric]:
        tracker, sweep, beats = self._r.watchman.tracker, self._r.watchman.sweep, self._r.beats
        yield _gauge("hq_ready_revisions", "Revisions with a running deadline.", len(tracker.deadlines))
        yield _counter("hq_flips", "Revisions made not ready for silence, by any replica.", tracker.flips)
        yield _counter("hq_recoveries", "Flipped revisions that became ready again.", tracker.recoveries)
        yield _gauge("hq_guard_holding", "1 while flips are held back.", float(sweep.verdict.hold))
        yield _gauge("hq_guard_waiting_flips", "Flips that wait for the guard.", sweep.waiting)
        yield _counter("hq_gaps", "Times that this replica was not there to hear.", self._r.watchman.presence.gaps)
        yield _counter("hq_beats_sent", "Beats that this replica wrote.", beats.sent)
        yield _counter("hq_beats_heard", "Current beats that came through the watch.", beats.heard)
        yield _counter("hq_beats_outdated", "Beats of a status that was no longer current.", beats.outdated)
        yield _counter("hq_beat_flushes", "Batches of beats that this replica wrote.", beats.flushes)

    def _store(self) -> Iterable[Metric]:
        committer, follower = self._r.committer, self._r.follower
        yield _counter("hq_commit_groups", "Transactions of group commit.", committer.groups)
        yield _counter("hq_commit_writes", "Writes that took place in them.", committer.writes)
        yield _counter("hq_commit_unknown", "Transactions whose outcome had to be settled.", committer.unknown)
        yield _counter("hq_watch_restarts", "Times the watch on the store was opened again.", follower.restarts)
        yield _counter("hq_compactions", "Compactions by this replica.", self._r.compactor.compactions)
        yield _gauge("hq_store_keys", "Keys below the prefix.", follower.key_count)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)
