"""Computes the needs of a location for a workload, and how many locations and replicas that takes.

Linear on purpose: each term is one measured cost times one rate, so that everybody can check it with a pencil. The one
exception is waking up: a call that finds a replica idle costs `wake_s` more, and a busy replica is seldom idle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hq.sizing.costs import MeasuredCosts

BUSY = 0.7  # of a core: beyond that, waiting takes over
MAX_CONNECTIONS = 50_000  # of a replica, with a watch each: as many were measured
MAX_ETCD_BYTES = 8 << 30  # what etcd advises
NETWORK_BYTES_PER_S = 125e6  # 1 Gbit/s
_MAX_MEMORY_BYTES = 64 << 30
_MAX_START_S = 600.0
_FENCES_PER_S = 1 / 3  # a replica that nobody asks puts one every 3 s
_FLUSHES_PER_S = 5.0  # batches of heartbeats per replica at most
_FORWARDED = 0.1  # share of a gateway's lookups that ask for services too rare to be followed
_HISTORY_S = 600.0  # etcd keeps up to two spans between compactions
_MIN_REPLICAS, _MAX_REPLICAS, _MAX_LOCATIONS = 3, 9, 100


@dataclass(frozen=True, slots=True)
class Workload:
    """The load of an installation. Rates are of all replicas and locations together, per second."""

    instances: int = 1_000_000
    services: int = 10_000
    lookups: float = 1_000.0  # each of one service
    watchers: int = 1_000  # each of one service
    changes: float = 20.0  # status changes
    report_interval_s: float = 180.0  # every instance heartbeats so often
    per_node: int = 20  # instances behind one host agent, with one connection and one watch; 1: there are none
    secured: bool = True  # TLS and tokens
    replicas: int = 3  # of each location
    locations: int = 1  # alike; a gateway asks all of them

    @property
    def heartbeats(self) -> float:
        return self.instances / self.report_interval_s

    @property
    def per_service(self) -> float:
        return self.instances / max(1, self.services)

    def of_location(self) -> Workload:
        """Return the part of one location. A gateway answers most lookups from the lists that it follows."""
        n = self.locations
        return replace(
            self,
            instances=self.instances // n,
            lookups=self.lookups * (_FORWARDED if n > 1 else 1.0),
            watchers=self.watchers // n,
            changes=self.changes / n,
            locations=1,
        )


@dataclass(frozen=True, slots=True)
class LocationNeed:
    """The needs of one location."""

    cores_per_replica: float
    memory_bytes_per_replica: float
    start_s: float
    restart_s: float  # with a checkpoint
    network_bytes_per_s_per_replica: float
    etcd_transactions_per_s: float
    etcd_bytes_per_s: float
    etcd_database_bytes: float
    connections_per_replica: float  # each with a watch

    def shares(self) -> dict[str, float]:
        """How much of each limit is used, by what it limits."""
        return {
            "one core per replica": self.cores_per_replica / BUSY,
            "64 GiB of memory per replica": self.memory_bytes_per_replica / _MAX_MEMORY_BYTES,
            "8 GiB of etcd's database": self.etcd_database_bytes / MAX_ETCD_BYTES,
            "ten minutes to start a replica": self.start_s / _MAX_START_S,
            f"{MAX_CONNECTIONS:,} connections per replica": self.connections_per_replica / MAX_CONNECTIONS,
            "1 Gbit/s per replica": self.network_bytes_per_s_per_replica / (BUSY * NETWORK_BYTES_PER_S),
        }

    def first_limit(self) -> tuple[str, float]:
        """Return the resource that runs out first, and how much of it is used."""
        shares = self.shares()
        worst = max(shares, key=lambda name: shares[name])
        return worst, shares[worst]


def location_need(costs: MeasuredCosts, workload: Workload) -> LocationNeed:
    """Return the needs of each location for its part of the workload, while all its replicas run."""
    part, n = workload.of_location(), max(1, workload.replicas)
    connections = (part.instances / part.per_node + part.watchers) / n
    events = part.changes * part.watchers / max(1, part.services)  # every watcher of the service that changes
    written = part.heartbeats * costs.etcd_heartbeat_bytes + part.changes * costs.etcd_change_bytes
    sent = (part.lookups * part.per_service + events) / n * costs.frame_bytes
    watch_bytes = costs.secured_watch_bytes if part.secured else costs.watch_bytes
    return LocationNeed(
        cores_per_replica=_cores(costs, part, connections, events),
        memory_bytes_per_replica=costs.base_bytes + part.instances * costs.instance_bytes + connections * watch_bytes,
        start_s=costs.start_s + part.instances * costs.start_each_s,
        restart_s=costs.restart_s + part.instances * costs.restart_each_s,
        network_bytes_per_s_per_replica=sent + written,
        etcd_transactions_per_s=min(part.heartbeats, _FLUSHES_PER_S * n) + _commits(costs, part) + _FENCES_PER_S * n,
        etcd_bytes_per_s=written,
        etcd_database_bytes=part.instances * costs.etcd_each_bytes + written * _HISTORY_S,
        connections_per_replica=connections,
    )


def lookup_cost_s(costs: MeasuredCosts, listed: float, *, secured: bool) -> float:
    """CPU seconds of one FindInstances with so many instances in its answer."""
    plain = costs.lookup_s + costs.listed_s * listed
    return plain + (costs.secured_lookup_s + costs.secured_listed_s * listed if secured else 0.0)


def _cores(costs: MeasuredCosts, part: Workload, connections: float, events: float) -> float:
    n = part.replicas
    work = (
        costs.idle
        + connections * costs.watch
        + part.lookups / n * lookup_cost_s(costs, part.per_service, secured=part.secured)
        + part.heartbeats * (costs.heartbeat_s / n + costs.heard_s * (n - 1) / n)
        + part.changes * (costs.change_s / n + costs.followed_s * (n - 1) / n)
        + _lonely_commits(costs, part) / n * costs.commit_s
        + events / n * costs.event_s
    )
    calls = (part.lookups + part.heartbeats / part.per_node + part.changes) / n
    return busy_share(costs, work, calls)


def busy_share(costs: MeasuredCosts, work: float, calls: float) -> float:
    """The share of a core that is used by so much work and so many calls a second.

    A call wakes a replica up with the probability that it is idle: share = work + calls * wake_s * (1 - share).
    """
    return work if work >= 1 else (work + calls * costs.wake_s) / (1 + calls * costs.wake_s)


def _commits(costs: MeasuredCosts, part: Workload) -> float:
    grouped = part.changes / costs.changes_per_transaction * part.replicas
    return min(part.changes, grouped) if part.changes > 50 else part.changes


def _lonely_commits(costs: MeasuredCosts, part: Workload) -> float:
    """Transactions per second that `change_s` does not include: it was measured with many changes in each."""
    return max(0.0, _commits(costs, part) - part.changes / costs.changes_per_transaction)


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """How many locations and replicas, and what each location needs: while all run, and while one is down."""

    workload: Workload
    need: LocationNeed
    need_with_one_down: LocationNeed
    gateways: int  # federation gateways; 0: one location needs none

    @property
    def fits(self) -> bool:
        return self.need_with_one_down.first_limit()[1] <= 1.0


def capacity_plan(
    costs: MeasuredCosts, workload: Workload, replicas: int | None = None, locations: int | None = None
) -> CapacityPlan:
    """The fewest locations, and of these the fewest replicas, that carry the workload with one replica down.

    `replicas`, `locations`: exactly so many. If nothing fits, the largest that was tried.
    """
    plan = None
    for number, count in _candidates(replicas, locations):
        candidate = replace(workload, replicas=count, locations=number)
        rest = replace(candidate, replicas=max(1, count - 1))
        gateways = _gateways(costs, candidate) if number > 1 else 0
        plan = CapacityPlan(candidate, location_need(costs, candidate), location_need(costs, rest), gateways)
        if plan.fits:
            break
    assert plan is not None
    return plan


def _candidates(replicas: int | None, locations: int | None) -> Iterator[tuple[int, int]]:
    for number in [locations] if locations else range(1, _MAX_LOCATIONS + 1):
        for count in [replicas] if replicas else range(_MIN_REPLICAS, _MAX_REPLICAS + 1):
            yield number, count


def _gateways(costs: MeasuredCosts, workload: Workload) -> int:
    """How many gateways: two at least, so that one may be down while the others carry all lookups."""
    listed = workload.per_service
    each_s = lookup_cost_s(costs, listed, secured=workload.secured) / costs.gateway_share
    by_core = workload.lookups * each_s / BUSY
    by_network = workload.lookups * listed * costs.frame_bytes / (BUSY * NETWORK_BYTES_PER_S)
    return 1 + max(1, math.ceil(max(by_core, by_network)))
